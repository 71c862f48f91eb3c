"""Alignment of an operator-valued kernel with the targets, and its gradient, from moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linalg import Array
from .moments import Moments

__all__ = ["Alignment", "Evaluation", "Line"]

Pair = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Objective and gradient at one Q.

    Attributes
    ----------
    value : float
    terms : ndarray of shape (2,)
        Partial-trace and full alignment.
    gradient : ndarray of shape (m, k, r)
    inner, projection : pair of ndarray
        X^T E X or E X X^T, and b^T X, of each term; `Alignment.line` starts from them.
    """

    value: float
    terms: Array
    gradient: Array
    inner: Pair
    projection: Pair


@dataclass(frozen=True, eq=False)
class Line:
    """The objective along Q + t * direction, as a function of t that is cheap to call.

    Attributes
    ----------
    weights : ndarray of shape (2,)
        Weights of the terms, divided by their norms.
    gain : ndarray of shape (3, 2)
        Coefficients of the numerators ||b^T X||^2, lowest power of t first.
    squared : ndarray of shape (5, 2)
        Coefficients of the squared denominators.
    inner : pair of (ndarray, ndarray, ndarray)
        Coefficients of the inner products of each term.
    """

    weights: Array
    gain: Array
    squared: Array
    inner: tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]

    def __call__(self, t: float) -> float:
        """Objective at t."""
        g, s = self.gain, self.squared
        squared = s[0] + t * (s[1] + t * (s[2] + t * (s[3] + t * s[4])))
        return _weighted_ratios(self.weights, g[0] + t * (g[1] + t * g[2]), squared)

    def inner_at(self, t: float, scale: float) -> Pair:
        """Inner products that `Alignment.evaluate` can start from at scale * (Q + t * direction)."""
        traced, full = (
            scale**2 * (start + t * first + t**2 * last) for start, first, last in self.inner
        )
        return traced, full


