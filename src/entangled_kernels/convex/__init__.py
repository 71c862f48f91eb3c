"""Convex learning of kernels: penalties, solvers, certificates.

Output kernels, weights of several kernels, views and vector autoregression are all ridge regression
whose Gram matrix is linear in learned parameters.
"""

from .autoregression import (
    AdditiveModel,
    HadamardModel,
    lag_windows,
    learn_additive,
    learn_hadamard,
)
from .grams import Gram, KroneckerGram
from .missing import learn_missing
from .multiple_kernels import (
    embed_view,
    learn_diagonal,
    learn_multiview,
    learn_separate,
    learn_shared,
    learn_weights,
    view_coefficients,
)
from .output_kernel import fixed_output_kernel, learn_output_kernel, output_kernel_path
from .penalties import (
    PENALTIES,
    Cluster,
    Elastic,
    Entrywise,
    OutputPenalty,
    Penalty,
    Schatten,
    graph_output_kernel,
)
from .problem import KernelPart, Problem, Result, alpha_unit, diagonalise, reduce_problem
from .solvers import SOLVERS, Point, certify, solve_convex

__all__ = [
    "PENALTIES",
    "SOLVERS",
    "AdditiveModel",
    "Cluster",
    "Elastic",
    "Entrywise",
    "Gram",
    "HadamardModel",
    "KernelPart",
    "KroneckerGram",
    "OutputPenalty",
    "Penalty",
    "Point",
    "Problem",
    "Result",
    "Schatten",
    "alpha_unit",
    "certify",
    "diagonalise",
    "embed_view",
    "fixed_output_kernel",
    "graph_output_kernel",
    "lag_windows",
    "learn_additive",
    "learn_diagonal",
    "learn_hadamard",
    "learn_missing",
    "learn_multiview",
    "learn_output_kernel",
    "learn_separate",
    "learn_shared",
    "learn_weights",
    "output_kernel_path",
    "reduce_problem",
    "solve_convex",
    "view_coefficients",
]
