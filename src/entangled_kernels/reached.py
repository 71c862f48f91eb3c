"""Few features and very many outputs: the outputs that the features reach, without a rotation of all rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.linalg.blas import dsyrk

from .reduction import CompressedRows, along_axes, compress_rows

__all__ = ["ReachedOutputs", "compress_for_fit", "pays"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Blocks of targets hold about this many numbers.
_BLOCK_NUMBERS = 2**24


def pays(n_features: int, n_outputs: int, parts: Sequence[Index], n: int) -> bool:
    """Whether the reached outputs are far fewer than the rows, which are fewer than the outputs."""
    reached = sum(min(len(part), n_features + 1) for part in parts)
    return n_outputs > n + 1 and n_features < n and 2 * reached < n


class ReachedOutputs:
    """Rows whose targets are given in a basis of what features can say of them, part by part.

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
        own scatter V is too small by what lies outside of the basis; `squares` and `norms` have that.

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
        reduced = np.empty((len(Y), outputs.shape[1]))
        for block, targets in self._blocks(np.arange(len(Y))):
            reduced[block] = targets @ outputs
        zero = np.zeros(Phi.shape[1])
        self.rows = CompressedRows(Phi, reduced, None, outputs, zero, self.first)

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


def compress_for_fit(Phi: Array, Y: Array, weight: Array | None, *, centred: bool) -> CompressedRows:
    """Rows in as few columns as one fit on all of them needs; exact, with all that a fit asks for."""
    everything = np.arange(len(Y))
    if not centred or not pays(Phi.shape[1], Y.shape[1], [everything], len(Y)):
        return along_axes(compress_rows(Phi, Y, centred=centred), weight, centred=centred)
    reached = ReachedOutputs(Phi, Y, weight, [everything])
    mean = reached.weight @ Y / reached.weight.sum()
    return replace(
        along_axes(reached.rows, weight, centred=centred),
        norms=reached.norms(everything),
        target_scatter=reached.squares(everything, mean),
    )
