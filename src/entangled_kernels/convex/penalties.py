"""Convex penalties of learned kernels: their value, their conjugate, and where it is attained.

Parameters are a stack of psd matrices, an array (m, k, k): one matrix for an output kernel, m
matrices of size one for the weights of m kernels. With ``radius`` a penalty is a constraint: its
value is at most the radius. The eigenvalues of a parameter L are called its levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from ..linalg import Array

__all__ = [
    "PENALTIES",
    "Cluster",
    "Elastic",
    "Entrywise",
    "OutputPenalty",
    "Penalty",
    "Schatten",
    "SpectralPenalty",
    "compose",
    "graph_output_kernel",
    "typical_level",
]

TINY = float(np.finfo(np.float64).tiny)
# What a penalty may offer, and a solver may need; the phrases appear in error messages.
SMOOTH = "a smooth conjugate"
GRADIENT = "a gradient with respect to the levels"
POSITIVE = "levels bounded away from zero"
TRACE_BALL = "a bound on the trace"
TRACE = "the trace as a penalty"
FROBENIUS = "the squared Frobenius norm as a penalty"


class Penalty:
    """A convex function P of a stack of psd matrices L, or the indicator of a convex set.

    A subclass has ``solver``, the key of its default solver in `entangled_kernels.convex.SOLVERS`,
    and ``offers``, the phrases above that are true of it.
    """

    solver: ClassVar[str]
    offers: Any
    radius: float | None

    def value(self, L: Array) -> float:
        """Return P(L), the penalty of L; zero for a constraint, which L is assumed to meet."""
        raise NotImplementedError

    def argmax(self, S: Array) -> Array:
        """Return the L at which <L, S> / 2 - P(L) is largest, where the conjugate is attained."""
        raise NotImplementedError

    def conjugate(self, S: Array) -> float:
        """Return the conjugate P*(S / 2), the maximum over L of <L, S> / 2 - P(L)."""
        L = self.argmax(S)
        return 0.5 * float(np.vdot(L, S)) - self.value(L)

    def shrink(self, S: Array) -> float:
        """Return the largest t of at most one for which the conjugate P*(t^2 S / 2) is finite."""
        return 1.0

    def gap(self, L: Array, S: Array) -> float:
        """Return the Fenchel gap P(L) + P*(S / 2) - <L, S> / 2, which is never negative."""
        return self.value(L) + self.conjugate(S) - 0.5 * float(np.vdot(L, S))

    def shrunk_conjugate(self, S: Array) -> tuple[float, float]:
        """Return the factor t of `shrink`, and the conjugate P*(t^2 S / 2)."""
        t = self.shrink(S)
        return t, self.conjugate(t**2 * S)


class SpectralPenalty(Penalty):
    """A penalty on the eigenvalues of all matrices of the stack taken together: the levels of L.

    A subclass writes functions of levels (m, k) or of squares (m, k), eigenvalues of S:

    - ``level_value(levels)``: P;
    - ``level_argmax(squares)``: levels at which <levels, squares> / 2 - P(levels) is largest;
    - ``level_best(squares)``: levels at which <1 / levels, squares> / 2 + P(levels) is least;
    - ``level_slope(levels)``: the gradient of P, or of the function that a constraint bounds;
    - ``level_scale(levels)``: the factor that takes levels to the boundary of the constraint, one
      without a constraint.
    """

    level_value: Callable[[Array], float]
    level_argmax: Callable[[Array], Array]
    level_best: Callable[[Array], Array]
    level_slope: Callable[[Array], Array]
    level_scale: Callable[[Array], float]

    def value(self, L: Array) -> float:
        """Return P(L), the penalty of L; zero for a constraint, which L is assumed to meet."""
        return self.level_value(np.maximum(np.linalg.eigvalsh(L), 0.0))

    def argmax(self, S: Array) -> Array:
        """Return the L at which <L, S> / 2 - P(L) is largest, where the conjugate is attained."""
        squares, V = np.linalg.eigh(S)
        return compose(self.level_argmax(np.maximum(squares, 0.0)), V)

    def conjugate(self, S: Array) -> float:
        """Return the conjugate P*(S / 2), the maximum over L of <L, S> / 2 - P(L)."""
        squares = np.maximum(np.linalg.eigvalsh(S), 0.0)
        levels = self.level_argmax(squares)
        return 0.5 * float(np.vdot(levels, squares)) - self.level_value(levels)


@dataclass(frozen=True)
class Schatten(SpectralPenalty):
    """P(L) = sum level^q / 2: the trace at q = 1, the squared Frobenius norm at q = 2.

    Parameters
    ----------
    exponent : float
        q, at least 1.
    radius : float, optional
        Makes it the constraint that (sum level^q)^(1/q) is at most the radius.
    rank : int, optional
        Largest rank of L, for the solver ``"balanced"``. It is not part of the conjugate, so that
        the duality gap is over all ranks.

    Notes
    -----
    The maximum of s l / 2 - l^q / 2 over l >= 0 is at l = (s / q)^(1 / (q-1)). For a ball of
    radius r the maximum is the multiple of s^(1 / (q-1)) on its boundary. For q = 1 the conjugate
    is zero up to an eigenvalue of one and infinite beyond it; the conjugate of the ball is r times
    the largest eigenvalue. Neither is smooth, and the default solver works on a factor of L.

    Examples
    --------
    >>> import numpy as np
    >>> S = np.diag([4.0, 2.0])[None]
    >>> Schatten(2.0).argmax(S)[0]
    array([[2., 0.],
           [0., 1.]])
    >>> Schatten(1.0, radius=3.0).conjugate(S)
    6.0
    """

    exponent: float
    radius: float | None = None
    rank: int | None = None
    solver = "factor"

    @property
    def offers(self) -> frozenset[str]:
        """Properties that solvers may need."""
        q, ball = self.exponent, self.radius is not None
        holds = {SMOOTH: q > 1.0, TRACE_BALL: q == 1.0 and ball, TRACE: q == 1.0 and not ball}
        holds |= {GRADIENT: True, FROBENIUS: q == 2.0 and not ball}
        return frozenset(phrase for phrase, true in holds.items() if true)

    def gap(self, L: Array, S: Array) -> float:
        """Return the Fenchel gap; as ||L - S / 2||^2 / 2, without cancellation, where P is ||L||^2 / 2."""
        if self.exponent == 2.0 and self.radius is None:
            return 0.5 * float(np.sum((L - 0.5 * S) ** 2))
        return super().gap(L, S)

    def level_value(self, levels: Array) -> float:
        """Return half the sum of the q-th powers of the levels; zero for a ball."""
        return 0.5 * float(np.sum(levels**self.exponent)) if self.radius is None else 0.0

    def level_argmax(self, squares: Array) -> Array:
        """Return the maximising levels: powers of the squares, on the boundary of a ball if there is one."""
        q = self.exponent
        if self.radius is None:
            return np.zeros_like(squares) if q == 1.0 else (squares / q) ** (1.0 / (q - 1.0))
        largest = squares.max(initial=0.0)
        if largest <= TINY:
            return np.zeros_like(squares)
        if q == 1.0:
            levels = np.zeros(squares.size)
            levels[np.argmax(squares)] = self.radius
            return levels.reshape(squares.shape)
        return self._to_ball((squares / largest) ** (1.0 / (q - 1.0)))

    def level_best(self, squares: Array) -> Array:
        """Return the minimising levels: powers of the squares, on the boundary of a ball if there is one."""
        levels = (squares / self.exponent) ** (1.0 / (self.exponent + 1.0))
        return levels if self.radius is None else self._to_ball(levels)

    def level_slope(self, levels: Array) -> Array:
        """Return the gradient q level^(q-1) / 2 of P; for a ball, the gradient of the norm."""
        if self.radius is None:
            return np.asarray(0.5 * self.exponent * levels ** (self.exponent - 1.0))
        norm = max(self._norm(levels), TINY)
        return np.asarray((levels / norm) ** (self.exponent - 1.0))

    def level_scale(self, levels: Array) -> float:
        """Return the radius over the norm of the levels; one without a radius."""
        return 1.0 if self.radius is None else self.radius / max(self._norm(levels), TINY)

    def shrink(self, S: Array) -> float:
        """Return 1 over the root of the largest eigenvalue of S for the trace, at most one; else one."""
        if self.exponent > 1.0 or self.radius is not None:
            return 1.0
        return 1.0 / float(np.sqrt(max(np.linalg.eigvalsh(S).max(initial=0.0), 1.0)))

    def _norm(self, levels: Array) -> float:
        largest = float(levels.max(initial=0.0))
        if largest <= TINY:
            return 0.0
        q = self.exponent
        return largest * float(np.sum((levels / largest) ** q) ** (1.0 / q))

    def _to_ball(self, levels: Array) -> Array:
        return levels * self.level_scale(levels)


@dataclass(frozen=True)
class Elastic(SpectralPenalty):
    """P(L) = a tr(L) / 2 + (1 - a) ||L||^2 / 2: low rank as by the trace, and strictly convex.

    Parameters
    ----------
    l1_ratio : float
        a, at least 0 and below 1.
    radius : float, optional
        Constraint that P(L) is at most this, instead of the penalty.

    Notes
    -----
    The maximum of s l / 2 - P(l) is at l = max(s - a, 0) / (2 (1 - a)). Under the constraint it is
    at l = max(s / v - a, 0) / (2 (1 - a)) for that v at which P is the radius.

    Examples
    --------
    >>> import numpy as np
    >>> Elastic(0.5).argmax(np.diag([2.0, 0.4])[None])[0]
    array([[1.5, 0. ],
           [0. , 0. ]])
    """

    l1_ratio: float
    radius: float | None = None
    solver = "factor"
    offers = frozenset({SMOOTH, GRADIENT})

    def level_value(self, levels: Array) -> float:
        """Return a sum(levels) / 2 + (1 - a) sum(levels^2) / 2; zero for the constraint."""
        return self._function(levels) if self.radius is None else 0.0

    def level_argmax(self, squares: Array) -> Array:
        """Return the maximising levels: squares less a threshold, scaled."""
        if self.radius is None:
            return self._above(squares)
        largest = float(squares.max(initial=0.0))
        if largest <= TINY:
            return np.zeros_like(squares)
        scaled, radius = squares / largest, self.radius

        def excess(log_t: float) -> float:
            return self._function(self._above(scaled * np.exp(log_t))) - radius

        # At t = a nothing is above the threshold; one level alone is at least sqrt(2 radius /
        # (1-a)) in size before the constraint binds, which bounds t from above.
        a = self.l1_ratio
        high = 2.0 * (1.0 - a) * (1.0 + np.sqrt(2.0 * radius / (1.0 - a))) + a
        low = max(a, 1e-30 * high)
        t = brentq(excess, np.log(low), np.log(high), xtol=1e-15, rtol=1e-15)
        return self._above(scaled * np.exp(t))

    def level_slope(self, levels: Array) -> Array:
        """Return the gradient a / 2 + (1 - a) level of P."""
        return np.asarray(0.5 * self.l1_ratio + (1.0 - self.l1_ratio) * levels)

    def level_scale(self, levels: Array) -> float:
        """Return the positive root t of a t sum(levels) + (1 - a) t^2 sum(levels^2) = 2 radius."""
        if self.radius is None:
            return 1.0
        linear = self.l1_ratio * float(levels.sum())
        square = (1.0 - self.l1_ratio) * float(np.vdot(levels, levels))
        return (
            4.0
            * self.radius
            / max(linear + float(np.sqrt(linear**2 + 8.0 * self.radius * square)), TINY)
        )

    def level_best(self, squares: Array) -> Array:
        """Return the root of the cubic (1 - a) l^3 + a l^2 / 2 = squares / 2, by Newton steps from above."""
        a = self.l1_ratio
        levels = np.cbrt(squares / (2.0 * (1.0 - a)))
        for _ in range(60):
            excess = (1.0 - a) * levels**3 + 0.5 * a * levels**2 - 0.5 * squares
            levels = levels - excess / np.maximum(3.0 * (1.0 - a) * levels**2 + a * levels, TINY)
        return np.maximum(levels, 0.0)

    def _above(self, squares: Array) -> Array:
        return np.asarray(np.maximum(squares - self.l1_ratio, 0.0) / (2.0 * (1.0 - self.l1_ratio)))

    def _function(self, levels: Array) -> float:
        a = self.l1_ratio
        return 0.5 * float(a * levels.sum() + (1.0 - a) * np.vdot(levels, levels))


@dataclass(frozen=True)
class Cluster(SpectralPenalty):
    """The constraint that all levels lie in [low, high] and sum to at most a budget.

    Parameters
    ----------
    low, high : float
        0 < low <= high.
    budget : float
        At least low times the number of levels.

    Notes
    -----
    With few levels at ``high`` and the others at ``low``, outputs fall into clusters whose centres
    differ much and whose members differ little. The function min over L of tr(M L^-1) / 2 is smooth
    in M, since levels are at least ``low``: the solver works on the model. Levels there are
    clip(sqrt(squares) t, low, high), with t such that they sum to the budget.

    Examples
    --------
    >>> import numpy as np
    >>> Cluster(0.5, 2.0, 3.0).argmax(np.diag([3.0, 1.0, 0.0])[None])[0].diagonal()
    array([2. , 0.5, 0.5])
    """

    low: float
    high: float
    budget: float
    solver = "model"
    offers = frozenset({POSITIVE})

    def level_value(self, levels: Array) -> float:
        """Return zero, the value of a constraint."""
        return 0.0

    def level_argmax(self, squares: Array) -> Array:
        """Return the maximising levels: ``high`` for the largest squares within the budget, else ``low``."""
        order = np.argsort(-squares, axis=None, kind="stable")
        left = self.budget - self.low * squares.size
        width = self.high - self.low
        levels = np.empty(squares.size)
        levels[order] = self.low + np.clip(left - width * np.arange(squares.size), 0.0, width)
        return levels.reshape(squares.shape)

    def level_best(self, squares: Array) -> Array:
        """Return the minimising levels: clipped roots of the squares that use up the budget."""
        roots = np.sqrt(np.maximum(squares, 0.0)).ravel()
        if self.high * roots.size <= self.budget or not roots.any():
            return np.full(squares.shape, min(self.high, self.budget / roots.size))
        # The sum is piecewise linear in t, between the points where a root enters or leaves the
        # interval.
        positive = np.maximum(roots, TINY**0.5)
        points = np.sort(np.concatenate([self.low / positive, self.high / positive]))
        sums = np.clip(points[:, None] * roots, self.low, self.high).sum(axis=1)
        t = float(np.interp(self.budget, sums, points))
        return np.clip(roots * t, self.low, self.high).reshape(squares.shape)


@dataclass(frozen=True)
class Entrywise(Penalty):
    """P(L) = sum |L_ij|^q / 2 with q = 2k / (2k - 1) for a whole number k.

    Parameters
    ----------
    k : int
        At least 1; 1 is the squared Frobenius norm. A larger k makes small entries of L smaller.
    radius : float, optional
        Constraint that (sum |L_ij|^q)^(1/q) is at most this, instead of the penalty.

    Notes
    -----
    The maximum of <L, S> / 2 - P(L) over all matrices is at L_ij = (S_ij / q)^(2k - 1). An odd
    entrywise power of a psd matrix is psd by Schur's product theorem, so that no eigendecomposition
    is needed.

    Examples
    --------
    >>> import numpy as np
    >>> Entrywise(2).argmax(4 / 3 * np.array([[[2.0, 1.0], [1.0, 2.0]]]))[0]
    array([[8., 1.],
           [1., 8.]])
    """

    k: int
    radius: float | None = None
    solver = "dual"
    offers = frozenset({SMOOTH})

    @property
    def exponent(self) -> float:
        """The power q of the entries, 2k / (2k - 1)."""
        return 2.0 * self.k / (2.0 * self.k - 1.0)

    def value(self, L: Array) -> float:
        """Return half the sum of the q-th powers of the entries; zero for the constraint."""
        return 0.5 * float(np.sum(np.abs(L) ** self.exponent)) if self.radius is None else 0.0

    def argmax(self, S: Array) -> Array:
        """Return the maximising L: entrywise odd powers of S, on the boundary of a ball if there is one."""
        power = 2 * self.k - 1
        if self.radius is None:
            return np.asarray((S / self.exponent) ** power)
        largest = float(np.abs(S).max(initial=0.0))
        if largest <= TINY:
            return np.zeros_like(S)
        L = (S / largest) ** power
        return np.asarray(
            L * (self.radius / float(np.sum(np.abs(L) ** self.exponent)) ** (1 / self.exponent))
        )


def compose(levels: Array, V: Array) -> Array:
    """Stack of V diag(levels) V^T, from (m, r) and (m, k, r)."""
    scaled: Any = V * np.sqrt(levels)[:, None, :]
    return np.asarray(scaled @ scaled.transpose(0, 2, 1))


#: Names of penalties on an output kernel; `entangled_kernels.OutputKernelRidge` defines them.
PENALTIES = ("frobenius", "schatten", "trace", "elastic", "cluster", "entrywise")


@dataclass(frozen=True)
class OutputPenalty:
    """A penalty on the output kernel, before the number of outputs is known.

    The attributes are parameters of `entangled_kernels.OutputKernelRidge`. With ``constraint``,
    P(L) is at most P(I); ``"cluster"`` is always a constraint. With a ``rank`` the penalty is the
    trace, whatever the name.
    """

    name: str = "frobenius"
    constraint: bool = False
    exponent: float = 4.0 / 3.0
    l1_ratio: float = 0.5
    level_bounds: tuple[float, float] = (0.1, 10.0)
    rank: int | None = None

    @property
    def is_ball(self) -> bool:
        """True if L keeps the size of the identity."""
        return self.rank is None and (self.constraint or self.name == "cluster")

    @property
    def solver(self) -> str | None:
        """The solver for one kernel in its eigenbasis; None is the default of the penalty."""
        if self.rank is not None:
            return "balanced"
        return "newton" if self.name == "frobenius" and not self.constraint else None

    @property
    def power(self) -> float:
        """The power of the size of L that the penalty grows with; the higher one of a mixture."""
        if self.rank is not None or self.name == "trace":
            return 1.0
        return self.exponent if self.name in ("schatten", "entrywise") else 2.0

    def build(self, n_outputs: int, n_levels: int) -> Penalty:
        """The penalty on L restricted to ``n_levels`` directions of the outputs.

        With ``"cluster"`` the other directions are fixed: the mean of the outputs has level one,
        and the rest have the lower bound.
        """
        p = float(n_outputs)
        if self.rank is not None:
            return Schatten(1.0, rank=min(self.rank, n_levels))
        if self.name == "elastic":
            return Elastic(self.l1_ratio, 0.5 * p if self.constraint else None)
        if self.name == "cluster":
            low, high = self.level_bounds
            return Cluster(low, high, (p - 1.0) - low * (p - 1.0 - n_levels))
        q = self.power
        radius = p ** (1.0 / q) if self.constraint else None
        if self.name == "entrywise":
            return Entrywise(round(q / (2.0 * (q - 1.0))), radius)
        return Schatten(q, radius)

    def shrunk_conjugate(self, S: Array) -> tuple[float, float]:
        """P*(t^2 S / 2) over all outputs, S (p, p), with the t of `Penalty.shrink`."""
        p = len(S)
        if self.rank is not None or self.name != "cluster":
            return self.build(p, p).shrunk_conjugate(S[None])
        # The mean of the outputs has level one; the penalty is on the others.
        basis = np.linalg.svd(np.ones((1, p)))[2][1:].T  # (p, p - 1)
        t, others = self.build(p, p - 1).shrunk_conjugate((basis.T @ S @ basis)[None])
        return t, others + 0.5 * float(S.sum()) / p


def typical_level(square: float, power: float) -> float:
    """Size of L at which a penalty of this power balances a squared norm."""
    return float(np.cbrt(square) if power == 2.0 else square ** (1.0 / (power + 1.0)))


def graph_output_kernel(adjacency: ArrayLike, strength: float = 1.0) -> Array:
    """Output kernel of a graph: linked outputs have models that are alike.

    Parameters
    ----------
    adjacency : array-like of shape (p, p)
        Symmetric, with non-negative weights of the links between outputs; the diagonal is not used.
    strength : float, default=1.0
        How much links weigh against the norm of each model, at least 0; 0 gives the identity.

    Returns
    -------
    L : ndarray of shape (p, p)
        Positive definite, of trace p as the identity, so that alpha keeps its meaning.

    Notes
    -----
    With the Laplacian M = diag(degrees) - adjacency the penalty sum_i |f_i|^2 + strength * sum_ij
    A_ij |f_i - f_j|^2 / 2 of models f_1, ..., f_p is that of the kernel k(x, z) (I + strength
    M)^-1. Time p^3.

    Examples
    --------
    >>> graph_output_kernel([[0, 1, 0], [1, 0, 0], [0, 0, 0]]).round(3)
    array([[0.857, 0.429, 0.   ],
           [0.429, 0.857, 0.   ],
           [0.   , 0.   , 1.286]])
    """
    A = np.array(adjacency, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"adjacency must be a square matrix over the outputs, got shape {A.shape}")
    np.fill_diagonal(A, 0.0)
    if not np.isfinite(A).all() or A.min(initial=0.0) < 0.0:
        raise ValueError(
            "adjacency must hold finite weights of at least 0; take absolute values, or clip"
        )
    if not np.allclose(A, A.T):
        raise ValueError("adjacency must be symmetric; use (adjacency + adjacency.T) / 2")
    if not (np.isfinite(strength) and strength >= 0.0):
        raise ValueError(f"strength must be a number of at least 0, got {strength!r}")
    L = np.linalg.inv(np.eye(len(A)) + strength * (np.diag(A.sum(axis=1)) - A))
    return np.asarray((L + L.T) * (0.5 * len(A) / np.trace(L)))
