"""Blanks among the targets filled in by what each target's own rows say, so that kernels can be learned."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..linalg import Array
from .cell_moments import CellMoments
from .compression import CompressedRows, compress_rows, rotate_to_axes
from .moments import Moments, SecondMoments
from .problem import Problem, reduce_moments

__all__ = ["FILL_ALPHA", "complete_moments", "reduce_cell_rows", "reduce_cells"]

# Ridge of the fit that fills in blanks, in units of the mean eigenvalue of the features' second moments.
FILL_ALPHA = 0.1


def reduce_cells(
    cells: CellMoments, *, centred: bool, rows: CompressedRows | None = None
) -> tuple[Problem, CellMoments]:
    """The problem of rows with blanks filled in, and the moments of measured cells in its coordinates.

    ``rows`` tells where the features of the cells are those of compressed rows.
    """
    completed = complete_moments(cells, centred=centred)
    problem = reduce_moments(completed, centred=centred, rows=rows)
    if rows is None or rows.features is None:
        return problem, cells.rotated(problem.features)
    inner, problem = problem.features, problem.restored(rows, completed)
    return problem, cells.rotated(inner, rows.first_phi @ problem.features)


def reduce_cell_rows(
    Phi: Array, Y: Array, weight: Array, *, centred: bool
) -> tuple[Problem, CellMoments, CellMoments | None]:
    """As `reduce_cells`, of rows in memory with cell weights (n, p).

    Beside them the moments to which more rows can be added, None where there are more features than rows.
    """
    rows = compress_rows(Phi, np.zeros((len(Phi), 1)), centred=centred)
    rows = rotate_to_axes(rows, weight.max(axis=1), centred=centred)
    cells = CellMoments.from_arrays(rows.Phi, Y, weight)
    problem, reduced = reduce_cells(cells, centred=centred, rows=rows)
    if Phi.shape[1] > len(Y):
        return problem, reduced, None
    if rows.features is not None:
        cells = CellMoments.from_arrays(Phi, Y, weight)
    return problem, reduced, cells


def complete_moments(cells: CellMoments, *, centred: bool) -> Moments:
    """Moments of the rows with every blank replaced by a ridge prediction from the target's own rows.

    Notes
    -----
    With c(x) = W^T phi(x) + b the ridge fit of a target on its own rows, cells of weight w in rows of weight
    v count as y~ = c + (w / v) (y - c) with weight v: the value of c for a blank, y itself in full rows. With
    C the second moments of all rows, and C_o, B_o those of the target's own,

        B~_o = B_o + (C - C_o) W_o

    and the scatter of the targets follows likewise, except for products of residuals of targets that were
    measured on different rows, which moments do not tell; they are taken as zero. Only the norm of that
    scatter matters, as the unit of the alignment.
    """
    rows = cells.rows
    m, p = cells.n_features, cells.n_outputs
    C = _second(rows, centred).C
    W, left, V = np.zeros((m, p)), np.zeros((m, p)), np.zeros((p, p))
    mean_y = np.zeros(p)
    for places, own in cells.groups:
        second = _second(own, centred)
        coef = _ridge(second, m)
        W[:, places], left[:, places] = coef, second.B - second.C @ coef
        along = coef.T @ second.B
        V[np.ix_(places, places)] = second.V - along - along.T + coef.T @ second.C @ coef
        away = rows.mean_phi - own.mean_phi
        if centred:
            mean_y[places] = own.mean_y + away @ coef
        elif rows.weight > 0.0:
            short = own.mean_y - own.mean_phi @ coef
            mean_y[places] = rows.mean_phi @ coef + short * own.weight / rows.weight
    B = C @ W + left
    cross = W.T @ left
    V += W.T @ C @ W + cross + cross.T
    mean = np.concatenate([rows.mean_phi, mean_y])
    scatter = np.block([[C, B], [B.T, V]])
    if not centred:
        scatter -= rows.weight * np.outer(mean, mean)
    # The diagonal is a sum of squares, whatever rounding has made of it.
    np.fill_diagonal(scatter, np.maximum(np.diag(scatter), 0.0))
    return Moments(rows.n_samples, rows.weight, m, mean, np.ascontiguousarray(scatter))


def _second(moments: Moments, centred: bool) -> SecondMoments:
    return moments.centred() if centred else moments.uncentred()


def _ridge(second: SecondMoments, m: int) -> Array:
    """(C + alpha I)^-1 B, zero where the features do not vary."""
    alpha = FILL_ALPHA * float(np.trace(second.C)) / m
    if alpha <= 0.0:
        return np.zeros_like(second.B)
    return np.asarray(cho_solve(cho_factor(second.C + alpha * np.eye(m)), second.B))
