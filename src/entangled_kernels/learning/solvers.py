"""Solvers that learn a kernel: a closed form, steepest ascent and L-BFGS, behind one registry.

Every solver is a function ``solve(problem, settings, callback) -> SolverResult`` that knows nothing
of estimators. To add one, write such a function and name it in `SOLVERS`: the tests run over the
registry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import eigh, svd
from scipy.optimize import minimize

from ..linalg import Array, rank_tolerance
from ..threads import one_thread
from .alignment import Line
from .problem import Problem
from .ridge import LearnedKernel

__all__ = [
    "SOLVERS",
    "FitSettings",
    "Progress",
    "Solver",
    "SolverResult",
    "ascend",
    "solve",
    "solve_ascent",
    "solve_closed_form",
    "solve_lbfgs",
    "starting_point",
]

# With fewer multiplications per step than this, a second BLAS thread costs more than it saves.
_SMALL_STEP = 2e7
# A step of the ascent must bring this share of the increase that the gradient promises.
SUFFICIENT_INCREASE = 1e-4
MAX_HALVINGS = 60
Callback = Callable[["Progress"], bool | None] | None
FindStep = Callable[[Line, list[float], Array, float], float]


class Progress(NamedTuple):
    """State of an iterative solver after a step, for callbacks; Q (m', k, r) has unit norm."""

    n_iter: int
    value: float
    gradient_norm: float
    Q: Array


class FitSettings(NamedTuple):
    """How to learn a kernel and solve the ridge problem with it.

    Attributes
    ----------
    solver : {"closed-form", "ascent", "lbfgs"}
    rank : int, float or None
        Largest number of Kraus operators, or its share of the full rank; None for as many as the
        solver has use for. For a prediction of reduced rank, the number or the share of directions
        of the targets, None for all; the kernel then has as many operators as it can use.
    alignment_mix : float
        Weight of the full alignment beside the partial-trace alignment.
    shrinkage : float
        Share of the plain kernel that is mixed into the learned one. The closed form gives the
        optimum itself when neither this nor ``target_alpha`` regularises.
    target_alpha : float
        Ridge of the least-squares fit behind the closed form, in units of the mean eigenvalue tr(C)
        / m.
    alpha : float
        Ridge penalty of the predictions.
    prediction : {"entangled", "partial_trace", "reduced_rank"}
    init : {"identity", "random"} or ndarray of shape (m', k, r)
        Start of an iterative solver.
    max_iter : int
        Number of steps asked for.
    tol : float
        An iterative solver has converged when the gradient on the unit sphere is no longer than
        this.
    seed : int
        Of a random start.
    """

    solver: str = "closed-form"
    rank: int | float | None = None
    alignment_mix: float = 0.5
    shrinkage: float = 0.25
    target_alpha: float = 0.1
    alpha: float = 1.0
    prediction: str = "entangled"
    init: str | Array = "identity"
    max_iter: int = 200
    tol: float = 1e-6
    seed: int = 0

    def n_operators(self, problem: Problem) -> int | None:
        """Largest number of Kraus operators of the learned kernel; None for as many as it can use."""
        if self.rank is None or self.prediction == "reduced_rank":
            return None
        return _count(self.rank, problem.full_rank)

    def used_kernel(self, problem: Problem, kernel: LearnedKernel) -> LearnedKernel:
        """The kernel to predict with: the learned one, or its partial trace in all or few directions."""
        if self.prediction == "entangled":
            return kernel
        kernel = kernel.partial_trace(problem.n_outputs)
        if self.prediction == "partial_trace" or self.rank is None:
            return kernel
        n_outputs = problem.targets.shape[1]
        n_directions = _count(self.rank, n_outputs)
        return replace(kernel, n_directions=None if n_directions == n_outputs else n_directions)


def _count(rank: int | float, full: int) -> int:
    """A rank as a number: a count, of which at most ``full`` matter, or a share of ``full``."""
    if isinstance(rank, Integral):
        return min(int(rank), full)
    return max(1, round(float(rank) * full))


class SolverResult(NamedTuple):
    """A learned kernel of trace one and how it was found.

    Attributes
    ----------
    kernel : LearnedKernel
        In the reduced coordinates of the problem, tr D = 1.
    value : float
        Its alignment with the targets.
    converged : bool
        Whether the tolerance was met; always true of a closed form.
    reason : str
        Why the solver stopped: ``"closed form"``, ``"tolerance"``, ``"max_iter"``, ``"callback"``,
        ``"nothing to learn"`` where features and targets are uncorrelated, or ``"stalled"`` where
        no step raises the alignment although the gradient is not small.
    n_iter, n_evaluations : int
    history : ndarray
        Alignment at the start and after every step.
    """

    kernel: LearnedKernel
    value: float
    converged: bool
    reason: str
    n_iter: int
    n_evaluations: int
    history: Array


@dataclass(frozen=True)
class Solver:
    """A way to learn a kernel, and its properties.

    Attributes
    ----------
    function : callable
        ``solve(problem, settings, callback) -> SolverResult``.
    iterative : bool
        Whether it takes steps from a start. Then it reads ``init``, ``max_iter`` and ``tol``, not
        ``target_alpha``, and without a rank it learns as many Kraus operators as the data can use.
    has_path : bool
        Whether the kernels after few steps are regularised ones that are worth selecting from.
    """

    function: Callable[[Problem, FitSettings, Callback], SolverResult]
    iterative: bool
    has_path: bool


def solve_closed_form(
    problem: Problem, settings: FitSettings, callback: Callback = None
) -> SolverResult:
    """Kernel aligned with the ridge fit of the targets, D of trace one.

    Notes
    -----
    With an intercept both alignment terms peak together, at the kernel f(x) f(z)^T of the
    least-squares fit f. With the ridge fit W = (C + target_alpha tr(C)/m I)^-1 B in its place, and
    the two optima mixed as the objective mixes its terms,

        D = (1 - mix) W W^T kron I_p / (p ||W||^2) + mix vec(W^T) vec(W^T)^T / ||W||^2

    With neither ``target_alpha`` nor ``shrinkage`` nothing is regularised, and D is the maximiser
    of the alignment itself: vec(W^T) vec(W^T)^T / ||W||^2, for every mix but 0, where the metric
    alone maximises.

    With a ``rank``, the result is the best approximation of D by that many Kraus operators, for the
    outputs that the features explain. Without it the first part is a metric and the second one
    operator.

    Time m' k, or m' k (m' + k) + r m' k with a rank.
    """
    mean_eigenvalue = problem.scale.sum() / problem.n_features
    W = problem.targets / (problem.scale + settings.target_alpha * mean_eigenvalue)[:, None]
    W = W / np.linalg.norm(W)
    mix = settings.alignment_mix
    share = 1.0 if mix > 0.0 and settings.target_alpha == settings.shrinkage == 0.0 else mix
    rank = settings.n_operators(problem)
    if rank is None:
        L = np.sqrt((1.0 - share) / problem.n_outputs) * W
        Q = np.sqrt(share) * W[:, :, None]
        L = L if share < 1.0 else L[:, :0]
        kernel = LearnedKernel(0.0, L, Q if share > 0.0 else Q[:, :, :0])
    else:
        kernel = LearnedKernel.from_operators(_leading_operators(W, share, problem.n_outputs, rank))
    terms = problem.alignment_terms(kernel)
    value = (1.0 - mix) * terms[0] + mix * terms[1]
    return SolverResult(kernel, value, True, "closed form", 1, 1, np.array([value]))


def _leading_operators(W: Array, mix: float, n_outputs: int, rank: int) -> Array:
    """Scaled leading eigenvectors of D as Q (m', k, r), of unit norm.

    With W = sum_j s_j u_j v_j^T of unit norm, D maps u_j kron v_l to a multiple of itself for j !=
    l, and the span of the u_j kron v_j to itself. So its eigenvectors are those of one small
    matrix, (1 - mix) / p diag(s^2) + mix s s^T, and the pairs j != l with eigenvalue (1 - mix) / p
    s_j^2.
    """
    U, s, Vt = svd(W, full_matrices=False)
    U, s, Vt = U[:, s > 0], s[s > 0], Vt[s > 0]
    spread = (1.0 - mix) / n_outputs
    values, vectors = eigh(spread * np.diag(s**2) + mix * np.outer(s, s))
    paired = np.einsum("fj,ji,jo->foi", U, vectors, Vt)  # (m', k, number of s)
    first, second = np.nonzero(~np.eye(len(s), dtype=bool))
    all_values = np.concatenate([values, spread * s[first] ** 2])
    order = np.argsort(-all_values, kind="stable")[:rank]
    order = order[all_values[order] > rank_tolerance(len(s)) * all_values[order[0]]]
    chosen = np.empty((*W.shape, len(order)))
    for column, index in enumerate(order):
        if index < len(s):
            chosen[:, :, column] = paired[:, :, index]
        else:
            pair = index - len(s)
            chosen[:, :, column] = np.outer(U[:, first[pair]], Vt[second[pair]])
    scaled = chosen * np.sqrt(all_values[order])
    return np.asarray(scaled / np.linalg.norm(scaled))


def solve_ascent(
    problem: Problem, settings: FitSettings, callback: Callback = None
) -> SolverResult:
    """Follow the gradient of the alignment over Q of unit norm, with backtracking.

    Notes
    -----
    The alignment does not change when Q is scaled, so its gradient at Q is tangent to the sphere,
    and a step followed by division by the norm is a retraction. The first trial step has unit
    length, later ones twice the last that was taken; a step is halved until it brings
    `SUFFICIENT_INCREASE` of what the gradient promises. The value never falls, so the last point is
    the best.

    Reduced coordinates are a rotation of the original ones, so the path is the same as there. The
    objective is evaluated at sqrt(scale) * Q, where the features' form is the identity.

    Time per step m' k r (m' + r), however many trial steps it takes.
    """
    return ascend(problem, settings, _double_and_halve, callback)


def ascend(
    problem: Problem, settings: FitSettings, find_step: FindStep, callback: Callback = None
) -> SolverResult:
    """Steepest ascent on the unit sphere, with steps by a rule.

    ``find_step(line, history, gradient, last)`` gets the objective along the gradient, its values
    so far, the gradient, and the last step, and gives the next step; zero ends the ascent.
    """
    Q = starting_point(problem, settings)
    root = np.sqrt(problem.scale)[:, None, None]
    mix, at = settings.alignment_mix, problem.whitened.evaluate(root * Q, settings.alignment_mix)
    history, reason, step, n_iter = [at.value], "max_iter", 0.0, 0
    while True:
        gradient = root * at.gradient
        gradient_norm = float(np.linalg.norm(gradient))
        if n_iter > 0 and callback is not None:
            Q.flags.writeable = False
            if callback(Progress(n_iter, at.value, gradient_norm, Q)):
                reason = "callback"
                break
        if gradient_norm <= settings.tol:
            reason = "tolerance"
            break
        if n_iter == settings.max_iter:
            break
        line = problem.whitened.line(root * Q, root * gradient, mix, at)
        step = find_step(line, history, gradient, step)
        if step == 0.0:
            reason = "stalled"
            break
        Q = Q + step * gradient
        norm = float(np.linalg.norm(Q))
        Q /= norm
        at = problem.whitened.evaluate(root * Q, mix, line.inner_at(step, 1.0 / norm))
        history.append(at.value)
        n_iter += 1
    kernel = LearnedKernel.from_operators(Q)
    converged = reason == "tolerance"
    return SolverResult(kernel, at.value, converged, reason, n_iter, n_iter + 1, np.array(history))


def _double_and_halve(line: Line, history: list[float], gradient: Array, last: float) -> float:
    """The first step that raises the objective enough: twice the last, or unit length, halved; or 0."""
    gradient_norm = float(np.linalg.norm(gradient))
    step = 2.0 * last or 1.0 / gradient_norm
    for _ in range(MAX_HALVINGS):
        if line(step) >= history[-1] + SUFFICIENT_INCREASE * step * gradient_norm**2:
            return step
        step *= 0.5
    return 0.0


def solve_lbfgs(problem: Problem, settings: FitSettings, callback: Callback = None) -> SolverResult:
    """Maximise the scale-invariant alignment with L-BFGS in whitened coordinates.

    Notes
    -----
    The unknown is X = sqrt(scale) * Q, in which the feature form is the identity: the conditioning
    of the features, which slows `solve_ascent`, does not enter. Nothing holds the norm of X, which
    does not change the objective; the gradient is measured as it would be at unit norm.

    Time per evaluation m' k r (m' + r).
    """
    root = np.sqrt(problem.scale)[:, None, None]
    start = root * starting_point(problem, settings)
    start /= np.linalg.norm(start)
    best_value, best_slope, best_Q = -np.inf, np.inf, start
    n_evaluations, reason, history = 0, "", list[float]()

    def evaluate(x: Array) -> tuple[float, Array]:
        nonlocal best_value, best_slope, best_Q, n_evaluations
        X = x.reshape(start.shape)
        at = problem.whitened.evaluate(X, settings.alignment_mix)
        n_evaluations += 1
        if at.value > best_value:
            best_value, best_Q = at.value, X / root
            best_slope = float(np.linalg.norm(at.gradient) * np.linalg.norm(X))
        return -at.value, -at.gradient.reshape(-1)

    def after_step(x: Array) -> None:
        nonlocal reason
        history.append(best_value)
        if best_slope <= settings.tol:
            reason = "tolerance"
        if callback is not None and len(history) > 1:
            Q = best_Q / np.linalg.norm(best_Q)
            Q.flags.writeable = False
            if callback(Progress(len(history) - 1, best_value, best_slope, Q)):
                reason = reason or "callback"
        if reason and len(history) > 1:
            raise StopIteration

    evaluate(start.reshape(-1))
    after_step(start)
    if not reason:
        outcome = minimize(
            evaluate,
            start.reshape(-1),
            jac=True,
            method="L-BFGS-B",
            callback=after_step,
            # `after_step` decides when to stop: SciPy's tests are of single entries and single steps.
            options={
                "maxiter": settings.max_iter,
                "maxfun": 100 * settings.max_iter,
                "ftol": 0.0,
                "gtol": 0.0,
            },
        )
        reason = reason or ("max_iter" if outcome.nit >= settings.max_iter else "stalled")
    return SolverResult(
        LearnedKernel.from_operators(best_Q / np.linalg.norm(best_Q)),
        best_value,
        reason == "tolerance",
        reason,
        len(history) - 1,
        n_evaluations,
        np.array(history),
    )


def starting_point(problem: Problem, settings: FitSettings) -> Array:
    """Q (m', k, r) of unit norm: a given or random start, or the plain kernel.

    Notes
    -----
    With m' * k operators each has one (feature, output) pair, and D is the identity. With fewer,
    each has a piece of a diagonal of the (feature, output) table, so that no feature and no output
    is in it twice: otherwise an operator would start in a subspace that the gradient of the
    partial-trace term cannot leave. If all pairs are used, the partial trace of D is the identity.
    Diagonals begin at the strongest features and outputs, and entries have the signs of the
    targets.
    """
    targets = problem.targets
    m, k = targets.shape
    if not isinstance(settings.init, str):
        Q = np.array(settings.init, dtype=np.float64)
        return np.asarray(Q / np.linalg.norm(Q))
    rank = settings.n_operators(problem) or problem.full_rank
    if settings.init == "random":
        Q = np.random.default_rng(settings.seed).standard_normal((m, k, rank))
        return np.asarray(Q / np.linalg.norm(Q))
    features = np.argsort(-np.linalg.norm(targets, axis=1), kind="stable")
    outputs = np.argsort(-np.linalg.norm(targets, axis=0), kind="stable")
    diagonal, position = np.divmod(np.arange(min(m * k, rank * min(m, k))), min(m, k))
    feature = features[(position + diagonal * (m >= k)) % m]
    output = outputs[(position + diagonal * (m < k)) % k]
    # Consecutive pairs belong to one operator; the first operators hold one pair more than the
    # last.
    sizes = [len(pairs) for pairs in np.array_split(position, rank)]
    Q = np.zeros((m, k, rank))
    signs = np.where(targets[feature, output] < 0, -1.0, 1.0)
    Q[feature, output, np.repeat(np.arange(rank), sizes)] = signs
    return np.asarray(Q / np.linalg.norm(Q))


SOLVERS: Final[dict[str, Solver]] = {
    "closed-form": Solver(solve_closed_form, iterative=False, has_path=False),
    "ascent": Solver(solve_ascent, iterative=True, has_path=True),
    "lbfgs": Solver(solve_lbfgs, iterative=True, has_path=False),
}


def solve(problem: Problem, settings: FitSettings, callback: Callback = None) -> SolverResult:
    """Learn a kernel; the plain kernel where features and targets are uncorrelated.

    ``callback`` gets a `Progress` after every step of an iterative solver; a true answer stops it.
    """
    m, k = problem.targets.shape
    if not problem.targets.any():
        kernel = LearnedKernel(
            1.0 / (problem.n_features * problem.n_outputs), np.zeros((m, 0)), np.zeros((m, k, 0))
        )
        return SolverResult(kernel, 0.0, True, "nothing to learn", 1, 0, np.zeros(1))
    solver = SOLVERS[settings.solver]
    if not solver.iterative:
        return solver.function(problem, settings, callback)
    rank = settings.n_operators(problem) or problem.full_rank
    if not isinstance(settings.init, str):
        rank = settings.init.shape[2]
    with one_thread(m * k * rank * (m + rank) <= _SMALL_STEP):
        return solver.function(problem, settings, callback)
