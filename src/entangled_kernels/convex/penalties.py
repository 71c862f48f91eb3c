"""Convex penalties of learned kernels: their value, their conjugate, and where it is attained.

Parameters are a stack of psd matrices, an array (m, k, k): one matrix for an output kernel, m of size one
for the weights of m kernels. With ``radius`` a penalty is the constraint that its value is at most that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from ..linalg import Array

__all__ = ["Cluster", "Elastic", "Entrywise", "Penalty", "Schatten", "SpectralPenalty"]

TINY = float(np.finfo(np.float64).tiny)


class Penalty:
    """A convex function P of a stack of psd matrices L, or the indicator of a convex set of them.

    Attributes
    ----------
    solver : str
        The solver of `entangled_kernels.convex.SOLVERS` that suits it.
    """

    solver: str
    radius: float | None

    def value(self, L: Array) -> float:
        """P(L); zero for a constraint, which L is taken to meet."""
        raise NotImplementedError

    def conjugate(self, S: Array) -> float:
        """P*(S / 2), the maximum over L of <L, S> / 2 - P(L)."""
        raise NotImplementedError

    def argmax(self, S: Array) -> Array:
        """The L at which that maximum is attained."""
        raise NotImplementedError

    def shrink(self, S: Array) -> float:
        """The largest t of at most one for which P*(t^2 S / 2) is finite."""
        return 1.0


class SpectralPenalty(Penalty):
    """A penalty on the eigenvalues of all matrices of the stack taken together: the levels of L."""

    def value(self, L: Array) -> float:
        """P(L); zero for a constraint, which L is taken to meet."""
        return self.level_value(np.maximum(np.linalg.eigvalsh(L), 0.0))

    def conjugate(self, S: Array) -> float:
        """P*(S / 2), the maximum over L of <L, S> / 2 - P(L)."""
        squares = np.maximum(np.linalg.eigvalsh(S), 0.0)
        levels = self.level_argmax(squares)
        return 0.5 * float(np.vdot(levels, squares)) - self.level_value(levels)

    def argmax(self, S: Array) -> Array:
        """The L at which that maximum is attained."""
        squares, V = np.linalg.eigh(S)
        return compose(self.level_argmax(np.maximum(squares, 0.0)), V)

    def level_value(self, levels: Array) -> float:
        """P of levels, (m, k)."""
        raise NotImplementedError

    def level_argmax(self, squares: Array) -> Array:
        """Levels (m, k) at which <levels, squares> / 2 - P(levels) is largest."""
        raise NotImplementedError

    def level_best(self, squares: Array) -> Array:
        """Levels (m, k) at which <1 / levels, squares> / 2 + P(levels) is least."""
        raise NotImplementedError

    def level_slope(self, levels: Array) -> Array:
        """Gradient of P, or of the function that a constraint bounds."""
        raise NotImplementedError

    def level_scale(self, levels: Array) -> float:
        """The factor that takes levels to the boundary of the constraint; one without a constraint."""
        raise NotImplementedError


@dataclass(frozen=True)
class Schatten(SpectralPenalty):
    """P(L) = sum level^q / 2: the trace at q = 1, the squared Frobenius norm at q = 2.

    Parameters
    ----------
    exponent : float
        q, at least 1.
    radius : float, optional
        Constraint that (sum level^q)^(1/q) is at most this, in the place of the penalty.

    Notes
    -----
    The maximum of s l / 2 - l^q / 2 over l >= 0 is at l = (s / q)^(1 / (q-1)). Of a ball of radius r the
    maximum is that multiple of s^(1 / (q-1)) which lies on its boundary. For q = 1 the conjugate
    is zero up to an eigenvalue of one and infinite beyond it, and that of the ball r times the largest
    eigenvalue: neither is smooth, and the solver works on a factor of L.

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
    solver = "factor"

    def level_value(self, levels: Array) -> float:
        """Half the sum of powers."""
        return 0.5 * float(np.sum(levels**self.exponent)) if self.radius is None else 0.0

    def level_argmax(self, squares: Array) -> Array:
        """Powers of the squares, on the boundary of the ball where there is one."""
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
        """Powers of the squares: sum squares / (2 levels) + sum level^q / 2 is least where they meet."""
        levels = (squares / self.exponent) ** (1.0 / (self.exponent + 1.0))
        return levels if self.radius is None else self._to_ball(levels)

    def level_slope(self, levels: Array) -> Array:
        """q level^(q-1) / 2; for a ball, the gradient of the norm."""
        if self.radius is None:
            return np.asarray(0.5 * self.exponent * levels ** (self.exponent - 1.0))
        norm = max(self._norm(levels), TINY)
        return np.asarray((levels / norm) ** (self.exponent - 1.0))

    def level_scale(self, levels: Array) -> float:
        """The radius over the norm."""
        return 1.0 if self.radius is None else self.radius / max(self._norm(levels), TINY)

    def shrink(self, S: Array) -> float:
        """For the trace: 1 over the root of the largest eigenvalue of S."""
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
        Constraint that P(L) is at most this, in the place of the penalty.

    Notes
    -----
    The maximum of s l / 2 - P(l) is at l = max(s - a, 0) / (2 (1 - a)). Under the constraint it is at
    l = max(s / v - a, 0) / (2 (1 - a)) for that v at which P is the radius.

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

    def level_value(self, levels: Array) -> float:
        """P of the levels."""
        return self._function(levels) if self.radius is None else 0.0

    def level_argmax(self, squares: Array) -> Array:
        """Squares less a threshold, scaled."""
        if self.radius is None:
            return self._above(squares)
        largest = float(squares.max(initial=0.0))
        if largest <= TINY:
            return np.zeros_like(squares)
        scaled, radius = squares / largest, self.radius

        def excess(log_t: float) -> float:
            return self._function(self._above(scaled * np.exp(log_t))) - radius

        # At t = a nothing is above the threshold; one level alone is at least sqrt(2 radius / (1-a)) in size
        # before the constraint binds, which bounds t from above.
        a = self.l1_ratio
        high = 2.0 * (1.0 - a) * (1.0 + np.sqrt(2.0 * radius / (1.0 - a))) + a
        low = max(a, 1e-30 * high)
        t = brentq(excess, np.log(low), np.log(high), xtol=1e-15, rtol=1e-15)
        return self._above(scaled * np.exp(t))

    def level_slope(self, levels: Array) -> Array:
        """a / 2 + (1 - a) level."""
        return np.asarray(0.5 * self.l1_ratio + (1.0 - self.l1_ratio) * levels)

    def level_scale(self, levels: Array) -> float:
        """The positive root t of a t sum(levels) + (1 - a) t^2 sum(levels^2) = 2 radius."""
        if self.radius is None:
            return 1.0
        linear = self.l1_ratio * float(levels.sum())
        square = (1.0 - self.l1_ratio) * float(np.vdot(levels, levels))
        return 4.0 * self.radius / max(linear + float(np.sqrt(linear**2 + 8.0 * self.radius * square)), TINY)

    def level_best(self, squares: Array) -> Array:
        """Root of the cubic (1 - a) l^3 + a l^2 / 2 = squares / 2, by Newton steps from above."""
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
    With few levels at ``high`` and the others at ``low``, outputs fall into clusters whose centres differ
    much and whose members differ little. The function min over L of tr(M L^-1) / 2 is smooth in M, since
    levels are at least ``low``: the solver works on the model. Levels there are clip(sqrt(squares) t, low,
    high), with t such that they sum to the budget.

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

    def level_value(self, levels: Array) -> float:
        """Zero."""
        return 0.0

    def level_argmax(self, squares: Array) -> Array:
        """The largest squares get ``high`` while the budget lasts, all others ``low``."""
        order = np.argsort(-squares, axis=None, kind="stable")
        left = self.budget - self.low * squares.size
        width = self.high - self.low
        levels = np.empty(squares.size)
        levels[order] = self.low + np.clip(left - width * np.arange(squares.size), 0.0, width)
        return levels.reshape(squares.shape)

    def level_best(self, squares: Array) -> Array:
        """Clipped roots of the squares that use up the budget."""
        roots = np.sqrt(np.maximum(squares, 0.0)).ravel()
        if self.high * roots.size <= self.budget or not roots.any():
            return np.full(squares.shape, min(self.high, self.budget / roots.size))
        # The sum is piecewise linear in t, between the points where a root enters or leaves the interval.
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
        Constraint that (sum |L_ij|^q)^(1/q) is at most this, in the place of the penalty.

    Notes
    -----
    The maximum of <L, S> / 2 - P(L) over all matrices is at L_ij = (S_ij / q)^(2k - 1). An odd entrywise
    power of a psd matrix is psd by Schur's product theorem, so that no eigendecomposition is needed.

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

    @property
    def exponent(self) -> float:
        """q."""
        return 2.0 * self.k / (2.0 * self.k - 1.0)

    def value(self, L: Array) -> float:
        """Half the sum of powers of the entries."""
        return 0.5 * float(np.sum(np.abs(L) ** self.exponent)) if self.radius is None else 0.0

    def conjugate(self, S: Array) -> float:
        """P*(S / 2)."""
        L = self.argmax(S)
        return 0.5 * float(np.vdot(L, S)) - self.value(L)

    def argmax(self, S: Array) -> Array:
        """Entrywise odd powers of S, on the boundary of the ball where there is one."""
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
