"""Ridge regression with any operator-valued kernel, weights and missing targets.

All problems have one form. With weights w (n, p), zero where a target is missing, and
S = diag(sqrt(w)), the dual coefficients are c = S z for

    (S G S + alpha I) z = S y.

A missing target has a row of zeros in S G S, so that z and c are zero there. S = M R splits into
one factor per row, R, and a mask M with values near one, or zero. Scaling rows does not change the
structure of G, so that every solver accepts R G R. Only a mask needs other solvers. Complete data
has no mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ..linalg import (
    Array,
    BlockOperator,
    FunctionOperator,
    HadamardOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
    SumOfKroneckersOperator,
)
from ..parameters import check_weights
from .base import OperatorValuedKernel, as_points
from .direct_solvers import (
    DenseFactor,
    KroneckerFactor,
    KroneckerSpectrum,
    LowRankFactor,
    LowRankKroneckerFactor,
)
from .iterative_solvers import ConjugateGradientFactor, MaskedKroneckerFactor, ScaledOperator

__all__ = [
    "SOLVERS",
    "BlockRidge",
    "Factor",
    "Solver",
    "SolverChoice",
    "factorize",
    "lowest_eigenvalue",
    "scale_rows",
    "select_solver",
]

# Up to this size of the block Gram matrix (72 MB) a Cholesky factorisation is faster than
# iterating; up to a larger size (512 MB) if each product computes all kernel values again.
DENSE_SIZE = 3000
UNSTRUCTURED_DENSE_SIZE = 8000
_UNSTRUCTURED = (FunctionOperator, HadamardOperator)
LANCZOS_STEPS = 60
# The right-hand sides of the intercepts are solved in chunks of this many numbers (32 MB).
CHUNK_NUMBERS = 2**22


class Factor(Protocol):
    """A factorised block Gram matrix, which solves for any alpha."""

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve (G + alpha I) X = R for R of shape (n, p, c)."""

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of (G + alpha I)^-1, shape (n, p, p)."""


class Solver(NamedTuple):
    """A way to solve ridge systems.

    Attributes
    ----------
    factor : callable
        ``factor(operator, mask)`` gives a `Factor` of M G M with M = diag(mask). The mask is None
        for complete data. "cg" also takes ``tol`` and ``max_iter``.
    structure : type
        The kind of block operator that the solver needs.
    needs : str
        The same in words.
    """

    factor: Callable[..., Factor]
    structure: type[Any]
    needs: str

    def accepts(self, operator: BlockOperator) -> bool:
        """Whether a block operator has the structure that the solver needs."""
        return isinstance(operator, self.structure)


def _factor_kronecker(operator: KroneckerOperator, mask: None) -> Factor:
    return KroneckerFactor(operator)


def _factor_low_rank_separable(operator: LowRankKroneckerOperator, mask: Array | None) -> Factor:
    return LowRankKroneckerFactor(operator) if mask is None else LowRankFactor(operator, mask)


def _factor_iteratively(operator: BlockOperator, mask: Array | None, **options: Any) -> Factor:
    if mask is None:
        return ConjugateGradientFactor(operator, **options)
    if isinstance(operator, KroneckerOperator):
        return MaskedKroneckerFactor(operator, mask, **options)
    return ConjugateGradientFactor(ScaledOperator(operator, mask), **options)


SOLVERS: dict[str, Solver] = {
    "kronecker": Solver(_factor_kronecker, KroneckerOperator, "a separable kernel"),
    "low_rank_separable": Solver(
        _factor_low_rank_separable,
        LowRankKroneckerOperator,
        "a separable kernel with finitely many features (linear or FeatureKernel)",
    ),
    "low_rank": Solver(
        LowRankFactor, LowRankOperator, "a kernel in Kraus form (KrausKernel or EntangledKernel)"
    ),
    "cg": Solver(_factor_iteratively, BlockOperator, "any kernel"),
    "dense": Solver(DenseFactor, BlockOperator, "any kernel"),
}


class SolverChoice(NamedTuple):
    """The solver that runs, and the reason.

    Attributes
    ----------
    solver : str
        A key of `SOLVERS`.
    reason : str
        One or two sentences.
    """

    solver: str
    reason: str


def select_solver(
    kernel: OperatorValuedKernel, X: ArrayLike, weights: ArrayLike | None = None
) -> SolverChoice:
    """Which solver ``solver="auto"`` of `OperatorValuedKernelRidge` runs, and why.

    Parameters
    ----------
    kernel : OperatorValuedKernel
    X : array-like of shape (n, d)
        Training points.
    weights : array-like of shape (n,) or (n, p), optional
        Weights of rows or of single targets, zero where a target is missing. For targets Y with NaN
        pass ``~numpy.isnan(Y)``. None means complete data without weights.

    Returns
    -------
    SolverChoice
        ``solver``, a key of `SOLVERS`, and ``reason``, one or two sentences.

    Notes
    -----
    The choice depends on the structure and the size of the block Gram matrix, not on its values. A
    kernel that turns out to be indefinite is solved by an eigendecomposition, with
    ``indefinite="krein"`` only. The cost is that of ``kernel(X)``, at most n^2 kernel values.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.kernels import SeparableKernel, select_solver
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> T = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> choice = select_solver(SeparableKernel("rbf", T), X)
    >>> choice.solver
    'kronecker'
    >>> print(choice.reason)
    The kernel is separable: factorise its 50 x 50 Gram matrix and its 2 x 2 output matrix.

    One target is missing:

    >>> present = np.ones((50, 2))
    >>> present[0, 1] = 0.0
    >>> select_solver(SeparableKernel("rbf", T), X, present).solver
    'dense'
    """
    if not isinstance(kernel, OperatorValuedKernel):
        raise TypeError(f"kernel must be a kernel of entangled_kernels.kernels, got {kernel!r}")
    points = as_points(X)
    W = check_weights(weights, len(points), kernel.n_outputs, all_zero=True, name="weights")
    if W is not None:
        kept = W.reshape(len(W), -1).any(axis=1)
        points, W = points[kept], W[kept]
    operator = kernel(points)
    return _choose(operator, _split_weights(W)[1])


def _choose(operator: BlockOperator, mask: Array | None) -> SolverChoice:
    """Choose by the structure of an operator, and by the number of targets that are not missing."""
    n, p = operator.n_rows, operator.n_outputs
    size = n * p if mask is None else int(np.count_nonzero(mask))
    limit = UNSTRUCTURED_DENSE_SIZE if isinstance(operator, _UNSTRUCTURED) else DENSE_SIZE
    if isinstance(operator, LowRankKroneckerOperator):
        m = operator.Phi.shape[1]
        rank = m if mask is None else m * p
        if m < n and (mask is None or (rank < size and rank <= limit)):
            return SolverChoice(
                "low_rank_separable",
                f"The kernel is separable with {m} features for {n} rows: "
                f"factorise a {rank} x {rank} matrix.",
            )
    if isinstance(operator, KroneckerOperator) and mask is None:
        return SolverChoice(
            "kronecker",
            f"The kernel is separable: factorise its {n} x {n} Gram matrix "
            f"and its {p} x {p} output matrix.",
        )
    if isinstance(operator, LowRankOperator):
        rank = operator.Q.shape[0 if operator.metric is not None else 1]
        if rank < size and (mask is None or rank <= limit):
            return SolverChoice(
                "low_rank",
                f"The kernel is in Kraus form and its Gram matrix of size {size} has rank at most "
                f"{rank}: factorise a {rank} x {rank} matrix.",
            )
    reason = "No direct solver uses the structure of the kernel."
    if mask is not None:
        reason = "Targets are missing, or weights differ within rows."
    if size <= limit:
        size_in_words = f"The Gram matrix has size {size}, at most {limit}: form it."
        return SolverChoice("dense", f"{reason} {size_in_words}")
    size_in_words = f"The Gram matrix has size {size}, above {limit}: iterate by products with it."
    return SolverChoice("cg", f"{reason} {size_in_words}")


def _split_weights(weights: Array | None) -> tuple[Array | None, Array | None]:
    """Factors of rows (n,) and a mask (n, p) with ``row[:, None] * mask = sqrt(weights)``.

    Each is None where all of its numbers would be one.
    """
    if weights is None:
        return None, None
    W, mask = weights.reshape(len(weights), -1), None
    if (W[:, :1] == W).all():
        row = np.sqrt(W[:, 0])
    else:
        row = np.sqrt(W.sum(axis=1) / np.maximum((W > 0.0).sum(axis=1), 1))
        row = np.where(row > 0.0, row, 1.0)
        mask = np.sqrt(W) / row[:, None]
    return (None if (row == 1.0).all() else row), mask


def scale_rows(operator: BlockOperator, s: Array) -> BlockOperator:
    """Multiply block (i, j) of a square operator by s_i s_j; the structure stays the same."""
    if isinstance(operator, LowRankKroneckerOperator):
        Phi = s[:, None] * operator.Phi
        return LowRankKroneckerOperator(Phi, Phi, operator.output)
    if isinstance(operator, KroneckerOperator):
        return KroneckerOperator(s[:, None] * operator.gram * s, operator.output)
    if isinstance(operator, SumOfKroneckersOperator):
        return SumOfKroneckersOperator(s[:, None] * operator.Ks * s, operator.Ts)
    if isinstance(operator, LowRankOperator):
        Phi = s[:, None] * operator.Phi
        return LowRankOperator(Phi, Phi, operator.Q, operator.n_outputs, operator.metric)
    return ScaledOperator(operator, np.repeat(s[:, None], operator.n_outputs, axis=1))


def factorize(
    operator: BlockOperator,
    weights: ArrayLike | None = None,
    solver: str = "auto",
    *,
    krein: bool = False,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> tuple[Factor, str]:
    """Factorise S G S, S = diag(sqrt(weights)), for ridge solves with any alpha.

    Parameters
    ----------
    operator : BlockOperator
        G, square and symmetric.
    weights : array-like of shape (n,) or (n, p), optional
        Not negative, zero where a target is missing. None is the identity.
    solver : str, default="auto"
        A key of `SOLVERS`, or "auto", which chooses as `select_solver` says.
    krein : bool, default=False
        Solve the stabilised problem of an indefinite operator by an eigendecomposition, whatever
        `solver` is.
    tol, max_iter
        Relative residual and iterations of "cg".

    Returns
    -------
    factor : Factor
    solver : str
        The solver used.

    Notes
    -----
    Weights of rows keep the structure of G, and every solver serves. With missing targets, or with
    weights that differ within rows, "low_rank" and "low_rank_separable" solve in as many dimensions
    as G has rank, "dense" with the targets that are not missing, and "kronecker" becomes "cg",
    which iterates in the eigenbasis of complete data.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.linalg import KroneckerOperator
    >>> operator = KroneckerOperator(np.eye(2), np.eye(1))
    >>> factor, name = factorize(operator)
    >>> name
    'kronecker'
    >>> factor.solve(np.ones((2, 1, 1)), alpha=1.0).ravel()
    array([0.5, 0.5])
    """
    if solver != "auto" and solver not in SOLVERS:
        raise ValueError(f"solver must be 'auto' or one of {sorted(SOLVERS)}, got {solver!r}.")
    if solver != "auto" and not SOLVERS[solver].accepts(operator):
        raise ValueError(
            f"solver={solver!r} needs {SOLVERS[solver].needs}, but the kernel gives a "
            f"{type(operator).__name__}; use solver='auto'."
        )
    W = check_weights(weights, operator.n_rows, operator.n_outputs, all_zero=True, name="weights")
    row, mask = _split_weights(W)
    name = _choose(operator, mask).solver if solver == "auto" else solver
    if row is not None:
        operator = scale_rows(operator, row)
    if krein and mask is None and isinstance(operator, KroneckerOperator):
        return KroneckerSpectrum(operator, krein=True), "kronecker"
    if krein:
        return DenseFactor(operator, mask, krein=True), "dense"
    if mask is not None and name == "kronecker":
        name = "cg"
    options = {"tol": tol, "max_iter": max_iter} if name == "cg" else {}
    return SOLVERS[name].factor(operator, mask, **options), name


class BlockRidge:
    """Coefficients, variances and leave-one-out residuals of ridge regression.

    Minimises sum w_io (y_io - f_o(x_i) - b_o)^2 + alpha ||f||^2 over f = sum_i K(., x_i) c_i and b,
    where the sum is over targets y_io of positive weight. All other targets are missing.

    Parameters
    ----------
    operator : BlockOperator
        G, the block Gram matrix of the training points.
    weights : array-like of shape (n,) or (n, p), optional
        Not negative, zero where a target is missing. None gives every target weight one.
    solver : str, default="auto"
        A key of `SOLVERS`, or "auto".
    fit_intercept : bool, default=False
        Whether each output has a constant b_o, which is not penalised.
    krein, tol, max_iter
        As in `factorize`.

    Attributes
    ----------
    solver : str
        The solver used.
    factor : Factor
        Factorisation of S G S, S = diag(sqrt(weights)).
    residual : float
        Largest relative residual of the iterative solves since it was set to zero; 0.0 for direct
        solvers.

    Notes
    -----
    With H = (S G S + alpha I)^-1 and O = S (1 kron I_p), one column for each output, the optimum is

        b = (O^T H O)^-1 O^T H S y,    c = S H (S y - O b),

    so that the coefficients of each output sum to zero: O^T S^-1 c = 0. In the Gaussian-process
    view the noise variance is alpha / w and the prior on b is flat. The posterior variance at a
    point with covariances k, where E selects its output, is

        K(x, x) - k^T S H S k + (E - O^T H S k)^T (O^T H O)^-1 (E - O^T H S k).

    Leaving out row i gives the residual s_i^-1 (P_ii)^-1 z_i with z = S^-1 c. P_ii is the block of
    row i of P = H - H O (O^T H O)^-1 O^T H, without the missing targets. This is the inverse of a
    partitioned matrix, as without an intercept.

    An intercept costs p more right-hand sides, solved in chunks and not stored.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.linalg import KroneckerOperator
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> operator = KroneckerOperator(np.multiply.outer(x, x), np.eye(1))
    >>> ridge = BlockRidge(operator, fit_intercept=True)
    >>> c, b = ridge.coefficients(3.0 + x[:, None], alpha=2.0)
    >>> b
    array([3.])
    >>> float(x @ c[:, 0])  # the slope, 1 shrunk by 2 / (2 + alpha)
    0.5
    """

    def __init__(
        self,
        operator: BlockOperator,
        weights: ArrayLike | None = None,
        solver: str = "auto",
        *,
        fit_intercept: bool = False,
        krein: bool = False,
        tol: float = 1e-10,
        max_iter: int = 1000,
    ) -> None:
        self.shape = (operator.n_rows, operator.n_outputs)
        self.fit_intercept = fit_intercept
        W = check_weights(weights, *self.shape, all_zero=True, name="weights")
        self.factor, self.solver = factorize(
            operator, W, solver, krein=krein, tol=tol, max_iter=max_iter
        )
        self.scale: Array | None = None  # diagonal of S, (n, p)
        if W is not None:
            self.scale = np.broadcast_to(np.sqrt(W).reshape(len(W), -1), self.shape)
        self.residual = 0.0
        self._intercept_factors: dict[float, Array] = {}

    @property
    def n_iter(self) -> int:
        """Iterations of the last solve; 1 for direct solvers."""
        return max(1, getattr(self.factor, "n_iter", 1))

    def _solve(self, R: Array, alpha: float) -> Array:
        solved = self.factor.solve(R, alpha)
        self.residual = max(self.residual, float(getattr(self.factor, "residual", 0.0)))
        return solved

    def _scaled(self, A: Array) -> Array:
        """S A for A (n, p, c); zero where a target is missing, even if A is NaN there."""
        if self.scale is None:
            return A
        return np.where(self.scale[:, :, None] > 0.0, self.scale[:, :, None] * A, 0.0)

    def _output_columns(self, V: Array) -> Iterator[Array]:
        """O V, shape (n, p, c), for some columns of V (p, p) at a time."""
        n, p = self.shape
        scale = np.ones(self.shape) if self.scale is None else self.scale
        step = max(1, CHUNK_NUMBERS // (n * p))
        for start in range(0, p, step):
            yield scale[:, :, None] * V[None, :, start : start + step]

    def _totals(self, A: Array) -> Array:
        """O^T A, shape (p, c), for A (n, p, c)."""
        return np.asarray((A if self.scale is None else self.scale[:, :, None] * A).sum(axis=0))

    def _intercept_factor(self, alpha: float) -> Array:
        """U (p, p), upper triangular, with O^T H O = U^T U; stored for each alpha."""
        if alpha not in self._intercept_factors:
            parts = self._output_columns(np.eye(self.shape[1]))
            N = np.concatenate([self._totals(self._solve(part, alpha)) for part in parts], axis=1)
            with _explained_errors():
                self._intercept_factors[alpha] = cholesky((N + N.T) / 2)
        return self._intercept_factors[alpha]

    def intercepts(self, Y: Array, alpha: float) -> Array:
        """Optimal b, shape (p,), for targets Y (n, p); zeros without an intercept."""
        if not self.fit_intercept:
            return np.zeros(self.shape[1])
        total = self._totals(self._solve(self._scaled(Y[:, :, None]), alpha))[:, 0]
        return np.asarray(cho_solve((self._intercept_factor(alpha), False), total))

    def coefficients(self, Y: Array, alpha: float) -> tuple[Array, Array]:
        """Coefficients c (n, p), zero for missing targets, and intercepts b (p,)."""
        b = self.intercepts(Y, alpha)
        return self._scaled(self._dual(Y, b, alpha))[:, :, 0], b

    def _dual(self, Y: Array, b: Array, alpha: float) -> Array:
        """z = S^-1 c, shape (n, p, 1)."""
        return self._solve(self._scaled((Y - b if self.fit_intercept else Y)[:, :, None]), alpha)

    def variance_reduction(self, cross: Array, alpha: float) -> Array:
        """Prior variance minus posterior variance at new points, shape (t, p).

        Parameters
        ----------
        cross : array of shape (n, p, t * p)
            Covariances with the training rows.
        alpha : float
        """
        p = self.shape[1]
        right = self._scaled(cross)
        solved = self._solve(right, alpha)
        explained: Array = np.einsum("noc,noc->c", right, solved).reshape(-1, p)
        if not self.fit_intercept:
            return explained
        # E - O^T H S k, shape (p, t, p)
        rest = np.eye(p)[:, None, :] - self._totals(solved).reshape(p, -1, p)
        U = self._intercept_factor(alpha)
        weighted = cho_solve((U, False), rest.reshape(p, -1))
        return np.asarray(explained - np.einsum("otq,otq->tq", rest, weighted.reshape(rest.shape)))

    def loo_residuals(self, Y: Array, alpha: float) -> Array:
        """Residuals y_i - f_-i(x_i) - b_-i with row i left out, shape (n, p).

        NaN for missing targets. With an intercept also NaN if no other row has the target.
        """
        b = self.intercepts(Y, alpha)
        dual = self._dual(Y, b, alpha)
        blocks = self.factor.inverse_diagonal_blocks(alpha)
        if self.fit_intercept:
            # With O^T H O = U^T U the intercepts subtract H O U^-1 (H O U^-1)^T from H.
            U = self._intercept_factor(alpha)
            for part in self._output_columns(solve_triangular(U, np.eye(self.shape[1]))):
                solved = self._solve(part, alpha)
                blocks = blocks - solved @ solved.swapaxes(1, 2)
        defined = self._defined_residuals()
        if not defined.all():
            pairs = defined[:, :, None] & defined[:, None, :]
            blocks = np.where(pairs, blocks, np.eye(self.shape[1]))
            dual = np.where(defined[:, :, None], dual, 0.0)
        with _explained_errors():
            residuals = np.where(defined, np.linalg.solve(blocks, dual)[:, :, 0], np.nan)
        if self.scale is not None:
            residuals = residuals / np.where(defined, self.scale, 1.0)
        return np.asarray(residuals, dtype=np.float64)

    def _defined_residuals(self) -> NDArray[np.bool_]:
        """Targets that are not missing and, with an intercept, present in another row too."""
        present = np.ones(self.shape, dtype=bool) if self.scale is None else self.scale > 0.0
        return present & (present.sum(axis=0) > 1) if self.fit_intercept else present


@contextmanager
def _explained_errors() -> Iterator[None]:
    """Raise an error that names the arguments if a small system of the outputs is singular."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise ValueError(
            f"the ridge system cannot be solved in double precision ({error}): use an alpha of the "
            "size of the kernel, sample_weight of similar sizes, or more iterations (max_iter)"
        ) from error


