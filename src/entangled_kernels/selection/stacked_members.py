"""Closed-form members of one problem, many at a time: stacked decompositions in the place of one for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..learning.problem import Problem
from ..learning.ridge import Spectral
from ..linalg import Array, Index
from .candidates import Member

__all__ = ["StackedKernels", "in_two", "is_closed_form", "stacked_forms", "without_metric"]

# Members are taken together in stacks of about this many numbers, which stay near the processor.
_STACK_NUMBERS = 2**18
# Where axes differ more than this in their second moments, rounding of long ones would swamp short ones.
_GRADED = 1e4
# Scales that differ by no more than this share are equal but for rounding.
_ALIKE = 1e-12
# Up to so many axes of the features a decomposition costs no more than what is done about it.
_FEW_AXES = 128


def in_two(problem: Problem, members: Iterable[Member], n_alphas: int) -> tuple[list[Member], list[Member]]:
    """Members that `stacked_forms` takes, and others.

    It takes those whose kernel is known in closed form, and worth a decomposition of all its axes, m'^3,
    where `KernelRidgeFactor` takes m' k^2 for each of the alphas. Without a plain part, k axes are all.
    """
    m, k = problem.targets.shape
    few = m <= max(_FEW_AXES, np.sqrt(n_alphas) * k)
    stacked, others = list[Member](), list[Member]()
    for member in members:
        taken = is_closed_form(problem, member) and (few or member.shrinkage == 0.0 or without_metric(member))
        (stacked if taken else others).append(member)
    return stacked, others


def is_closed_form(problem: Problem, member: Member) -> bool:
    """Whether the kernel of a member is one of `StackedKernels`."""
    return member.shrinkage == 1.0 or (
        member.solver == "closed-form" and member.rank is None and bool(problem.targets.any())
    )


def without_metric(member: Member) -> bool:
    """Whether the axes of the problem are those of the kernel, which is plain or has an operator beside."""
    return member.shrinkage == 1.0 or (member.alignment_mix == 1.0 and member.prediction == "entangled")


def stacked_forms(
    problem: Problem, members: Sequence[Member], alphas: Array
) -> Iterator[tuple[Index, Spectral]]:
    """Places of some members at a time, with the coefficients of all alphas of these as one `Spectral`.

    Notes
    -----
    In whitened coordinates the metric of a member is plain diag(scale) + metric Ww Ww^T, with Ww a ridge fit
    of the targets. Where one of the two is zero, the axes are those of the problem, or the left singular
    vectors of Ww; else they are eigenvectors, found for many members in one call. Where all scales are equal,
    as of a forest with a row in every leaf, they are the singular vectors too. The operator, where there
    is one, is a multiple of vec(Ww), so that one number for each alpha says how much of it is added.

    Time m'^3 for every member whose metric has both parts, and m' k (m' + number of alphas) for each.
    """
    if len(members) == 0:
        return
    kernels = StackedKernels(problem, members)
    root = np.sqrt(problem.scale)
    b = problem.targets / root[:, None]
    m, k = b.shape
    step = max(1, _STACK_NUMBERS // max(1, m * max(m, k * len(alphas))))
    kinds = 4 * (kernels.plain == 0.0) + 2 * (kernels.metric > 0.0) + (kernels.operator > 0.0)
    for kind in np.unique(kinds):
        places = np.flatnonzero(kinds == kind)
        for start in range(0, len(places), step):
            own = places[start : start + step]
            turn, levels = kernels.axes(own)
            back = 1.0 / root if turn is None else kernels.back(own, turn, levels)
            turned = b if turn is None else turn.transpose(0, 2, 1) @ b
            delta = 1.0 / (levels[:, None, :] + alphas[:, None])  # (members, alphas, m')
            gains = levels[:, None, :] * delta
            if kind % 2 == 0:
                none = np.zeros_like(gains[..., :0])
                yield own, Spectral(back, gains, none, turned, np.zeros((len(own), 0, k)))
                continue
            X = np.sqrt(kernels.operator[own])[:, None, None] * kernels.fits[kernels.fit[own]]
            X = X if turn is None else turn.transpose(0, 2, 1) @ X
            # X^T dual of every alpha, (members, alphas, 1).
            target, inner = np.sum(X * turned, axis=2), np.sum(X * X, axis=2)  # (members, m')
            along = delta @ target[:, :, None] / (1.0 + delta @ inner[:, :, None])
            yield own, Spectral(back, gains, along * alphas[:, None] * delta, turned, X)


class StackedKernels:
    """Kernels (plain I + metric W W^T) kron I + operator vec(W) vec(W)^T, with W ridge fits of unit norm.

    Attributes
    ----------
    plain, metric, operator : ndarray of shape (members,)
        As `Problem.finished` scales them.
    fit : ndarray of shape (members,)
        Which of the fits is W.
    fits : ndarray of shape (fits, m', k)
        Whitened: sqrt(scale) * W.
    """

    def __init__(self, problem: Problem, members: Sequence[Member]) -> None:
        self.scale, p = problem.scale, problem.n_outputs
        shrinkage = np.array([member.shrinkage for member in members])
        target_alphas, self.fit = np.unique(
            [0.0 if member.shrinkage == 1.0 else member.target_alpha for member in members],
            return_inverse=True,
        )
        total = float(self.scale.sum())
        W = problem.targets / (self.scale + target_alphas[:, None] * total / problem.n_features)[:, :, None]
        length = np.linalg.norm(W, axis=(1, 2), keepdims=True)
        self.fits = np.sqrt(self.scale)[:, None] * W / np.where(length > 0.0, length, 1.0)
        share = np.array([_operator_share(member) for member in members])
        self.plain = shrinkage / (problem.n_features * p)
        self.operator = (1.0 - shrinkage) * share
        self.metric = (1.0 - shrinkage) * (1.0 - share) / p
        traced = np.array([member.prediction == "partial_trace" for member in members])
        self.metric, self.operator = (
            np.where(traced, self.metric + self.operator / p, self.metric),
            np.where(traced, 0.0, self.operator),
        )
        spread = np.sum(self.fits**2, axis=(1, 2))[self.fit]
        trace = p * (self.plain * total + self.metric * spread) + self.operator * spread
        factor = p * total / np.where(trace > 0.0, trace, 1.0)
        self.plain, self.metric, self.operator = (
            factor * own for own in (self.plain, self.metric, self.operator)
        )
        self._all_alike = bool(np.all(self.scale <= (1.0 + _ALIKE) * self.scale.min(initial=np.inf)))
        self._singular: dict[int, tuple[Array, Array]] = {}

    def axes(self, places: Index) -> tuple[Array | None, Array]:
        """Eigenvectors (members, m', r) and eigenvalues (members, r) of the whitened metrics, r = m' or less.

        The members are of one kind: without a metric the axes are those of the problem, None; without a plain
        part those of the fit; and with both of them all, unless the problem has no axes of its own because
        all of its scales are equal, so that those of the fit, which then is a multiple of the targets, do.
        """
        plain, metric = self.plain[places], self.metric[places]
        if not metric.any():
            return None, plain[:, None] * self.scale
        if self._all_alike or not plain.any():
            found = [self._singular_vectors(int(fit)) for fit in self.fit[places]]
            levels = metric[:, None] * np.stack([values for _, values in found]) ** 2
            return np.stack([left for left, _ in found]), levels + plain[:, None] * self.scale.mean()
        m = len(self.scale)
        fits, which = np.unique(self.fit[places], return_inverse=True)
        gram = self.fits[fits] @ self.fits[fits].transpose(0, 2, 1)
        A = metric[:, None, None] * gram[which]
        A[:, np.arange(m), np.arange(m)] += plain[:, None] * self.scale
        levels, turn = np.linalg.eigh(A)
        return turn, np.maximum(levels, 0.0)

    def back(self, places: Index, turn: Array, levels: Array) -> Array:
        """Directions in the coordinates of the problem, turn / sqrt(scale), (members, m', r).

        With A the whitened metric, A turn = turn * levels. What joins an axis of large level to a short one
        is rounding in ``turn``, which its length would blow up; there it is taken from the left side.
        """
        root = np.sqrt(self.scale)
        back = turn / root[:, None]
        if self.scale.max() <= _GRADED * self.scale.min():
            return back
        fits = self.fits[self.fit[places]]
        metric = self.metric[places, None, None] / root[:, None] * fits
        other = self.plain[places, None, None] * root[:, None] * turn + metric @ (
            fits.transpose(0, 2, 1) @ turn
        )
        short = self.scale[:, None] * self.plain[places, None, None] < levels[:, None, :]
        return np.divide(other, levels[:, None, :], out=back, where=short)

    def _singular_vectors(self, fit: int) -> tuple[Array, Array]:
        if fit not in self._singular:
            left, values, _ = np.linalg.svd(self.fits[fit], full_matrices=False)
            self._singular[fit] = left, values
        return self._singular[fit]


def _operator_share(member: Member) -> float:
    """The mix, or one where nothing regularises, as `solve_closed_form` has it."""
    alone = member.target_alpha == member.shrinkage == 0.0 and member.alignment_mix > 0.0
    return 1.0 if alone else member.alignment_mix
