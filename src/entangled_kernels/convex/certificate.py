"""What a Gram matrix that is linear in its parameters offers, and the duality gap of a choice of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from ..linalg import Array
from .penalties import Penalty

__all__ = ["Gram", "Point", "Preconditioner", "Step", "certify", "duality_gap", "witnessed"]


class Preconditioner(NamedTuple):
    """A linear change of variables of the coefficients: C = forward(X), with its inverse and adjoint."""

    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    adjoint: Callable[[Array], Array]


class Gram(Protocol):
    """A Gram matrix G_L, linear in a stack L (m, k, k) of psd matrices, with targets and a ridge.

    Attributes
    ----------
    alpha : float
        The ridge.
    targets : ndarray
        y, of the shape of the coefficients c.
    constant : float
        What the objective has beyond y^T (G + alpha I)^-1 y / 2: the part of the targets that G cannot reach.
    """

    @property
    def alpha(self) -> float:
        """The ridge."""

    @property
    def targets(self) -> Array:
        """Targets."""

    @property
    def constant(self) -> float:
        """What the objective has beyond its parameters."""

    def apply(self, L: Array, C: Array) -> Array:
        """G_L c."""

    def squares(self, C: Array) -> Array:
        """The stack S with <L, S> = c^T G_L c for all L."""

    def solve(self, L: Array) -> tuple[Array, float]:
        """Coefficients c of (G_L + alpha I) c = y, and ||e||^2 / (2 alpha) for what is left of y, e."""

    def preconditioner(self, L: Array) -> Preconditioner:
        """A change of variables in which G_L + alpha I is near the identity."""

    def curvature(self, L: Array, C: Array) -> Array:
        """Diagonal of the Hessian of y^T (G_L + alpha I)^-1 y / 2, (m, k, k), in the eigenbases of L.

        Of matrices of size one, k = 1, the whole Hessian (m, m).
        """


@dataclass(frozen=True, eq=False)
class Point:
    """Parameters L, the coefficients C that go with them, and how far they are from the best.

    Attributes
    ----------
    L : ndarray of shape (m, k, k)
    C : ndarray
    S : ndarray of shape (m, k, k)
        Squares of C.
    value : float
        The objective J(L).
    gap : float
        J(L) is at most this much above its minimum.
    witness : ndarray
        Coefficients whose dual value is J(L) - gap: C itself, unless a solver found better ones.
    """

    L: Array
    C: Array
    S: Array
    value: float
    gap: float
    witness: Array


class Step(NamedTuple):
    """What a round of a solver found: parameters, the coefficients to go on from, evaluations it took."""

    L: Array
    C: Array | None
    evaluations: int


def certify(gram: Gram, penalty: Penalty, L: Array) -> Point:
    """Evaluate the objective and its duality gap at L.

    Parameters
    ----------
    gram : Gram
    penalty : Penalty
    L : ndarray of shape (m, k, k)

    Notes
    -----
    The objective J(L) = y^T (G_L + alpha I)^-1 y / 2 + P(L) is convex. Its first term is the maximum over c
    of c^T y - alpha |c|^2 / 2 - c^T G_L c / 2, and the minimum over L may be taken first:

        min J = max over c of   c^T y - alpha |c|^2 / 2 - P*(S / 2),   <L, S> = c^T G_L c.

    Every c bounds the minimum from below. With c = (G_L + alpha I)^-1 y the difference of the two is

        gap = P(L) + P*(S / 2) - <L, S> / 2

    which is zero exactly where L attains the maximum in P*(S / 2). A c that solves the equation up to a
    residual e adds |e|^2 / (2 alpha). Where P*(S / 2) is infinite (the trace), c is shrunk to t c.
    """
    C, slack = gram.solve(L)
    S = gram.squares(C)
    P = penalty.value(L)
    gap, t = duality_gap(gram, penalty, P, L, C, S)
    # ||y - G c||^2 / (2 alpha) + c^T G c / 2, with the residual e of the equation put apart.
    data = slack + float(np.vdot(gram.targets, C)) - 0.5 * (_inner(L, S) + _size(gram, C))
    return Point(L, C, S, data + P + gram.constant, max(gap + slack, 0.0), C if t == 1.0 else t * C)


def duality_gap(gram: Gram, penalty: Penalty, P: float, L: Array, C: Array, S: Array) -> tuple[float, float]:
    """The gap at L, whose penalty is P, by the coefficients t C that solve its equation, and t."""
    t = penalty.shrink(S)
    if t == 1.0:
        return P + penalty.conjugate(S) - 0.5 * _inner(L, S), 1.0
    fit, size = float(np.vdot(gram.targets, C)), _size(gram, C)
    t = min(t, fit / size)
    return P + fit - 0.5 * (_inner(L, S) + size) - (t * fit - 0.5 * t**2 * size), t


def _inner(L: Array, S: Array) -> float:
    """c^T G_L c."""
    return float(np.vdot(L, S))


def _size(gram: Gram, C: Array) -> float:
    """alpha |c|^2."""
    return gram.alpha * float(np.vdot(C, C))


def witnessed(gram: Gram, penalty: Penalty, point: Point, C: Array) -> Point:
    """The point with other coefficients as its witness, where their dual value is higher."""
    fit, size = float(np.vdot(gram.targets, C)), gram.alpha * float(np.vdot(C, C))
    dual = fit - 0.5 * size - penalty.conjugate(gram.squares(C))
    gap = max(point.value - gram.constant - dual, 0.0)
    return replace(point, gap=gap, witness=C) if gap < point.gap else point
