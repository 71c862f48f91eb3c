"""The solvers by name, what each accepts, and which one suits an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..linalg import (
    Array,
    BlockOperator,
    FunctionOperator,
    HadamardOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
)
from .conjugate_gradient import ConjugateGradientFactor
from .dense import DenseFactor, DenseSpectrum
from .kronecker import KroneckerFactor, KroneckerSpectrum, LowRankKroneckerFactor
from .low_rank import LowRankFactor

__all__ = [
    "SOLVERS",
    "Factor",
    "Solver",
    "choose_solver",
    "dense_limit",
    "factorize",
    "low_rank_dimension",
    "lowest_eigenvalue",
    "resolve_solver",
]

# Up to this size of the block Gram matrix (72 MB) a Cholesky factorisation beats iterating. Where each
# product would compute all kernel values again, it does so up to a larger size (512 MB).
DENSE_SIZE = 3000
UNSTRUCTURED_DENSE_SIZE = 8000
LANCZOS_STEPS = 60
_UNSTRUCTURED = (FunctionOperator, HadamardOperator)


class Factor(Protocol):
    """A block Gram matrix made ready for solves with any alpha."""

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve (G + alpha I) X = R for R of shape (n, p, c)."""

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of (G + alpha I)^-1, shape (n, p, p)."""


class Solver(NamedTuple):
    """A way to solve ridge systems: the structure it needs, in code and in words."""

    factor: Callable[..., Factor]
    accepts: Callable[[BlockOperator], bool]
    needs: str


SOLVERS: dict[str, Solver] = {
    "kronecker": Solver(
        KroneckerFactor,
        lambda operator: isinstance(operator, KroneckerOperator),
        "a separable kernel",
    ),
    "low_rank_separable": Solver(
        LowRankKroneckerFactor,
        lambda operator: isinstance(operator, LowRankKroneckerOperator),
        "a separable kernel with finitely many features (linear or FeatureKernel)",
    ),
    "low_rank": Solver(
        LowRankFactor,
        lambda operator: isinstance(operator, LowRankOperator),
        "a kernel in Kraus form (KrausKernel or EntangledKernel)",
    ),
    "cg": Solver(ConjugateGradientFactor, lambda operator: True, "any kernel"),
    "dense": Solver(DenseFactor, lambda operator: True, "any kernel"),
}


def choose_solver(operator: BlockOperator) -> str:
    """Name of the cheapest solver for the structure of a square block operator.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.linalg import KroneckerOperator
    >>> choose_solver(KroneckerOperator(np.eye(4), np.eye(2)))
    'kronecker'
    """
    size = operator.shape[0]
    if isinstance(operator, LowRankKroneckerOperator) and operator.Phi.shape[1] < operator.n_rows:
        return "low_rank_separable"
    if isinstance(operator, KroneckerOperator):
        return "kronecker"
    if isinstance(operator, LowRankOperator) and low_rank_dimension(operator) < size:
        return "low_rank"
    return "dense" if size <= dense_limit(operator) else "cg"


def dense_limit(operator: BlockOperator) -> int:
    """Size up to which a Cholesky factorisation beats iterating on an operator."""
    return UNSTRUCTURED_DENSE_SIZE if isinstance(operator, _UNSTRUCTURED) else DENSE_SIZE


def low_rank_dimension(operator: BlockOperator) -> int:
    """Bound on the rank of a block Gram matrix by its structure; its size where that says nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.linalg import LowRankKroneckerOperator
    >>> low_rank_dimension(LowRankKroneckerOperator(np.ones((9, 2)), np.ones((9, 2)), np.eye(3)))
    6
    """
    if isinstance(operator, LowRankKroneckerOperator):
        return int(operator.Phi.shape[1] * operator.n_outputs)
    if isinstance(operator, LowRankOperator):
        return len(operator.Q) if operator.metric is not None else int(operator.Q.shape[1])
    return int(operator.shape[0])


def resolve_solver(operator: BlockOperator, solver: str) -> str:
    """Name of the solver for "auto", or the name given, once it is known to accept the operator."""
    if solver != "auto" and solver not in SOLVERS:
        raise ValueError(f"solver must be 'auto' or one of {sorted(SOLVERS)}, got {solver!r}.")
    name = choose_solver(operator) if solver == "auto" else solver
    if not SOLVERS[name].accepts(operator):
        raise ValueError(
            f"solver={solver!r} needs {SOLVERS[name].needs}, but the kernel gives a "
            f"{type(operator).__name__}; use solver='auto'."
        )
    return name


def factorize(
    operator: BlockOperator,
    solver: str = "auto",
    *,
    krein: bool = False,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> tuple[Factor, str]:
    """Make a square block operator ready for ridge solves; returns the factor and the name of its solver.

    Parameters
    ----------
    operator : BlockOperator
        Square and symmetric.
    solver : str, default="auto"
        A key of `SOLVERS`, or "auto".
    krein : bool, default=False
        Solve the stabilised problem of an indefinite operator by an eigendecomposition, whatever `solver`.
    tol, max_iter
        Relative residual and iterations of "cg".

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.linalg import KroneckerOperator
    >>> factor, name = factorize(KroneckerOperator(np.eye(2), np.eye(1)))
    >>> factor.solve(np.ones((2, 1, 1)), alpha=1.0).ravel()
    array([0.5, 0.5])
    """
    name = resolve_solver(operator, solver)
    if krein and isinstance(operator, KroneckerOperator):
        return KroneckerSpectrum(operator, krein=True), "kronecker"
    if krein:
        return DenseSpectrum(operator), "dense"
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter} if name == "cg" else {}
    return SOLVERS[name].factor(operator, **options), name


def lowest_eigenvalue(operator: BlockOperator) -> tuple[float, float]:
    """Lowest eigenvalue of a symmetric block operator and its largest absolute one, as structure allows.

    Beyond `DENSE_SIZE` and without structure, both are Ritz values of `LANCZOS_STEPS` Lanczos steps: a
    negative one proves that the operator is indefinite, and a lowest eigenvalue near zero may be missed.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.linalg import KroneckerOperator
    >>> lowest_eigenvalue(KroneckerOperator(np.eye(3), np.diag([-1.0, 2.0])))
    (-1.0, 2.0)
    """
    if isinstance(operator, KroneckerOperator):
        ends = np.linalg.eigvalsh(operator.gram)[[0, -1]], np.linalg.eigvalsh(operator.output)[[0, -1]]
        eigenvalues = np.multiply.outer(*ends).ravel()
    elif operator.shape[0] <= DENSE_SIZE:
        G = operator.to_dense()
        eigenvalues = np.linalg.eigvalsh((G + G.T) / 2)
    else:
        eigenvalues = _ritz_values(operator)
    return float(eigenvalues.min()), float(np.abs(eigenvalues).max())


def _ritz_values(operator: BlockOperator) -> Array:
    """Eigenvalues of the operator on a Krylov space, from Lanczos with full orthogonalisation."""
    size = operator.shape[0]
    v = np.random.default_rng(0).normal(size=size)
    V = np.empty((min(LANCZOS_STEPS, size), size))
    for k in range(len(V)):
        V[k] = v / np.linalg.norm(v)
        v = operator @ V[k]
        largest = np.linalg.norm(v)
        for _ in range(2):  # once is not enough where cancellation is strong
            v -= V[: k + 1].T @ (V[: k + 1] @ v)
        if np.linalg.norm(v) <= 1e-12 * largest:
            V = V[: k + 1]
            break
    projected = V @ (operator @ V.T)
    return np.linalg.eigvalsh((projected + projected.T) / 2)
