"""Block matrices, Kraus operators and entanglement, on plain NumPy arrays."""

from .axes import principal_axes, rank_tolerance
from .entanglement import (
    OperatorSchmidt,
    is_ppt,
    nearest_kronecker,
    negativity,
    operator_schmidt,
    partial_transpose_eigenvalues,
    realignment,
)
from .kraus import (
    choi_from_kraus,
    kraus_from_choi,
    kraus_from_entangler,
    psd_factor,
    separable_kraus,
)
from .layout import (
    AnyArray,
    Array,
    Index,
    kraus_to_stacked,
    related_targets,
    stacked_to_kraus,
    unique_columns,
)
from .operators import BlockOperator, DenseOperator, FunctionOperator, HadamardOperator, SumOperator
from .partial import partial_trace, partial_transpose
from .structured_operators import (
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
    SumOfKroneckersOperator,
    is_identity,
    multiple_of_identity,
)

__all__ = [
    "AnyArray",
    "Array",
    "BlockOperator",
    "DenseOperator",
    "FunctionOperator",
    "HadamardOperator",
    "Index",
    "KroneckerOperator",
    "LowRankKroneckerOperator",
    "LowRankOperator",
    "OperatorSchmidt",
    "SumOfKroneckersOperator",
    "SumOperator",
    "choi_from_kraus",
    "is_identity",
    "is_ppt",
    "kraus_from_choi",
    "kraus_from_entangler",
    "kraus_to_stacked",
    "multiple_of_identity",
    "nearest_kronecker",
    "negativity",
    "operator_schmidt",
    "partial_trace",
    "partial_transpose",
    "partial_transpose_eigenvalues",
    "principal_axes",
    "psd_factor",
    "rank_tolerance",
    "realignment",
    "related_targets",
    "separable_kraus",
    "stacked_to_kraus",
    "unique_columns",
]