@dataclass(frozen=True, eq=False)
class Alignment:
    """The objective of entangled kernel learning, (1 - mix) * a1 + mix * a2, as a function of D and mix.

    For D = A kron I_p + Q Q^T with partial trace S over the outputs, and with C, B, V the centred
    co-moments of features and targets,

        a1 = tr(S B B^T) / ( sqrt(tr(C S C S)) * ||V||_F )
        a2 = (q^T D q) / ( sqrt(tr(E D E D)) * ||y||^2 )

    are the centred alignments of the partial trace of the Gram matrix with Y Y^T and of the whole
    Gram matrix with y y^T. When rows are centred per column, E = C kron I_p, q = vec(B) and ||y||^2
    = tr V. When they are taken as they are, the paper centres the whole Gram matrix with one mean
    over all its n p rows. With c the grand mean of the targets, W the total weight and g = sqrt(W)
    * mean(phi),

        q = vec(Phi^T (Y - c)),   E = C kron I_p + g g^T kron J,   J = I_p - 1 1^T / p

    which is Phi^T Phi kron I_p less the outer product of the mean, written without a difference.

    Attributes
    ----------
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
    Both terms have the same form, ``||b^T X||^2 / ||X^T E X||_F``, in two unfoldings X of Q, and
    each gradient is ``2 (b b^T X - (gain / squared norm) E X X^T E X) / norm``. Along a line Q + t
    * direction gain and squared norm are polynomials of degree two and four in t, so after `line`
    every trial step of a line search is free.

    Time m k r (m + r) and less when k r < m; no n, and nothing of size (m k)^2 unless r is that
    large.
    """

    C: Array | None
    B: Array
    q: Array
    g: Array | None
    ones: Array
    norms: tuple[float, float]
    n_outputs: int

    @classmethod
    def from_moments(
        cls,
        moments: Moments,
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
        return cls(C=C, B=B, q=q, g=g, ones=ones, norms=norms, n_outputs=p)

    def transformed(self, features: Array, outputs: Array, *, whitened: bool) -> Alignment:
        """The same objective for Q given in other coordinates, Q = (features kron outputs) Q'.

        ``features`` is any matrix (m, m'), ``outputs`` (k, k') has orthonormal columns;
        ``whitened`` says that features^T C features is the identity, which then costs nothing to
        apply.
        """
        C = None if whitened else features.T @ (features if self.C is None else self.C @ features)
        B = features.T @ self.B @ outputs
        return Alignment(
            C=C,
            B=B,
            q=B if self.q is self.B else features.T @ self.q @ outputs,
            g=None if self.g is None else features.T @ self.g,
            ones=self.ones @ outputs,
            norms=self.norms,
            n_outputs=self.n_outputs,
        )

    def _apply(self, X: Array, full: bool) -> Array:
        """E X of the full term for X (m * k, columns), C X of the partial-trace term for X (m, columns)."""
        CX = X if self.C is None else (self.C @ X.reshape(len(self.C), -1)).reshape(X.shape)
        if self.g is None or not full:
            return CX
        wide = X.reshape(*self.q.shape, X.shape[1])  # (m, k, columns)
        along = np.tensordot(self.g, wide, axes=1)  # (k, columns)
        along = along - np.outer(self.ones, self.ones @ along) / self.n_outputs
        return CX + np.multiply.outer(self.g, along).reshape(X.shape)

    def evaluate(self, Q: Array, mix: float, inner: Pair | None = None) -> Evaluation:
        """Objective, terms and gradient at Q (m, k, r), from inner products of `Line.inner_at` if given."""
        values, gradient = np.zeros(2), np.zeros(Q.shape)
        inners, projections = list[Array](), list[Array]()
        shares = (1.0 - mix, mix)
        for term, b in enumerate((self.B, self.q.reshape(-1, 1))):
            X = Q.reshape(len(b), -1)  # (m, k * r) or (m * k, r)
            # tr(X^T E X X^T E X) and E X X^T E X, by X^T E X or by E X X^T, whichever is smaller.
            EX = self._apply(X, term == 1)
            by_columns = X.shape[1] <= X.shape[0]
            if inner is not None:
                product = inner[term]
            else:
                product = X.T @ EX if by_columns else self._apply(X @ X.T, term == 1)
            projection = b.T @ X
            inners.append(product)
            projections.append(projection)
            squared = float(np.vdot(product, product.T))
            if self.norms[term] == 0.0 or squared <= 0.0:
                continue
            gain = float(np.vdot(projection, projection))
            scale = 1.0 / (np.sqrt(squared) * self.norms[term])
            pull = EX @ product if by_columns else product @ EX
            slope = (2.0 * scale) * (b @ projection - (gain / squared) * pull)
            values[term] = gain * scale
            gradient += shares[term] * slope.reshape(Q.shape)
        value = float(shares[0] * values[0] + shares[1] * values[1])
        return Evaluation(
            value, values, gradient, (inners[0], inners[1]), (projections[0], projections[1])
        )

    def line(self, Q: Array, direction: Array, mix: float, at: Evaluation) -> Line:
        """The objective along Q + t * direction, where it has been evaluated at Q."""
        gain, squared = np.zeros((3, 2)), np.zeros((5, 2))
        inner = list[tuple[Array, Array, Array]]()
        for term, b in enumerate((self.B, self.q.reshape(-1, 1))):
            X, T = Q.reshape(len(b), -1), direction.reshape(len(b), -1)
            if X.shape[1] <= X.shape[0]:
                ET = self._apply(T, term == 1)
                cross, last = X.T @ ET, T.T @ ET
                first = cross + cross.T
            else:
                cross = X @ T.T
                first = self._apply(cross + cross.T, term == 1)
                last = self._apply(T @ T.T, term == 1)
            at_start, along_X, along_T = at.inner[term], at.projection[term], b.T @ T
            gain[:, term] = (
                np.vdot(along_X, along_X),
                2.0 * np.vdot(along_X, along_T),
                np.vdot(along_T, along_T),
            )
            squared[:, term] = (
                np.vdot(at_start, at_start.T),
                2.0 * np.vdot(at_start, first.T),
                np.vdot(first, first.T) + 2.0 * np.vdot(at_start, last.T),
                2.0 * np.vdot(first, last.T),
                np.vdot(last, last.T),
            )
            inner.append((at_start, first, last))
        shares, norms = np.array([1.0 - mix, mix]), np.array(self.norms)
        weights = np.divide(shares, norms, out=np.zeros(2), where=norms > 0.0)
        return Line(weights, gain, squared, (inner[0], inner[1]))

    def terms(self, Q: Array, metric: Array | None = None) -> tuple[float, float]:
        """Partial-trace and full alignment of D = metric kron I_p + Q Q^T, Q (m, k, r), metric (m, m)."""
        m, k, r = Q.shape
        A = np.zeros((m, m)) if metric is None else metric
        Q_wide, Q_tall = Q.reshape(m, k * r), Q.reshape(m * k, r)
        S = self.n_outputs * A + Q_wide @ Q_wide.T
        CS, CA = (S, A) if self.C is None else (self.C @ S, self.C @ A)
        gains = [float(np.vdot(self.B, S @ self.B)), float(np.vdot(self.q, A @ self.q))]
        gains[1] += float(np.sum((self.q.reshape(-1) @ Q_tall) ** 2))
        squares = [float(np.vdot(CS, CS.T)), self.n_outputs * float(np.vdot(CA, CA.T))]
        if r > 0:
            EQ = self._apply(Q_tall, True)
            inner, EQ_wide = Q_tall.T @ EQ, EQ.reshape(m, k * r)
            squares[1] += float(np.vdot(inner, inner)) + 2.0 * float(np.vdot(EQ_wide, A @ EQ_wide))
        if self.g is not None:
            Ag = A @ self.g
            once, twice = float(self.g @ Ag), float(Ag @ (Ag if self.C is None else self.C @ Ag))
            squares[1] += (self.n_outputs - 1) * (once**2 + 2.0 * twice)
        denominators = np.sqrt(np.maximum(squares, 0.0)) * self.norms
        a1, a2 = np.divide(gains, denominators, out=np.zeros(2), where=denominators > 0.0)
        return float(a1), float(a2)


def _weighted_ratios(weights: Array, gain: Array, squared: Array) -> float:
    """Weighted sum of gain / sqrt(squared) over the terms; terms whose denominator is zero are zero."""
    positive = squared > 0.0
    return float(np.sum(weights[positive] * gain[positive] / np.sqrt(squared[positive])))
