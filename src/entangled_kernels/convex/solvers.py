"""Solvers of convex problems whose Gram matrix is linear in the parameters, with certificates.

`SOLVERS` lists them. A solver takes a point and returns better parameters; `solve_convex` repeats
it until the duality gap is closed. A solver names what it needs of a penalty, and `solve_convex`
refuses a penalty that does not offer it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, qr, svd
from scipy.optimize import minimize

from ..linalg import Array
from .grams import Gram, KroneckerGram, Preconditioner, solve_psd
from .penalties import (
    FROBENIUS,
    GRADIENT,
    POSITIVE,
    SMOOTH,
    TRACE,
    TRACE_BALL,
    Penalty,
    Schatten,
    SpectralPenalty,
    compose,
)
from .problem import OVERFLOW, Result, refuse_overflow

__all__ = [
    "SOLVERS",
    "Point",
    "Solver",
    "certify",
    "minimise",
    "solve_convex",
]

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)
# Rounds in a row that may gain nothing, as when only rounding is left.
IDLE = 5
# L-BFGS: pairs kept; a gradient this much shorter than the first is zero up to rounding; more than
# the relative rounding of values, whose terms may cancel.
MEMORY, FLAT, NOISE = 20, 1e-12, 1e-9
# Dual and model rounds are solved more sharply than the tolerance, since the primal bound lags.
SHARP = 1e-6
# Factor: levels below this share of the largest are raised to it, so that they can grow again; and
# the share of the gradient of the penalty that is added for directions without curvature.
FLOOR, DAMPING = 1e-12, 0.1
# A proximal round ends when its problem is solved this well in terms of the gap.
ROUGH, SLACK = 1e-3, 0.1
# Newton: halvings of a step, and conjugate gradient steps for a direction.
HALVINGS, CG_STEPS = 40, 10


class Point(NamedTuple):
    """Parameters L (m, k, k), their coefficients C with inner products S, and a certificate.

    ``value`` is the objective J(L), at most ``gap`` above its minimum: the dual value of the
    coefficients ``witness`` is J(L) - gap. The witness is C unless a solver has better ones.
    """

    L: Array
    C: Array
    S: Array
    value: float
    gap: float
    witness: Array


class Step(NamedTuple):
    """New parameters, coefficients to continue from, and the number of evaluations.

    A solver that decides when to stop also gives its reason and its objectives.
    """

    L: Array
    C: Array | None
    evaluations: int
    reason: str = ""
    history: tuple[float, ...] = ()


class Solver(NamedTuple):
    """A solver, and what it needs.

    ``run`` takes a Gram matrix of the class ``gram``, a penalty that offers ``needs``, a point, a
    number of steps and a tolerance. It is restarted after ``steps`` steps, or never if this is
    None: such a solver decides when to stop.
    """

    run: Callable[[Any, Any, Point, int, float], Step]
    needs: str
    gram: type[Gram] = Gram
    steps: int | None = 40


@refuse_overflow
def solve_convex(
    gram: Gram,
    penalty: Penalty,
    start: Array,
    *,
    solver: str | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> Result:
    """Minimise y^T (G_L + alpha I)^-1 y / 2 + P(L) over stacks L of psd matrices.

    Parameters
    ----------
    gram : Gram
        Linear in L.
    penalty : Penalty
    start : ndarray of shape (m, k, k)
        Positive definite, and within the constraint if there is one.
    solver : {"balanced", "dual", "factor", "model", "newton", "proximal"}, optional
        None is the default of the penalty.
    max_iter : int, default=1000
        Evaluations after which no further round is begun; updates of L for ``"newton"`` and
        ``"balanced"``.
    tol : float, default=1e-6
        Stop when the duality gap is at most this share of the objective. For ``"newton"``, this
        share of the penalty; for ``"balanced"``, see `balanced_round`.

    Returns
    -------
    Result
        With the parameters as ``T``.

    Raises
    ------
    ValueError
        If the solver needs a property that the penalty does not offer, or another Gram matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from entangled_kernels.convex import KroneckerGram, Schatten
    >>> targets = np.array([[3.0, 3.0], [0.0, 0.1]])
    >>> gram = KroneckerGram(targets, 0.5, np.array([2.0, 1.0]))
    >>> result = solve_convex(gram, Schatten(1.0, radius=2.0), np.eye(2)[None])
    >>> result.gap <= 1e-6 * result.value
    True
    >>> result.T[0].round(2)
    array([[1., 1.],
           [1., 1.]])
    """
    chosen = _choose(gram, penalty, penalty.solver if solver is None else solver)
    if not np.isfinite(start).all():
        raise ValueError(OVERFLOW)
    best = last = certify(gram, penalty, start)
    history, used, idle, reason = [best.value], 1, 0, "tolerance"
    if chosen.steps is None:
        step = chosen.run(gram, penalty, best, max_iter, tol)
        best = certify(gram, penalty, step.L)
        best = best if step.C is None else best._replace(C=step.C)
        reason, used, history = step.reason, step.evaluations, list(step.history)
    while chosen.steps is not None and best.gap > tol * best.value:
        if used >= max_iter or idle >= IDLE:
            reason = "max_iter" if used >= max_iter else "stalled"
            break
        step = chosen.run(gram, penalty, last, min(chosen.steps, max_iter - used), tol)
        point = last = certify(gram, penalty, step.L)
        if step.C is not None:
            point = _witnessed(gram, penalty, point, step.C)
            last = point._replace(C=step.C)
        used += step.evaluations
        # Changes within the rounding of the objective are no progress.
        rounding = 2.0 * EPS * abs(best.value)
        improved = point.value < best.value - rounding or point.gap < best.gap - rounding
        idle = 0 if improved else idle + 1
        if point.gap < best.gap:
            best = point
        history.append(min(history[-1], point.value))
    L, C, _, value, gap, witness = best
    converged = reason == "tolerance"
    return Result(L, C, value, gap, witness, converged, reason, used, np.array(history))


def _choose(gram: Gram, penalty: Penalty, name: str) -> Solver:
    """The solver of this name, or an error that says what it needs."""
    if name not in SOLVERS:
        raise ValueError(f"solver must be one of {sorted(SOLVERS)}, got {name!r}")
    chosen = SOLVERS[name]
    if chosen.needs not in penalty.offers:
        fitting = sorted(key for key, solver in SOLVERS.items() if solver.needs in penalty.offers)
        raise ValueError(
            f"solver {name!r} needs {chosen.needs}, which {penalty} does not offer; use one of "
            f"{fitting}"
        )
    if not isinstance(gram, chosen.gram):
        raise ValueError(
            f"solver {name!r} needs a {chosen.gram.__name__}, got a {type(gram).__name__}; "
            f"use solver {penalty.solver!r}"
        )
    return chosen


def certify(gram: Gram, penalty: Penalty, L: Array) -> Point:
    """Evaluate the objective and its duality gap at L, (m, k, k).

    Notes
    -----
    The objective J(L) = y^T (G_L + alpha I)^-1 y / 2 + P(L) is convex. Its first term is the
    maximum over c of c^T y - alpha |c|^2 / 2 - c^T G_L c / 2, and the minimum over L may be taken
    first:

        min J = max over c of   c^T y - alpha |c|^2 / 2 - P*(S / 2),   <L, S> = c^T G_L c.

    Every c bounds the minimum from below. With c = (G_L + alpha I)^-1 y the difference of the two
    is

        gap = P(L) + P*(S / 2) - <L, S> / 2

    which is zero exactly if L attains the maximum in P*(S / 2). A c that solves the equation up to
    a residual e adds |e|^2 / (2 alpha). If P*(S / 2) is infinite (the trace), c is shrunk to t c.
    """
    C, slack = gram.solve(L)
    S = gram.inner_products(C)
    gap, t = _duality_gap(gram, penalty, L, C, S)
    # ||y - G c||^2 / (2 alpha) + c^T G c / 2, without the residual e of the equation.
    inner = float(np.vdot(L, S))
    data = slack + float(np.vdot(gram.targets, C)) - 0.5 * (inner + _size(gram, C))
    value = data + penalty.value(L) + gram.constant
    return Point(L, C, S, value, max(gap + slack, 0.0), C if t == 1.0 else t * C)


def _duality_gap(gram: Gram, penalty: Penalty, L: Array, C: Array, S: Array) -> tuple[float, float]:
    """The gap at L by the coefficients t C, C the solution of its equation, and t."""
    t = penalty.shrink(S)
    if t == 1.0:
        return penalty.gap(L, S), 1.0
    fit, size = float(np.vdot(gram.targets, C)), _size(gram, C)
    t = min(t, fit / max(size, TINY))
    data = fit - 0.5 * (float(np.vdot(L, S)) + size)
    return penalty.value(L) + data - (t * fit - 0.5 * t**2 * size), t


def _size(gram: Gram, C: Array) -> float:
    """alpha |c|^2."""
    return gram.alpha * float(np.vdot(C, C))


def _witnessed(gram: Gram, penalty: Penalty, point: Point, C: Array) -> Point:
    """The point with other coefficients as its witness, if their dual value is higher."""
    fit, size = float(np.vdot(gram.targets, C)), _size(gram, C)
    dual = fit - 0.5 * size - penalty.conjugate(gram.inner_products(C))
    gap = max(point.value - gram.constant - dual, 0.0)
    return point._replace(gap=gap, witness=C) if gap < point.gap else point


def dual_round(gram: Gram, penalty: Penalty, point: Point, steps: int, tol: float = 0.0) -> Step:
    """Minimise the dual problem over coefficients, from those of a point.

    Notes
    -----
    Minimises F(c) = alpha |c|^2 / 2 - c^T y + P*(S / 2), whose gradient is alpha c - y + G_L c with
    the L at which P*(S / 2) is attained. At fixed L the Hessian is G_L + alpha I, which the
    preconditioner of the point's L turns into the identity.
    """
    return _search_dual(gram, penalty, point, steps, tol=SHARP * tol)


def _search_dual(
    gram: Gram,
    penalty: Penalty,
    point: Point,
    steps: int,
    is_done: Callable[..., bool] = lambda *_: False,
    tol: float = 0.0,
) -> Step:
    """L-BFGS on the dual problem until ``is_done(C, L, S, e, slope)``, with the residual e."""
    change, done = gram.preconditioner(point.L), False

    def value_and_slope(X: Array) -> tuple[float, Array]:
        nonlocal done
        C = change.forward(X)
        S = gram.inner_products(C)
        L = penalty.argmax(S)
        e = gram.alpha * C - gram.targets + gram.apply(L, C)
        slope = change.adjoint(e)
        done = is_done(C, L, S, e, slope)
        inner, fit = float(np.vdot(L, S)), float(np.vdot(gram.targets, C))
        return 0.5 * (_size(gram, C) + inner) - fit - penalty.value(L), slope

    start = change.inverse(point.C)
    X, evaluations = minimise(value_and_slope, start, steps, lambda: done, whitened=True, tol=tol)
    C = change.forward(X)
    return Step(penalty.argmax(gram.inner_products(C)), C, evaluations)


def factor_round(
    gram: Gram, penalty: SpectralPenalty, point: Point, steps: int, tol: float = 0.0
) -> Step:
    """Minimise over a factor B of L = B B^T; stop early if the gap is within the tolerance.

    Notes
    -----
    Minimises J(B B^T) over a stack of square B. The gradient with respect to L is P'(L) - S / 2,
    and so 2 (P'(L) - S / 2) B with respect to B. A constraint N(L) <= r enters by L = t B B^T with
    L on its boundary; there P' is replaced by N' <L, S> / (2 <L, N'>), the multiple of the normal
    that leaves nothing of the gradient along L. A full factor has no minima but the one of the
    convex problem.

    In the eigenbasis of the point's L, where B is diag(sqrt(levels)), the second derivative with
    respect to B_ij is near 2 (curvature_ij levels_j + P'_i - S_ii / 2): B is scaled by its inverse
    root. For matrices of size one, b with L = b^2, the whole Hessian 4 b b^T curvature + 2 diag(P' -
    S / 2) is known, and L-BFGS needs few steps.
    """
    levels, V = np.linalg.eigh(point.L)  # (m, k), (m, k, k)
    levels = np.maximum(levels, FLOOR * levels.max())
    slope, scale = _slope(penalty, levels, point.S, V)
    rotated = np.einsum("mki,mkl,mli->mi", V, point.S, V)  # diagonal of V^T S V, (m, k)
    rest = np.maximum(slope - 0.5 * rotated, 0.0) + DAMPING * slope
    curvature = gram.curvature(point.L, point.C)
    if curvature.ndim == 2:
        change = _whole_change(
            curvature, levels[:, 0], rest[:, 0], scale, ball=penalty.radius is not None
        )
    else:
        change = _change(curvature, levels, rest, scale)

    within = False

    def value_and_slope(X: Array) -> tuple[float, Array]:
        left, sizes, right = np.linalg.svd(change.forward(X))
        W = V @ left
        free = sizes**2
        scale = penalty.level_scale(free)
        L = compose(scale * free, W)
        C, _ = gram.solve(L)
        S = gram.inner_products(C)
        P = penalty.level_value(scale * free)
        value = 0.5 * float(np.vdot(gram.targets, C)) + P
        nonlocal within
        within = _duality_gap(gram, penalty, L, C, S)[0] <= tol * (value + gram.constant)
        slope, _ = _slope(penalty, scale * free, S, W)
        inner = -W.transpose(0, 2, 1) @ S @ W  # (m, k, k), in the basis W
        inner[:, np.arange(len(slope[0])), np.arange(len(slope[0]))] += 2.0 * slope
        return value, change.adjoint(scale * (left @ ((inner * sizes[:, None, :]) @ right)))

    start = np.zeros_like(point.L)
    index = np.arange(levels.shape[1])
    start[:, index, index] = np.sqrt(levels)
    X, evaluations = minimise(
        value_and_slope, change.inverse(start), steps, lambda: within, whitened=True
    )
    left, sizes, _ = np.linalg.svd(change.forward(X))
    return Step(compose(penalty.level_scale(sizes**2) * sizes**2, V @ left), None, evaluations)


def _change(curvature: Array, levels: Array, rest: Array, scale: float) -> Preconditioner:
    """B = X times the inverse roots of its second derivatives, entry by entry."""
    unit = 1.0 / np.sqrt(
        2.0 * scale * (curvature * levels[:, None, :] + rest[:, :, None])
    )  # (m, k, k)
    return Preconditioner(lambda X: X * unit, lambda B: B / unit, lambda B: B * unit)


def _whole_change(
    curvature: Array, levels: Array, rest: Array, scale: float, *, ball: bool
) -> Preconditioner:
    """b = R X with R R^T the inverse of the Hessian; in a ball the size of b is free."""
    b = np.sqrt(levels)
    hessian = scale * (4.0 * b[:, None] * curvature * b + 2.0 * np.diag(rest))  # (m, m)
    if ball:
        across = np.eye(len(b)) - np.outer(b, b) / levels.sum()
        size = float(np.trace(hessian)) / len(b)
        hessian = across @ hessian @ across + size * np.outer(b, b) / levels.sum()
    values, U = np.linalg.eigh(hessian)
    roots = np.sqrt(np.maximum(values, FLOOR * values[-1]))

    def shaped(vector: Array) -> Array:
        return np.asarray(vector)[:, None, None]

    return Preconditioner(
        lambda X: shaped(U @ (X[:, 0, 0] / roots)),
        lambda B: shaped(roots * (U.T @ B[:, 0, 0])),
        lambda B: shaped((U.T @ B[:, 0, 0]) / roots),
    )


def _slope(penalty: SpectralPenalty, levels: Array, S: Array, V: Array) -> tuple[Array, float]:
    """The gradient of the penalty by level, (m, k), and the factor to the boundary of a ball."""
    slope = penalty.level_slope(levels)
    if penalty.radius is None:
        return slope, 1.0
    along = float(np.einsum("mi,mki,mkl,mli->", levels, V, S, V))  # <L, S>
    normal = float(np.vdot(slope, levels))
    return 0.5 * along / max(normal, TINY) * slope, penalty.level_scale(levels)


def model_round(
    gram: KroneckerGram, penalty: SpectralPenalty, point: Point, steps: int, tol: float = 0.0
) -> Step:
    """Minimise over the model, in which the best L has a closed form.

    Notes
    -----
    With G = K^1/2 C L, so that the model is K^1/2 G, minimises

        ||Y - K^1/2 G||^2 / (2 alpha) + min over L of tr(G^T G L^-1) / 2

    whose last term is smooth where levels cannot vanish; its gradient is G L^-1 with the best L. At
    fixed L the Hessian is values_i / alpha + 1 / levels_j, in the eigenbasis of L.
    """
    levels, V = np.linalg.eigh(point.L[0])
    root = np.sqrt(gram.values)[:, None]  # (q, 1)
    targets = gram.targets @ V
    unit = 1.0 / np.sqrt(gram.values[:, None] / gram.alpha + 1.0 / levels)  # (q, k)

    def best(G: Array) -> tuple[Array, Array, Array]:
        squares, W = np.linalg.eigh(G.T @ G)
        squares = np.maximum(squares, 0.0)
        return squares, penalty.level_best(squares), W

    def value_and_slope(X: Array) -> tuple[float, Array]:
        G = X * unit
        squares, chosen, W = best(G)
        residual = targets - root * G
        value = float(np.vdot(residual, residual)) / (2 * gram.alpha) + 0.5 * float(
            np.sum(squares / chosen)
        )
        return value, (((G @ W) / chosen) @ W.T - root * residual / gram.alpha) * unit

    X, evaluations = minimise(
        value_and_slope, root * (point.C @ V) * levels / unit, steps, whitened=True, tol=SHARP * tol
    )
    _, chosen, W = best(X * unit)
    return Step(compose(chosen[None], (V @ W)[None]), None, evaluations)


@dataclass(frozen=True, eq=False)
class Proximal(Penalty):
    """||L - centre||^2 / (2 length) in the ball tr(L) <= radius: a penalty with a smooth conjugate.

    Notes
    -----
    <L, S> / 2 less this is largest at the point of the ball that is nearest to centre + length S /
    2: there all levels are less by the same amount, and those that would become negative are zero.

    Examples
    --------
    >>> import numpy as np
    >>> near = Proximal(2.0, np.eye(2)[None], 1.0)
    >>> near.argmax(np.diag([2.0, 1.0])[None])[0]
    array([[1.25, 0.  ],
           [0.  , 0.75]])
    """

    radius: float
    centre: Array
    length: float

    def value(self, L: Array) -> float:
        """The squared distance from the centre."""
        return float(np.sum((L - self.centre) ** 2)) / (2.0 * self.length)

    def argmax(self, S: Array) -> Array:
        """The L at which <L, S> / 2 less the value is largest."""
        levels, V = np.linalg.eigh(self.centre + 0.5 * self.length * S)
        if np.maximum(levels, 0.0).sum() > self.radius:
            falling = -np.sort(-levels, axis=None)
            excess = (np.cumsum(falling) - self.radius) / np.arange(1, levels.size + 1)
            levels = levels - excess[np.flatnonzero(falling >= excess)[-1]]
        return compose(np.maximum(levels, 0.0), V)


def proximal_round(
    gram: Gram, penalty: Schatten, point: Point, steps: int, tol: float = 0.0
) -> Step:
    """A proximal step from a point, taken in the dual problem.

    Notes
    -----
    A proximal step minimises J(L) + ||L - L_0||^2 / (2 length) from the L_0 of the point. Its dual
    is that of `dual_round` with `Proximal` for the penalty, which has a smooth conjugate; no ridge
    system is solved. The step brings J to within ||L* - L_0||^2 / (2 length) of its minimum at L*,
    and is the harder to take the longer it is. The length is ||L_0||^2 / sqrt(gap J), without the
    part of J that no kernel can reach. If J grows as the squared distance from L*, the gap after a
    step is then at most a multiple of its power 3 / 2.

    Coefficients c of the search solve the ridge system of their L up to e, which is the slope. So
    the gap of both is at most P*(S / 2) - <L, S> / 2 + |e|^2 / (2 alpha), and the search ends where
    that is within the tolerance, or where more steps would only better the proximal problem.
    """
    reachable = max(point.value - gram.constant, point.gap, TINY)
    length = float(np.vdot(point.L, point.L)) / np.sqrt(point.gap * reachable)
    assert penalty.radius is not None  # a ball
    near = Proximal(penalty.radius, point.L, length)

    def is_done(C: Array, L: Array, S: Array, e: Array, slope: Array) -> bool:
        inner, fit = float(np.vdot(L, S)), float(np.vdot(gram.targets, C))
        slack = float(np.vdot(e, e)) / (2.0 * gram.alpha)
        gap = penalty.conjugate(S) - 0.5 * inner
        value = slack + fit - 0.5 * (inner + _size(gram, C)) + gram.constant
        solved = 0.5 * float(np.vdot(slope, slope)) <= ROUGH * gap and slack <= SLACK * gap
        return solved or gap + slack <= tol * value

    return _search_dual(gram, near, point, steps, is_done)


@dataclass(frozen=True, eq=False)
class Factored:
    """L = V diag(levels) V^T with V (k, r), and the solution of its ridge system in this basis.

    Z (q, r) is C V, S (r, r) is Z^T K Z, and ``missed`` (q, k) the targets outside the span of V,
    None if there are none.
    """

    levels: Array
    V: Array
    Z: Array
    S: Array
    missed: Array | None
    value: float

    @classmethod
    def at(cls, gram: KroneckerGram, penalty: SpectralPenalty, levels: Array, V: Array) -> Factored:
        """Solve the ridge system, which is diagonal in this basis; time q k r."""
        rotated = gram.targets @ V  # (q, r)
        Z = rotated / (np.outer(gram.values, levels) + gram.alpha)
        root = np.sqrt(gram.values)[:, None] * Z
        value = gram.constant + float(np.vdot(rotated, Z)) / 2 + penalty.level_value(levels)
        if V.shape[1] == V.shape[0]:
            return cls(levels, V, Z, root.T @ root, None, value)
        missed = gram.targets - rotated @ V.T
        value += float(np.vdot(missed, missed)) / (2 * gram.alpha)
        return cls(levels, V, Z, root.T @ root, missed, value)

    def step(self, gram: KroneckerGram, reason: str, history: list[float]) -> Step:
        """The outcome of a search that ends here."""
        C = self.Z @ self.V.T
        C = C if self.missed is None else C + self.missed / gram.alpha
        L = compose(self.levels[None], self.V[None])
        return Step(L, C, len(history) - 1, reason, tuple(history))


def newton_round(
    gram: KroneckerGram, penalty: Schatten, point: Point, steps: int, tol: float
) -> Step:
    """Newton steps until the duality gap is at most ``tol`` times the penalty ||L||^2 / 2.

    The gap is ||S / 2 - L||^2 / 2, so that L is known to a relative error of about sqrt(tol).
    `entangled_kernels.convex.learn_output_kernel` derives the step.
    """

    def slope(now: Factored) -> float:
        P = now.S / 2 - np.diag(now.levels)
        return float(np.linalg.norm(P)) / max(float(np.linalg.norm(now.levels)), TINY)

    levels, V = eigh(point.L[0])
    floor = EPS * max(float(levels[-1]), TINY)
    start = Factored.at(gram, penalty, np.maximum(levels, floor), V)
    return _descend(gram, start, lambda now: _newton_step(gram, penalty, now), slope, steps, tol)


def balanced_round(
    gram: KroneckerGram, penalty: Schatten, point: Point, steps: int, tol: float
) -> Step:
    """Steps on balanced factors B of L = B B^T, of the rank of the penalty.

    They stop when ||(I - S) B|| ||B||, a bound on the gradient, is at most sqrt(tol) times the
    objective. `entangled_kernels.convex.learn_output_kernel` derives the step.
    """

    def slope(now: Factored) -> float:
        SV = now.V @ now.S  # (k, r)
        if now.missed is not None:
            SV += now.missed.T @ (gram.values[:, None] * now.Z) / gram.alpha
        gradient = (now.V - SV) * np.sqrt(now.levels)
        return float(np.linalg.norm(gradient) * np.sqrt(now.levels.sum()) / now.value)

    levels, V = eigh(point.L[0])
    rank = slice(-(len(V) if penalty.rank is None else penalty.rank), None)
    floor = EPS * max(float(levels[-1]), TINY)
    start = Factored.at(gram, penalty, np.maximum(levels[rank], floor), V[:, rank])
    return _descend(gram, start, lambda now: _balanced_step(gram, penalty, now), slope, steps, tol)


def _descend(
    gram: KroneckerGram,
    now: Factored,
    step: Callable[[Factored], Factored | None],
    slope: Callable[[Factored], float],
    steps: int,
    tol: float,
) -> Step:
    """Take at least one step, and more until the relative slope is at most sqrt(tol)."""
    history, last, tolerance = [now.value], slope(now), float(np.sqrt(tol))
    for _ in range(steps):
        following = step(now)
        if following is None or following.value > history[-1] * (1 + 100 * EPS):
            return now.step(gram, "tolerance" if last <= tolerance else "stalled", history)
        now, current = following, slope(following)
        # Near the minimum steps change the objective by rounding only, and still improve L.
        history.append(min(now.value, history[-1]))
        if current <= tolerance:
            return now.step(gram, "tolerance", history)
        if history[-1] == history[-2] and current >= last:
            return now.step(gram, "stalled", history)
        last = current
    return now.step(gram, "max_iter", history)


def _newton_step(gram: KroneckerGram, penalty: Schatten, now: Factored) -> Factored | None:
    """Newton's step, shortened until it lowers the objective; None if none does."""
    P = now.S / 2 - np.diag(now.levels)
    D = _newton_direction(gram, now, P)
    slope = float(np.vdot(P, D))
    for halving in range(HALVINGS):
        t = 0.5**halving
        levels, Q = eigh(np.diag(now.levels) + t * D, check_finite=False)
        levels = np.maximum(levels, 0.01 * now.levels.min())
        following = Factored.at(gram, penalty, levels, now.V @ Q)
        if following.value <= now.value - 1e-4 * t * slope + 10 * EPS * now.value:
            return following
    return None


def _newton_direction(gram: KroneckerGram, now: Factored, P: Array) -> Array:
    """Solve Hessian(D) = P by conjugate gradients.

    The residual falls with P, so that the last steps converge faster than linearly.
    """
    F = gram.values[:, None] * now.Z  # (q, k)
    quotients = 1.0 / (np.outer(gram.values, now.levels) + gram.alpha)  # (q, k)
    A = quotients.T @ F**2  # (k, k)
    diagonal = 1.0 + (A + A.T) / 2
    size = float(np.linalg.norm(P))
    tolerance = size * min(0.1, size / max(float(np.linalg.norm(now.levels)), TINY))

    def apply(D: Array) -> Array:
        bent = F.T @ ((F @ D) * quotients)  # (k, k)
        return np.asarray(D + (bent + bent.T) / 2)

    return solve_psd(apply, lambda residual: residual / diagonal, P, tolerance, CG_STEPS)


def _balanced_step(gram: KroneckerGram, penalty: Schatten, now: Factored) -> Factored:
    """Best B for Z, then the balanced factors of their product."""
    Z = now.Z * np.sqrt(now.levels)  # (q, r)
    F = gram.values[:, None] * Z
    squares, Q = eigh(F.T @ F)
    B = ((gram.targets.T @ F) @ Q / (np.maximum(squares, 0.0) + gram.alpha)) @ Q.T  # (k, r)
    R_Z = qr(np.sqrt(gram.values)[:, None] * Z, mode="r")[0]
    Q_B, R_B = qr(B, mode="economic")
    _, levels, right = svd(R_Z[: len(R_B)] @ R_B.T)
    return Factored.at(gram, penalty, levels, Q_B @ right.T)


#: Solvers by name. A proximal step is taken to its end, since half a step may gain nothing.
SOLVERS: MappingProxyType[str, Solver] = MappingProxyType(
    {
        "balanced": Solver(balanced_round, TRACE, KroneckerGram, None),
        "dual": Solver(dual_round, SMOOTH),
        "factor": Solver(factor_round, GRADIENT),
        "model": Solver(model_round, POSITIVE, KroneckerGram),
        "newton": Solver(newton_round, FROBENIUS, KroneckerGram, None),
        "proximal": Solver(proximal_round, TRACE_BALL, steps=400),
    }
)


def minimise(
    value_and_slope: Callable[[Array], tuple[float, Array]],
    start: Array,
    steps: int,
    is_done: Callable[[], bool] = lambda: False,
    *,
    whitened: bool = False,
    tol: float = 0.0,
) -> tuple[Array, int]:
    """Minimise by L-BFGS; return the last point and the number of evaluations.

    Parameters
    ----------
    value_and_slope : callable
        From an array to the value and the gradient there, an array of the same shape.
    start : ndarray
    steps : int
    is_done : callable, optional
        True if the last point evaluated is good enough; called after every step.
    whitened : bool, default=False
        True if the Hessian is near the identity.
    tol : float, default=0.0
        Stop when |slope|^2 / 2, about the possible gain, is at most this share of the value at
        the start. Ignored if the slope at the start is within it already.

    Notes
    -----
    The value at the start is the unit, since L-BFGS-B has absolute safeguards. Its first trial is a
    step of length one, whatever the slope; where the Hessian is near the identity, the length of
    the slope at the start is made the unit of the array, and this trial is Newton's step.
    """
    first, first_slope = value_and_slope(start)
    if not start.size:
        # SciPy before 1.13 fails on it.
        return start, 1
    unit = abs(first) or 1.0
    size = (float(np.linalg.norm(first_slope)) or 1.0) if whitened else 1.0
    begin = start.ravel() / size
    gain, stopped = np.inf, False
    smallest_gain = (
        tol * unit if 0.5 * float(np.vdot(first_slope, first_slope)) > tol * unit else 0.0
    )

    def flat(x: Array) -> tuple[float, Array]:
        # The start was evaluated before, for the units.
        if np.array_equal(x, begin):
            value, slope = first, first_slope
        else:
            value, slope = value_and_slope(size * x.reshape(start.shape))
        nonlocal gain
        gain = 0.5 * float(np.vdot(slope, slope))
        return value / unit, slope.ravel() * (size / unit)

    def stop(_: Array) -> None:
        nonlocal stopped
        stopped = is_done() or (whitened and gain <= smallest_gain)
        if stopped:
            raise StopIteration

    options = {
        "maxiter": steps,
        "maxfun": 2 * steps + 20,
        "maxcor": MEMORY,
        "ftol": 0.0,
        "gtol": 0.0,
    }
    outcome = minimize(flat, begin, jac=True, method="L-BFGS-B", callback=stop, options=options)
    x, evaluations = np.asarray(outcome.x), int(outcome.nfev)
    if not stopped and np.linalg.norm(outcome.jac) > FLAT * size / unit * np.linalg.norm(
        first_slope
    ):
        rest = {"maxiter": steps - outcome.nit, "maxfun": options["maxfun"] - outcome.nfev}
        if min(rest.values()) > 0:
            x, more = _minimise_by_slopes(flat, x, outcome.fun, outcome.jac, stop, options | rest)
            evaluations += more
    return size * x.reshape(start.shape), evaluations


def _minimise_by_slopes(
    value_and_slope: Callable[[Array], tuple[float, Array]],
    start: Array,
    first: float,
    first_slope: Array,
    stop: Callable[[Array], None],
    options: dict[str, float],
) -> tuple[Array, int]:
    """Continue with L-BFGS where rounding hides the differences between values.

    Between two points near each other, the value changes by the inner product of their difference
    with the mean of the two gradients, up to terms of third order. This has all its digits where a
    difference of values has none. If the value is higher at the end by more than rounding, the
    start is returned.
    """
    unit = float(first_slope @ first_slope)
    # Position, change of the value since the start, and gradient: at the last step, and where it
    # was last evaluated.
    base = latest = (start, 0.0, first_slope)
    value = first

    def change_and_slope(x: Array) -> tuple[float, Array]:
        nonlocal latest, value
        if np.array_equal(x, start):
            return 0.0, first_slope / unit
        value, slope = value_and_slope(x)
        change = base[1] + 0.5 * float((slope + base[2]) @ (x - base[0])) / unit
        latest = (x.copy(), change, slope)
        return change, slope / unit

    def step(x: Array) -> None:
        nonlocal base
        base = latest
        stop(x)

    outcome = minimize(
        change_and_slope, start, jac=True, method="L-BFGS-B", callback=step, options=options
    )
    x = np.asarray(outcome.x)
    return (x if value <= first + NOISE * abs(first) else start), int(outcome.nfev) - 1
