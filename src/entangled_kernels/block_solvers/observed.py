"""Ridge systems on measured cells: rows and cells with weights, and blanks, which have weight zero.

With weights w, one for each cell, the dual coefficients of ridge regression solve (G + alpha W^-1) c = y on
the measured cells and are zero in blanks. With S = diag(sqrt(w)) this is c = S z for

    (S G S + alpha I) z = S y,

on all cells: a blank has an empty row there, so that z and c are zero in it. The solvers here therefore have
the form of all others, with S G S in the place of G.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..linalg import (
    Array,
    BlockOperator,
    DenseOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
)
from .conjugate_gradient import ConjugateGradientFactor
from .dense import DenseFactor, DenseSpectrum
from .low_rank import LowRankFactor
from .observed_kronecker import ObservedKroneckerFactor
from .registry import Factor, dense_limit, factorize, low_rank_dimension, resolve_solver
from .scaled import ScaledOperator, scale_rows

__all__ = ["GatheredFactor", "factorize_observed"]


class GatheredFactor:
    """Solves with M G M + alpha I, M = diag(mask), by the matrix of the measured cells alone.

    Parameters
    ----------
    operator : BlockOperator
        Square.
    mask : array of shape (n, p)
        Not negative, zero in blanks.
    dense : callable, default=DenseFactor
        `DenseFactor`, or `DenseSpectrum` for the stabilised problem of an indefinite operator.

    Notes
    -----
    Time N^3 and memory N^2 for N measured cells; blocks of G are formed some rows at a time.

    Examples
    --------
    >>> import numpy as np
    >>> operator = KroneckerOperator(np.eye(2), np.ones((2, 2)))
    >>> factor = GatheredFactor(operator, np.array([[1.0, 1.0], [1.0, 0.0]]))
    >>> factor.solve(np.array([[3.0, 3.0], [2.0, 0.0]])[:, :, None], alpha=1.0)[:, :, 0]
    array([[1., 1.],
           [1., 0.]])
    """

    def __init__(
        self, operator: BlockOperator, mask: Array, dense: Callable[[BlockOperator], Factor] = DenseFactor
    ) -> None:
        self.measured = mask > 0.0  # (n, p)
        A = _gather(ScaledOperator(operator, mask), self.measured)
        self.dense = dense(DenseOperator(A[:, :, None, None]))

    def solve(self, R: Array, alpha: float) -> Array:
        """Solve for right-hand sides R of shape (n, p, c)."""
        out = R / alpha  # what a blank leaves
        out[self.measured] = self.dense.solve(R[self.measured][:, None, :], alpha)[:, 0]
        return out

    def inverse_diagonal_blocks(self, alpha: float) -> Array:
        """Diagonal p x p blocks of the inverse, shape (n, p, p)."""
        n, p = self.measured.shape
        size = int(self.measured.sum())
        inverse = self.dense.solve(np.eye(size)[:, None, :], alpha)[:, 0]
        at = np.cumsum(self.measured).reshape(n, p) - 1
        pairs = self.measured[:, :, None] & self.measured[:, None, :]
        return np.where(pairs, inverse[at[:, :, None], at[:, None, :]], np.eye(p) / alpha)


def _gather(operator: BlockOperator, measured: NDArray[np.bool_]) -> Array:
    """Matrix of the measured cells, formed some block rows at a time."""
    columns = measured.reshape(-1)
    parts = []
    for rows in operator._chunks(operator.n_rows):
        dense = operator.block_rows(rows).swapaxes(1, 2)  # (b, p, n, p)
        dense = dense.reshape(-1, len(columns))[measured[rows].reshape(-1)]
        parts.append(dense[:, columns])
    return np.concatenate(parts)


def factorize_observed(
    operator: BlockOperator,
    weights: Array | None,
    solver: str = "auto",
    *,
    krein: bool = False,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> tuple[Factor, str]:
    """Make S G S, S = diag(sqrt(weights)), ready for ridge solves; returns the factor and its solver's name.

    Parameters
    ----------
    operator : BlockOperator
        G, square and symmetric.
    weights : None or array of shape (n,) or (n, p)
        Not negative. Zeros are blanks; a row has to have a measured cell.
    solver, krein, tol, max_iter
        As in `factorize`.

    Notes
    -----
    Weights of rows keep the structure of G, and any solver serves. With weights of cells "low_rank" and
    "low_rank_separable" solve in as many dimensions as G has rank, "dense" with the measured cells alone, and
    "kronecker" becomes "cg", which then iterates in the eigenbasis of complete data. "auto" chooses low rank
    where it is low, "dense" up to a few thousand cells, and "cg" beyond.

    Examples
    --------
    >>> import numpy as np
    >>> operator = KroneckerOperator(np.eye(4), np.eye(2) + 1.0)
    >>> factorize_observed(operator, None)[1], factorize_observed(operator, np.full(4, 2.0))[1]
    ('kronecker', 'kronecker')
    >>> factorize_observed(operator, np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 0.0]]))[1]
    'dense'
    """
    name = resolve_solver(operator, solver)
    if weights is None or weights.ndim == 1:
        if weights is not None:
            operator = scale_rows(operator, np.sqrt(weights))
        return factorize(operator, name, krein=krein, tol=tol, max_iter=max_iter)
    # The scale of rows goes into G, where it keeps the structure; what is left is near one, or zero.
    row = np.sqrt(weights.sum(axis=1) / (weights > 0.0).sum(axis=1))
    mask = np.sqrt(weights) / row[:, None]
    limit = dense_limit(operator)
    operator = scale_rows(operator, row)
    if krein:
        return GatheredFactor(operator, mask, DenseSpectrum), "dense"
    if solver == "auto":
        size, rank = np.count_nonzero(mask), low_rank_dimension(operator)
        structured = name.startswith("low_rank") and rank < size and rank <= limit
        name = name if structured else "dense" if size <= limit else "cg"
    if name.startswith("low_rank"):
        return LowRankFactor(_as_low_rank(operator), mask), name
    if name == "dense":
        return GatheredFactor(operator, mask), name
    if isinstance(operator, KroneckerOperator):
        return ObservedKroneckerFactor(operator, mask, tol, max_iter), "cg"
    return ConjugateGradientFactor(ScaledOperator(operator, mask), tol, max_iter), "cg"


def _as_low_rank(operator: BlockOperator) -> LowRankOperator:
    """kron(Phi Phi^T, T) in the form of a Kraus kernel, Q = kron(I, T^1/2)."""
    if isinstance(operator, LowRankOperator):
        return operator
    assert isinstance(operator, LowRankKroneckerOperator)
    t, V = np.linalg.eigh(operator.output)
    root = (V * np.sqrt(np.clip(t, 0.0, None)))[:, t > 1e-14 * np.abs(t).max()]
    Q = np.kron(np.eye(operator.Phi.shape[1]), root)
    return LowRankOperator(operator.Phi, operator.Psi, Q, operator.n_outputs)
