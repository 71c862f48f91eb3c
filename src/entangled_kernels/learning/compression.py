"""Exact compression of rows: fewer columns that give the same kernel and the same ridge solution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import qr, svd
from scipy.linalg.blas import dsyrk

from ..linalg import Array, Index, rank_tolerance

__all__ = [
    "LARGEST_ROTATED",
    "CompressedRows",
    "OutputSubspace",
    "columns_are_alike",
    "compress_for_fit",
    "compress_rows",
    "rotate_to_axes",
    "subspace_is_small",
]

# Tables of more numbers than this are not rotated to their principal axes.
LARGEST_ROTATED = 2**22
# Axes shorter than this share of the longest are worth the rotation.
_SHORT = 1e-3
# Blocks of targets hold about this many numbers.
_BLOCK_NUMBERS = 2**24


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """Rows in orthonormal bases of few columns; a basis of None changes nothing.

    The original features are ``first_phi + Phi @ features.T`` and the targets ``first_y + Y @ outputs.T``,
    except where ``outputs`` is the basis of an `OutputSubspace`: it holds only a projection of the targets.
    Then ``norms``, the norm and the trace of the targets' scatter V, and ``target_scatter``, the diagonal
    of V, say what the projection has lost.
    """

    Phi: Array
    Y: Array
    features: Array | None
    outputs: Array | None
    first_phi: Array
    first_y: Array
    norms: tuple[float, float] | None = None
    target_scatter: Array | None = None


def compress_for_fit(Phi: Array, Y: Array, weight: Array | None, *, centred: bool) -> CompressedRows:
    """Rows in as few columns as one fit on all of them needs, with all that the fit asks for."""
    everything = np.arange(len(Y))
    if not centred or not subspace_is_small(Phi.shape[1], Y.shape[1], [everything], len(Y)):
        return rotate_to_axes(compress_rows(Phi, Y, centred=centred), weight, centred=centred)
    subspace = OutputSubspace(Phi, Y, weight, [everything])
    mean = subspace.weight @ Y / subspace.weight.sum()
    return replace(
        rotate_to_axes(subspace.rows, weight, centred=centred),
        norms=subspace.norms(everything),
        target_scatter=subspace.squares(everything, mean),
    )


def compress_rows(Phi: Array, Y: Array, *, centred: bool) -> CompressedRows:
    """Rotate wide tables so that neither has more columns than are needed to hold its n rows exactly.

    Where the mean does not matter, rows are taken relative to the first one, which makes constant columns
    exactly zero. Where it does, the basis of the outputs also spans the vector of ones, which the paper's
    centring of the whole Gram matrix singles out.

    Time n^2 (m + p), memory n (m + p); nothing of size m^2 or p^2 is formed when m, p > n.
    """
    n, features, outputs = len(Phi), None, None
    first_phi, first_y = np.zeros(Phi.shape[1]), np.zeros(Y.shape[1])
    if Phi.shape[1] > n:
        if centred:
            first_phi = np.asarray(Phi[0], dtype=np.float64)
        features, triangle = qr((Phi - first_phi).T, mode="economic")
        Phi = triangle.T
    if Y.shape[1] > n + 1:
        if centred:
            first_y = np.asarray(Y[0], dtype=np.float64)
        spanning = np.vstack([Y - first_y, np.zeros_like(first_y) if centred else np.ones_like(first_y)])
        outputs, triangle = qr(spanning.T, mode="economic")
        Y = triangle.T[:n]
    return CompressedRows(Phi, Y, features, outputs, first_phi, first_y)


def rotate_to_axes(rows: CompressedRows, weight: Array | None = None, *, centred: bool) -> CompressedRows:
    """Rotate features to their principal axes, where these are of very different lengths.

    Second moments are exact to rounding of the product of two columns' lengths. In most coordinates that is
    rounding of the longest axis, squared, which blurs all axes more than seven digits shorter; kernels with
    a fast decay have many, and a small alpha sees them. Along the axes each one keeps its own rounding.
    Axes too short to be told from zero in the rows themselves are left out. Original columns that differ
    that much already are left as they are, and so are large tables. Rows of zero weight do not count.

    Time n m^2.
    """
    m = rows.Phi.shape[1]
    if rows.Phi.size > LARGEST_ROTATED or m < 2:
        return rows
    Phi = np.asarray(rows.Phi, dtype=np.float64)
    counted = Phi if weight is None else Phi[weight > 0.0]
    centre = np.zeros(m)
    if centred and len(counted) > 0:
        # Relative to a row, so that constant columns are exactly zero.
        centre = counted[0] + np.mean(counted - counted[0], axis=0)
    counted = counted - centre
    if not counted.any() or (rows.features is None and not columns_are_alike(counted)):
        return rows
    _, spread, axes = svd(qr(counted, mode="r")[0][:m], full_matrices=False)
    keep = spread > rank_tolerance(m) * spread[0]
    if spread[keep][-1] >= _SHORT * spread[0]:
        return rows
    axes = axes[keep].T
    features, first_phi = axes, centre
    if rows.features is not None:
        features, first_phi = rows.features @ axes, rows.first_phi + rows.features @ centre
    return replace(rows, Phi=(Phi - centre) @ axes, features=features, first_phi=first_phi)


def columns_are_alike(rows: Array) -> bool:
    """Whether there are columns other than zero, and these are of lengths that one decomposition can keep."""
    lengths = np.linalg.norm(rows, axis=0)
    longest = lengths.max(initial=0.0)
    return bool(longest > 0.0 and not np.any((lengths > 0.0) & (lengths < _SHORT * longest)))


def subspace_is_small(n_features: int, n_outputs: int, parts: Sequence[Index], n: int) -> bool:
    """Whether an `OutputSubspace` is far smaller than the rows, which are fewer than the outputs."""
    dimension = sum(min(len(part), n_features + 1) for part in parts)
    return n_outputs > n + 1 and n_features < n and 2 * dimension < n


class OutputSubspace:
    """The subspace of very many outputs in which ridge solutions lie, and the rows projected on it.

    Parameters
    ----------
    Phi : ndarray of shape (n, m)
    Y : ndarray of shape (n, p)
    weight : ndarray of shape (n,) or None
    parts : list of index arrays
        Moments are to be taken of these rows, and of unions of them.

    Attributes
    ----------
    rows : CompressedRows
        Moments of a part, or of a union of parts, have from these rows the right means, C and B. The targets'
        own scatter V is too small by what lies outside of the subspace; `squares` and `norms` have that.

    Notes
    -----
    With w the weights of a part and P an orthonormal basis (n_part, m + 1) of the columns of w [1, Phi], the
    mean of its targets and every row of its B are combinations of the rows of P^T Y. An orthonormal basis
    R (p, q) of all those rows, q = (m + 1) times the number of parts, then holds all that a ridge solution
    can use. With an intercept nothing else of V is needed than its diagonal, and its norm for the alignment,
    which is that of the Gram matrix (n, n) of the targets.

    Time n p q + p q^2, and n^2 p for the norm; memory q p beside the targets. Compressing all rows takes
    time n^2 p several times over, and n p memory.
    """

    def __init__(self, Phi: Array, Y: Array, weight: Array | None, parts: Sequence[Index]) -> None:
        self.Y, self.weight = Y, np.ones(len(Y)) if weight is None else weight
        self.first = np.asarray(Y[0], dtype=np.float64)
        spanning = []
        for part in parts:
            design = np.hstack([np.ones((len(part), 1)), Phi[part]]) * self.weight[part, None]
            basis = qr(design, mode="economic")[0].T  # (m + 1, rows of the part)
            spanning.append(sum(basis[:, block] @ targets for block, targets in self._blocks(part)))
        stacked = np.vstack(spanning)  # (q, p)
        del spanning
        outputs = qr(stacked.T, mode="economic", overwrite_a=True)[0]  # (p, q)
        projected = np.empty((len(Y), outputs.shape[1]))
        for block, targets in self._blocks(np.arange(len(Y))):
            projected[block] = targets @ outputs
        zero = np.zeros(Phi.shape[1])
        self.rows = CompressedRows(Phi, projected, None, outputs, zero, self.first)

    def _blocks(self, index: Index) -> Iterator[tuple[slice, Array]]:
        """Targets of some rows, relative to the first of all, a block at a time."""
        height = max(1, _BLOCK_NUMBERS // self.Y.shape[1])
        for start in range(0, len(index), height):
            block = slice(start, min(start + height, len(index)))
            yield block, self.Y[index[block]] - self.first

    def squares(self, index: Index, centre: Array) -> Array:
        """Weighted sum of squares of each target about ``centre`` over some rows, (p,)."""
        total = np.zeros(self.Y.shape[1])
        for block, targets in self._blocks(index):
            targets -= centre - self.first
            total += self.weight[index[block]] @ np.square(targets, out=targets)
        return total

    def norms(self, index: Index) -> tuple[float, float]:
        """Norm and trace of the targets' scatter V of some rows."""
        weight = self.weight[index]
        share = weight / weight.sum()
        gram = self._gram[np.ix_(index, index)]
        towards = gram @ share
        gram = gram - towards - towards[:, None] + float(share @ towards)
        gram *= np.sqrt(np.outer(weight, weight))
        return float(np.linalg.norm(gram)), float(np.trace(gram))

    @cached_property
    def _gram(self) -> Array:
        """Inner products of the rows of targets, (n, n), relative to the first."""
        n, p = self.Y.shape
        gram = np.zeros((n, n), order="F")
        width = max(1, _BLOCK_NUMBERS // n)
        for start in range(0, p, width):
            columns = self.Y[:, start : start + width] - self.first[start : start + width]
            gram = dsyrk(1.0, columns.T, trans=1, beta=1.0, c=gram, overwrite_c=1)
        return np.triu(gram) + np.triu(gram, 1).T
