"""How well an operator-valued kernel is aligned with the targets, and the gradient of that, from moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg import Array
from .moments import Moments

__all__ = ["Alignment", "Evaluation", "Line"]

STATE = ("mix", "C", "B", "q", "g", "ones", "norms", "n_outputs")


@dataclass(frozen=True, eq=False)
class _Part:
    """What one term leaves behind for the gradient and for a line search through the same point."""

    value: float
    gradient: Array
    inner: Array
    projection: Array


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Objective, its two terms and its gradient (m, k, r) at one Q; passed back to `Alignment.line`."""

    value: float
    terms: tuple[float, float]
    gradient: Array
    parts: tuple[_Part, _Part]


class _Term:
    """Alignment of X X^T with b b^T under a psd form E: ||b^T X||^2 / (||X^T E X||_F * norm).

    Both alignments of the paper are this one function, of two unfoldings of the same array Q: the
    partial-trace term reads it as X = (m, k * r), the full term as X = (m * k, r).
    """

    def __init__(self, b: Array, norm: float, form: Callable[[Array], Array]) -> None:
        self.b, self.norm, self.form = b, norm, form

    def evaluate(self, X: Array, inner: Array | None = None) -> _Part:
        # tr(X^T E X X^T E X) and E X X^T E X, by X^T E X or by E X X^T, whichever is smaller.
        EX = self.form(X)
        projection = self.b.T @ X
        if X.shape[1] <= X.shape[0]:
            inner = X.T @ EX if inner is None else inner
            pull = EX @ inner
        else:
            inner = self.form(X @ X.T) if inner is None else inner
            pull = inner @ EX
        squared = float(np.vdot(inner, inner.T))
        if self.norm == 0.0 or squared <= 0.0:
            return _Part(0.0, np.zeros_like(X), inner, projection)
        gain = float(np.vdot(projection, projection))
        scale = 1.0 / (np.sqrt(squared) * self.norm)
        gradient = (2.0 * scale) * (self.b @ projection - (gain / squared) * pull)
        return _Part(gain * scale, gradient, inner, projection)

    def line(self, X: Array, direction: Array, part: _Part) -> _TermAlongLine:
        projection = self.b.T @ direction
        if X.shape[1] <= X.shape[0]:
            ED = self.form(direction)
            cross, last = X.T @ ED, direction.T @ ED
            first = cross + cross.T
        else:
            cross = X @ direction.T
            first, last = self.form(cross + cross.T), self.form(direction @ direction.T)
        gain = (
            float(np.vdot(part.projection, part.projection)),
            2.0 * float(np.vdot(part.projection, projection)),
            float(np.vdot(projection, projection)),
        )
        squared = (
            float(np.vdot(part.inner, part.inner.T)),
            2.0 * float(np.vdot(part.inner, first.T)),
            float(np.vdot(first, first.T)) + 2.0 * float(np.vdot(part.inner, last.T)),
            2.0 * float(np.vdot(first, last.T)),
            float(np.vdot(last, last.T)),
        )
        return _TermAlongLine(self, gain, squared, (part.inner, first, last))

    def ratio(self, gain: float, squared: float) -> float:
        if self.norm == 0.0 or squared <= 0.0:
            return 0.0
        return gain / (float(np.sqrt(squared)) * self.norm)


@dataclass(frozen=True, eq=False)
class _TermAlongLine:
    """One term at X + t * direction: gain and squared norm are polynomials in t, lowest power first."""

    term: _Term
    gain: tuple[float, float, float]
    squared: tuple[float, float, float, float, float]
    inner: tuple[Array, Array, Array]

    def value(self, t: float) -> float:
        g, s = self.gain, self.squared
        squared = s[0] + t * (s[1] + t * (s[2] + t * (s[3] + t * s[4])))
        return self.term.ratio(g[0] + t * (g[1] + t * g[2]), squared)

    def inner_at(self, t: float) -> Array:
        start, first, last = self.inner
        return start + t * first + t**2 * last


@dataclass(frozen=True, eq=False)
class Line:
    """The objective along Q + t * direction: a function of t whose calls cost nothing."""

    mix: float
    terms: tuple[_TermAlongLine, _TermAlongLine]

    def __call__(self, t: float) -> float:
        """Objective at t."""
        return (1.0 - self.mix) * self.terms[0].value(t) + self.mix * self.terms[1].value(t)

    def inner_at(self, t: float, scale: float) -> tuple[Array, Array]:
        """Inner products that `Alignment.evaluate` can start from at scale * (Q + t * direction)."""
        return scale**2 * self.terms[0].inner_at(t), scale**2 * self.terms[1].inner_at(t)


