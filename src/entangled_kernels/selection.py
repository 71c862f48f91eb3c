"""Cross-validation from moments: every candidate's held-out error without touching a row twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from .learned import LearnedKernel
from .moments import Moments
from .reached import ReachedOutputs, pays
from .reduction import CompressedRows, Problem, along_axes, compress_rows, reduce_moments
from .ridge import KernelRidgeFactor, Spectral
from .solvers import Progress, SolverOptions, solve

__all__ = [
    "CHECKPOINTS",
    "Fold",
    "Member",
    "Split",
    "fold_errors",
    "folds_of_parts",
    "leave_one_out_sums",
    "make_folds",
    "member_factors",
    "member_paths",
    "partitions",
]

Array = NDArray[np.float64]
Split = tuple[NDArray[np.intp], NDArray[np.intp]]

ROUNDING = 1e-13
# The coefficients as the ridge problem gives them.
PLAIN = np.ones(1)
# With so many more outputs times alphas than features, errors of all alphas are found together.
MANY = 4
# Steps of the ascent path that are candidates of their own.
CHECKPOINTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Member:
    """One way to learn the kernel and predict with it; a candidate is a member, a gain and an alpha.

    ``n_steps`` is the number of steps taken along the path of an iterative solver, None for the closed form.
    """

    solver: str
    alignment_mix: float
    shrinkage: float
    target_alpha: float
    rank: int | float | None
    prediction: str
    n_steps: int | None = None


@dataclass(frozen=True, eq=False)
class Fold:
    """A training problem and what is needed of the rows held out from it.

    With e = y - f(phi) on a held-out row, ``weights`` a psd form N on the outputs, and all moments C, B, V of
    the held-out rows taken about the means of the training rows, the weighted error of coefficients W is

        sum e^T N e = tr(N V) - 2 tr(W^T B N) + tr(W^T C W N)

    Attributes
    ----------
    problem : Problem
        Of the training rows, in the coordinates of the moments.
    C : ndarray of shape (m', m')
        Held-out features.
    BN : ndarray of shape (m', k)
        Held-out features with targets, times the form.
    N : ndarray of shape (k, k)
    VN : float
        tr(N V).
    weight : float
        Total weight of the held-out rows.
    B : ndarray of shape (m', p')
        Held-out features with targets, in the coordinates of the moments.
    V : ndarray of shape (p', p') or (p,)
        Held-out targets in those coordinates, or the squares of each original target.
    outputs : ndarray of shape (p, p') or None
        Basis of those coordinates; None where they are the targets themselves.
    """

    problem: Problem
    C: Array
    BN: Array
    N: Array
    VN: float
    weight: float
    B: Array
    V: Array
    outputs: Array | None

    @classmethod
    def from_moments(
        cls,
        train: Moments,
        test: Moments,
        weights: Array,
        *,
        centred: bool,
        rows: CompressedRows | None = None,
    ) -> Fold:
        """Fold of training and held-out moments; ``weights`` is in the coordinates of the moments."""
        problem = reduce_moments(train, centred=centred, mix=0.5, rows=rows)
        F, R = problem.features, problem.outputs
        gap_phi, gap_y = test.mean_phi - problem.mean_phi, test.mean_y - problem.mean_y
        C = test.C + np.outer(test.weight * gap_phi, gap_phi)
        B = test.B + np.outer(test.weight * gap_phi, gap_y)
        V = test.V + np.outer(test.weight * gap_y, gap_y)
        B = F.T @ B
        return cls(
            problem=problem,
            C=F.T @ C @ F,
            BN=B @ weights @ R,
            N=R.T @ weights @ R,
            VN=float(np.vdot(weights, V)),
            weight=test.weight,
            B=B,
            V=V,
            outputs=None if rows is None else rows.outputs,
        )

    def error(self, coef: Array, gains: Array = PLAIN) -> Array:
        """Weighted squared error summed over the held-out rows, (g, ...) for coefficients (..., m', k).

        The coefficients are taken times each of the g gains.
        """
        linear = np.einsum("...fk,fk->...", coef, self.BN)
        quadratic = np.einsum("...fk,...fk->...", self.C @ coef, coef @ self.N)
        return _squares(self.VN, linear, quadratic, gains)

    def spectral_error(self, form: Spectral, gains: Array = PLAIN) -> Array:
        """What `error` gives, for all alphas of one kernel at the cost of a few of them.

        With G = back, s and t the gains of the axes, b and x what they multiply, and S = G^T C G, the
        quadratic term is s^T (S * b N b^T) s + 2 s^T (S * b N x^T) t + t^T (S * x N x^T) t, where * goes
        entry by entry.
        """
        G, s, t, b, x = form
        S, BN = G.T @ self.C @ G, G.T @ self.BN
        linear, quadratic = np.zeros(len(s)), np.zeros(len(s))
        parts = [(s, b), (t, x)] if t.any() else [(s, b)]
        for axes, rows in parts:
            linear = linear + axes @ np.einsum("fk,fk->f", rows, BN)
            for other, columns in parts:
                quadratic = quadratic + np.einsum("af,af->a", axes @ (S * (rows @ self.N @ columns.T)), other)
        return _squares(self.VN, linear, quadratic, gains)

    def target_errors(self, coef: Array, gains: Array = PLAIN) -> Array:
        """Squared error of each target summed over held-out rows, (g, a, p) for coefficients (a, m', k)."""
        a, m, k = coef.shape
        V, B, R = self._targets
        # One product for all alphas, which is faster than one for each.
        mapped = (self.C @ coef.transpose(1, 0, 2).reshape(m, a * k)).reshape(m, a, k).transpose(1, 0, 2)
        transposed = coef.transpose(0, 2, 1)
        linear = np.einsum("ako,ok->ao", transposed @ B, R)
        quadratic = np.einsum("ako,ok->ao", (transposed @ mapped) @ R.T, R)
        return _squares(V, linear, quadratic, gains)

    def spectral_target_errors(self, form: Spectral, gains: Array = PLAIN) -> Array:
        """What `target_errors` gives, without the coefficients of every alpha.

        With C = H^T H, whose H has no more rows than are held out, and the names of `spectral_error`, the
        quadratic term of a target is the squared length of (H G s) b + (H G t) x.
        """
        G, s, t, b, x = form
        V, B, R = self._targets
        Z, BG = self._root @ G, G.T @ B
        parts = [(s, b @ R.T), (t, x @ R.T)] if t.any() else [(s, b @ R.T)]
        linear = sum(axes @ (rows * BG) for axes, rows in parts)
        # All alphas in one product.
        tall, deep = (len(s) * len(Z), Z.shape[1]), (len(s), len(Z), len(V))
        values = sum((Z * axes[:, None, :]).reshape(tall) @ rows for axes, rows in parts)
        quadratic = np.einsum("aho,aho->ao", *2 * [np.reshape(values, deep)])
        return _squares(V, np.asarray(linear), quadratic, gains)

    @cached_property
    def _targets(self) -> tuple[Array, Array, Array]:
        """Squares (p,), products with the features (m', p) and basis (p, k) of the original targets."""
        B, R, V = self.B, self.problem.outputs, self.V
        if self.outputs is None:
            return V if V.ndim == 1 else np.diag(V), B, R
        if V.ndim == 2:
            V = np.einsum("ok,ok->o", self.outputs @ V, self.outputs)
        return V, B @ self.outputs.T, self.outputs @ R

    @cached_property
    def _root(self) -> Array:
        """H, (h, m'), with H^T H = C."""
        if self.C.size == 0:
            return np.zeros((0, 0))
        # Every axis in its own unit, so that short ones are not lost beside long ones.
        unit = np.sqrt(np.maximum(np.diag(self.C), 0.0))
        unit[unit == 0.0] = 1.0
        values, vectors = eigh(self.C / unit / unit[:, None])
        keep = values > np.finfo(float).eps * values[-1]
        return np.asarray(np.sqrt(values[keep])[:, None] * vectors[:, keep].T * unit)


def _squares(total: float | Array, linear: Array, quadratic: Array, gains: Array) -> Array:
    """total - 2 g linear + g^2 quadratic for every gain g, on the first axis.

    It is a difference: an error below rounding of the targets' own squares is given as that.
    """
    g = gains.reshape(-1, *np.ones(np.ndim(linear), dtype=int))
    return np.asarray(np.maximum(total - 2.0 * g * linear + g**2 * quadratic, ROUNDING * total))


def make_folds(
    Phi: Array,
    Y: Array,
    weight: Array | None,
    splits: Sequence[Split],
    output_weights: Array,
    *,
    centred: bool,
    norms: bool = True,
    product_dtype: str = "float64",
) -> Iterator[Fold]:
    """Folds of the splits, (training rows, held-out rows) each; errors weigh output o by output_weights[o].

    Where the held-out rows of the splits are a partition, as in K-fold and leave-one-out, every row is
    visited once: training moments are sums of the other parts, never the total minus a part. Repeated
    partitions are visited once each. Without ``norms`` the alignments of the training problems may be in the
    wrong unit, which is of no account to the closed form.
    """
    n, m, p = len(Y), Phi.shape[1], Y.shape[1]
    rows: CompressedRows | None = None
    for group in partitions(splits, n):
        parts = [test for _, test in group] + ([group[0][0]] if len(group) == 1 else [])
        reached = ReachedOutputs(Phi, Y, weight, parts) if centred and pays(m, p, parts, n) else None
        if reached is not None:
            turned = along_axes(reached.rows, weight, centred=centred)
            reduced = (turned, output_weights, centred, product_dtype, reached, norms)
            yield from _folds_of_group(group, weight, *reduced)
            continue
        if rows is None:
            rows = along_axes(compress_rows(Phi, Y, centred=centred), weight, centred=centred)
        yield from _folds_of_group(group, weight, rows, output_weights, centred, product_dtype)


def _folds_of_group(
    group: Sequence[Split],
    weight: Array | None,
    rows: CompressedRows,
    output_weights: Array,
    centred: bool,
    product_dtype: str,
    reached: ReachedOutputs | None = None,
    norms: bool = True,
) -> Iterator[Fold]:
    R = rows.outputs
    form = np.diag(output_weights) if R is None else R.T @ (output_weights[:, None] * R)

    def moments(index: NDArray[np.intp]) -> Moments:
        own = None if weight is None else weight[index]
        return Moments.from_arrays(rows.Phi[index], rows.Y[index], own, product_dtype=product_dtype)

    tests = [moments(test) for _, test in group]
    trains = leave_one_out_sums(tests) if len(group) > 1 else [moments(train) for train, _ in group]
    for train, test, (train_index, test_index) in zip(trains, tests, group, strict=True):
        if train.weight == 0.0 or test.weight == 0.0:
            raise ValueError("every fold needs rows of positive sample_weight in both of its parts")
        if reached is None or R is None:
            yield Fold.from_moments(train, test, form, centred=centred, rows=rows)
            continue
        own = replace(rows, norms=reached.norms(train_index)) if norms else rows
        fold = Fold.from_moments(train, test, form, centred=centred, rows=own)
        mean_y = rows.first_y + train.mean_y @ R.T
        squares = reached.squares(test_index, mean_y)
        yield replace(fold, V=squares, VN=float(output_weights @ squares))


def folds_of_parts(parts: Sequence[Moments], output_weights: Array, *, centred: bool) -> Iterator[Fold]:
    """Folds that hold out one part each, from the moments of the parts."""
    form = np.diag(output_weights)
    for train, test in zip(leave_one_out_sums(parts), parts, strict=True):
        yield Fold.from_moments(train, test, form, centred=centred)


def partitions(splits: Sequence[Split], n: int) -> Iterator[Sequence[Split]]:
    """Consecutive splits whose held-out rows are all rows once, and other splits one by one."""
    start = 0
    while start < len(splits):
        sizes = np.cumsum([len(test) for _, test in splits[start:]])
        stop = start + int(np.searchsorted(sizes, n)) + 1
        tests = np.concatenate([test for _, test in splits[start:stop]])
        whole = len(tests) == n == len(np.unique(tests))
        stop = stop if whole and all(len(a) + len(b) == n for a, b in splits[start:stop]) else start + 1
        yield splits[start:stop]
        start = stop


def leave_one_out_sums(parts: Sequence[Moments]) -> list[Moments]:
    """For every part the sum of all others, from running sums in both directions."""
    before = list(accumulate(parts, initial=0))[:-1]
    after = list(accumulate(reversed(parts), initial=0))[-2::-1]
    return [left + right for left, right in zip(before, after, strict=True)]  # type: ignore[operator]


def member_paths(
    problem: Problem, members: Iterable[Member], alphas: Array, options: SolverOptions
) -> Iterator[tuple[Member, Array]]:
    """Every member with its coefficients for all alphas, (number of alphas, m', k)."""
    for member, factor in member_factors(problem, members, options):
        yield member, factor.coefficients(alphas)


def member_factors(
    problem: Problem, members: Iterable[Member], options: SolverOptions
) -> Iterator[tuple[Member, KernelRidgeFactor]]:
    """Every member with the ridge problem of its kernel, factorised.

    Members that differ only in shrinkage and prediction share one learned kernel.
    """
    groups: dict[tuple[object, ...], list[Member]] = {}
    for member in members:
        # Whether anything regularises matters to the closed form.
        regularised = member.target_alpha > 0.0 or member.shrinkage > 0.0
        key = (member.solver, member.alignment_mix, member.target_alpha, member.rank, regularised)
        groups.setdefault(key, []).append(member)
    for group in groups.values():
        kernels = _learn(problem.with_mix(group[0].alignment_mix), group, options)
        for member in group:
            kernel = problem.finished(kernels[member.n_steps], member.shrinkage)
            if member.prediction == "partial_trace":
                kernel = kernel.partial_trace(problem.n_outputs)
            yield member, KernelRidgeFactor(problem, kernel)


def _learn(problem: Problem, group: list[Member], options: SolverOptions) -> dict[int | None, LearnedKernel]:
    """The learned kernel after every number of steps that the group asks for."""
    first = group[0]
    if all(member.shrinkage == 1.0 for member in group):
        plain = LearnedKernel.from_operators(np.zeros((*problem.targets.shape, 0)))
        return {member.n_steps: plain for member in group}
    wanted = {member.n_steps for member in group if member.n_steps is not None}
    kernels: dict[int | None, LearnedKernel] = {}

    def keep(progress: Progress) -> None:
        if progress.n_iter in wanted:
            kernels[progress.n_iter] = LearnedKernel.from_operators(progress.Q)

    own = replace(
        options,
        rank=_rank(first.rank, problem),
        target_alpha=first.target_alpha,
        shrinkage=max(member.shrinkage for member in group),
        max_iter=max(wanted, default=options.max_iter),
        # Every group and fold starts alike, whatever was done before.
        rng=deepcopy(options.rng),
        callback=keep,
    )
    result = solve(first.solver, problem, own)
    # A solver that stops early would have stayed where it is.
    return {member.n_steps: kernels.get(member.n_steps, result.kernel) for member in group}


def _rank(rank: int | float | None, problem: Problem) -> int | None:
    if rank is None:
        return None
    if isinstance(rank, float):
        return max(1, round(rank * problem.full_rank))
    return min(rank, problem.full_rank)


def fold_errors(
    fold: Fold,
    members: Sequence[Member],
    alphas: Array,
    options: SolverOptions,
    gains: Array = PLAIN,
    *,
    per_target: bool = False,
) -> Array:
    """Mean held-out error of every member, gain and alpha, (members, gains, alphas).

    With ``per_target`` squared errors of every target instead, (members, gains, alphas, p).
    """
    of_form, of_coef = fold.spectral_error, fold.error
    if per_target:
        of_form, of_coef = fold.spectral_target_errors, fold.target_errors
    errors: dict[Member, Array] = {}
    for member, factor in member_factors(fold.problem, members, options):
        form = _shared_form(factor, alphas)
        error = of_coef(factor.coefficients(alphas), gains) if form is None else of_form(form, gains)
        errors[member] = error / fold.weight
    return np.stack([errors[member] for member in members])


def _shared_form(factor: KernelRidgeFactor, alphas: Array) -> Spectral | None:
    """What the coefficients of all alphas share, where there is such a form and it is worth while.

    Coefficients take m k numbers for each alpha; what all alphas share takes m^2 in their stead.
    """
    m, k = factor.problem.targets.shape
    return factor.spectral(alphas) if k * len(alphas) >= MANY * m else None