def lowest_eigenvalue(operator: BlockOperator) -> tuple[float, float]:
    """Lowest eigenvalue of a symmetric block operator, and its largest absolute eigenvalue.

    Without structure and beyond `DENSE_SIZE`, both are Ritz values of `LANCZOS_STEPS` Lanczos
    steps. A negative Ritz value proves that the operator is indefinite. A slightly negative
    eigenvalue may be missed.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.linalg import KroneckerOperator
    >>> lowest_eigenvalue(KroneckerOperator(np.eye(3), np.diag([-1.0, 2.0])))
    (-1.0, 2.0)
    """
    if isinstance(operator, KroneckerOperator):
        ends = [np.linalg.eigvalsh(A)[[0, -1]] for A in (operator.gram, operator.output)]
        eigenvalues = np.multiply.outer(*ends).ravel()
    elif operator.shape[0] <= DENSE_SIZE:
        G = operator.to_dense()
        eigenvalues = np.linalg.eigvalsh((G + G.T) / 2)
    else:
        eigenvalues = _ritz_values(operator)
    return float(eigenvalues.min()), float(np.abs(eigenvalues).max())


def _ritz_values(operator: BlockOperator) -> Array:
    """Eigenvalues of the operator on a Krylov space, by Lanczos with full orthogonalisation."""
    size = operator.shape[0]
    v = np.random.default_rng(0).normal(size=size)
    V = np.empty((min(LANCZOS_STEPS, size), size))
    for k in range(len(V)):
        V[k] = v / np.linalg.norm(v)
        v = operator @ V[k]
        largest = np.linalg.norm(v)
        for _ in range(2):  # once is not enough under strong cancellation
            v -= V[: k + 1].T @ (V[: k + 1] @ v)
        if np.linalg.norm(v) <= 1e-12 * largest:
            V = V[: k + 1]
            break
    projected = V @ (operator @ V.T)
    return np.linalg.eigvalsh((projected + projected.T) / 2)
