"""Multiple kernel learning: sums of scalar kernels with weights and output kernels that are learned."""

from .learn import learn_diagonal, learn_listed, learn_own, learn_shared, learn_weights
from .measured_cells import MeasuredKernels, reduce_cells
from .multiview import embed_view, learn_multiview, view_coefficients
from .problem import KernelPart, KernelsProblem, reduce_kernels
from .result import KernelsResult

__all__ = [
    "KernelPart",
    "KernelsProblem",
    "KernelsResult",
    "MeasuredKernels",
    "embed_view",
    "learn_diagonal",
    "learn_listed",
    "learn_multiview",
    "learn_own",
    "learn_shared",
    "learn_weights",
    "reduce_cells",
    "reduce_kernels",
    "view_coefficients",
]