class Alignment:
    """The objective of entangled kernel learning, (1 - mix) * a1 + mix * a2, as a function of D.

    For D = A kron I_p + Q Q^T with partial trace S over the outputs, and with C, B, V the centred
    co-moments of features and targets,

        a1 = tr(S B B^T) / ( sqrt(tr(C S C S)) * ||V||_F )
        a2 = (q^T D q) / ( sqrt(tr(E D E D)) * ||y||^2 )

    are the centred alignments of the partial trace of the Gram matrix with Y Y^T and of the whole Gram
    matrix with y y^T. When rows are centred per column, E = C kron I_p, q = vec(B) and ||y||^2 = tr V.
    When they are taken as they are, the paper centres the whole Gram matrix with one mean over all its n p
    rows. With c the grand mean of the targets, W the total weight and g = sqrt(W) * mean(phi),

        q = vec(Phi^T (Y - c)),   E = C kron I_p + g g^T kron J,   J = I_p - 1 1^T / p

    which is Phi^T Phi kron I_p less the outer product of the mean, written without a difference.

    Parameters
    ----------
    mix : float
        Weight of the full term, between 0 and 1.
    C : ndarray of shape (m, m) or None
        None stands for the identity.
    B, q : ndarray of shape (m, k)
        For the partial-trace and for the full term.
    g : ndarray of shape (m,) or None
        None when rows are centred per column.
    ones : ndarray of shape (k,)
        The vector of p ones in the coordinates of the outputs, which must span it where g is given.
    norms : pair of float
        ||V||_F and ||y||^2; B, q and these may be in any unit of the targets.
    n_outputs : int
        p; larger than k when outputs were reduced.

    Notes
    -----
    Both terms have the same form, ``||b^T X||^2 / ||X^T E X||_F``, in two unfoldings X of Q, and each
    gradient is ``2 (b b^T X - (gain / squared norm) E X X^T E X) / norm``. Along a line Q + t * direction
    gain and squared norm are polynomials of degree two and four in t, so after `line` every trial step
    of a line search is free.

    Time m k r (m + r) and less when k r < m; no n, and nothing of size (m k)^2 unless r is that large.
    """

    def __init__(
        self,
        mix: float,
        *,
        C: Array | None,
        B: Array,
        q: Array,
        g: Array | None,
        ones: Array,
        norms: tuple[float, float],
        n_outputs: int,
    ) -> None:
        self.mix, self.n_outputs, self.norms = mix, n_outputs, norms
        self.C, self.B, self.q, self.g, self.ones = C, B, q, g, ones
        self._traced = _Term(B, norms[0], self._apply_C)
        self._full = _Term(q.reshape(-1, 1), norms[1], self._apply_E)

    def __getstate__(self) -> dict[str, Any]:
        # Only what it is made of: the terms refer back to this object.
        return {name: getattr(self, name) for name in STATE}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @classmethod
    def from_moments(
        cls,
        moments: Moments,
        mix: float = 0.5,
        *,
        centred: bool = True,
        ones: Array | None = None,
        n_outputs: int | None = None,
        norms: tuple[float, float] | None = None,
    ) -> Alignment:
        """Objective in the coordinates of the moments.

        Parameters
        ----------
        moments : Moments
        mix : float
        centred : bool
            Whether rows are centred per column first (as with an intercept), or taken as they are.
        ones : ndarray of shape (k,), optional
            Coordinates of the vector of p ones, where outputs have been rotated.
        n_outputs : int, optional
            p, where outputs have been rotated to fewer.
        norms : pair of float, optional
            ||V||_F and tr V, where the moments do not hold all of V; for centred rows.
        """
        p = moments.n_outputs if n_outputs is None else n_outputs
        C, B, V = moments.C, moments.B, moments.V
        ones = np.ones(p) if ones is None else ones
        weight, mean_phi, mean_y = moments.weight, moments.mean_phi, moments.mean_y
        grand_mean = float(ones @ mean_y) / p
        V_norm, energy = (None, float(np.trace(V))) if norms is None else norms
        if not centred:
            energy += weight * max(float(mean_y @ mean_y) - p * grand_mean**2, 0.0)
        # The unit of the targets cancels; taking it out keeps their squares within range.
        unit = np.sqrt(energy) if energy > 0.0 else 1.0
        V_norm = float(np.linalg.norm(V / unit / unit)) if V_norm is None else V_norm / unit / unit
        B, norms = B / unit, (V_norm, energy / unit**2)
        q, g = B, None
        if not centred:
            q = B + np.outer(weight * mean_phi, (mean_y - grand_mean * ones) / unit)
            g = np.sqrt(weight) * mean_phi
        return cls(mix, C=C, B=B, q=q, g=g, ones=ones, norms=norms, n_outputs=p)

    def with_mix(self, mix: float) -> Alignment:
        """The same objective with another weight of the full term."""
        return Alignment(
            mix,
            C=self.C,
            B=self.B,
            q=self.q,
            g=self.g,
            ones=self.ones,
            norms=self.norms,
            n_outputs=self.n_outputs,
        )

    def transformed(self, features: Array, outputs: Array, *, whitened: bool) -> Alignment:
        """The same objective for Q given in other coordinates, Q = (features kron outputs) Q'.

        ``features`` is any matrix (m, m'), ``outputs`` (k, k') has orthonormal columns; ``whitened`` says
        that features^T C features is the identity, which then costs nothing to apply.
        """
        C = None if whitened else features.T @ (features if self.C is None else self.C @ features)
        B = features.T @ self.B @ outputs
        return Alignment(
            self.mix,
            C=C,
            B=B,
            q=B if self.q is self.B else features.T @ self.q @ outputs,
            g=None if self.g is None else features.T @ self.g,
            ones=self.ones @ outputs,
            norms=self.norms,
            n_outputs=self.n_outputs,
        )

    def _apply_C(self, X: Array) -> Array:
        return X if self.C is None else self.C @ X

    def _apply_E(self, X: Array) -> Array:
        """E X for X (m * k, columns)."""
        m, k = self.q.shape
        n_columns = X.shape[1]
        EX = X if self.C is None else (self.C @ X.reshape(m, k * n_columns)).reshape(X.shape)
        if self.g is None:
            return EX
        along = np.tensordot(self.g, X.reshape(m, k, n_columns), axes=1)  # (k, columns)
        along = along - np.outer(self.ones, self.ones @ along) / self.n_outputs
        return EX + np.multiply.outer(self.g, along).reshape(X.shape)

    def evaluate(self, Q: Array, inner: tuple[Array, Array] | tuple[None, None] = (None, None)) -> Evaluation:
        """Objective, terms and gradient at Q (m, k, r), from inner products of `Line.inner_at` if given."""
        m, k, r = Q.shape
        traced = self._traced.evaluate(Q.reshape(m, k * r), inner[0])
        full = self._full.evaluate(Q.reshape(m * k, r), inner[1])
        gradient = (1.0 - self.mix) * traced.gradient.reshape(Q.shape)
        gradient += self.mix * full.gradient.reshape(Q.shape)
        terms = (traced.value, full.value)
        return Evaluation(self._blend(terms), terms, gradient, (traced, full))

    def line(self, Q: Array, direction: Array, at: Evaluation) -> Line:
        """The objective along Q + t * direction, where it has been evaluated at Q."""
        m, k, r = Q.shape
        wide, tall = (m, k * r), (m * k, r)
        traced = self._traced.line(Q.reshape(wide), direction.reshape(wide), at.parts[0])
        full = self._full.line(Q.reshape(tall), direction.reshape(tall), at.parts[1])
        return Line(self.mix, (traced, full))

    def value(self, Q: Array, metric: Array | None = None) -> float:
        """Objective of D = metric kron I_p + Q Q^T."""
        return self._blend(self.terms(Q, metric))

    def terms(self, Q: Array, metric: Array | None = None) -> tuple[float, float]:
        """Partial-trace and full alignment of D = metric kron I_p + Q Q^T, Q (m, k, r), metric (m, m)."""
        m, k, r = Q.shape
        A = np.zeros((m, m)) if metric is None else metric
        Q_wide, Q_tall = Q.reshape(m, k * r), Q.reshape(m * k, r)
        S = self.n_outputs * A + Q_wide @ Q_wide.T
        CS = self._apply_C(S)
        a1 = self._traced.ratio(float(np.vdot(self.B, S @ self.B)), float(np.vdot(CS, CS.T)))

        gain = float(np.vdot(self.q, A @ self.q)) + float(np.sum((self.q.reshape(-1) @ Q_tall) ** 2))
        CA = self._apply_C(A)
        EQ = self._apply_E(Q_tall)
        inner = Q_tall.T @ EQ
        squared = self.n_outputs * float(np.vdot(CA, CA.T)) + float(np.vdot(inner, inner))
        EQ_wide = EQ.reshape(m, k * r)
        squared += 2.0 * float(np.vdot(EQ_wide, A @ EQ_wide))
        if self.g is not None:
            Ag = A @ self.g
            once, twice = float(self.g @ Ag), float(Ag @ self._apply_C(Ag))
            squared += (self.n_outputs - 1) * (once**2 + 2.0 * twice)
        return a1, self._full.ratio(gain, squared)

    def _blend(self, terms: tuple[float, float]) -> float:
        return (1.0 - self.mix) * terms[0] + self.mix * terms[1]
