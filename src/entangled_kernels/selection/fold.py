"""One fold of a cross-validation: a training problem, and errors on held-out rows from their moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..learning.moments import Moments
from ..learning.problem import CompressedRows, Problem, reduce_moments
from ..learning.ridge import Spectral
from ..linalg import Array, is_identity

__all__ = ["Fold", "HeldOutRows"]

ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Rows that a fold holds out, to predict them one by one.

    Attributes
    ----------
    index : ndarray of shape (t,)
        Their places in the table.
    Phi : ndarray of shape (t, m)
        Their features, in the coordinates of the problem's basis.
    mean_y : ndarray of shape (p,)
        Mean of the targets of the training rows; zero without an intercept.
    weight : ndarray of shape (t,) or None
        Their weights, where they are all that the fold holds out.
    """

    index: NDArray[np.intp]
    Phi: Array
    mean_y: Array
    weight: Array | None = None


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
    N : ndarray of shape (k, k), or (k,) for a diagonal one
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
    rows : HeldOutRows or None
        The rows themselves, where they are there.
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
    rows: HeldOutRows | None = None

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
        """Fold of training and held-out moments; ``weights`` is in the coordinates of the moments.

        It is a matrix (p', p'), or the diagonal of one, (p',).
        """
        problem = reduce_moments(train, centred=centred, rows=rows)
        F, R = problem.features, problem.outputs
        gap_phi, gap_y = test.mean_phi - problem.mean_phi, test.mean_y - problem.mean_y
        C = test.C + np.outer(test.weight * gap_phi, gap_phi)
        B = test.B + np.outer(test.weight * gap_phi, gap_y)
        V = test.V + np.outer(test.weight * gap_y, gap_y)
        B, weighted = F.T @ B, weights[:, None] * R if weights.ndim == 1 else weights @ R
        return cls(
            problem=problem,
            C=F.T @ C @ F,
            BN=B @ weighted,
            N=R.T @ weighted,
            VN=float(np.vdot(weights, np.diag(V) if weights.ndim == 1 else V)),
            weight=test.weight,
            B=B,
            V=V,
            outputs=None if rows is None else rows.outputs,
        )

    @classmethod
    def from_rows(
        cls,
        problem: Problem,
        index: NDArray[np.intp],
        Phi: Array,
        Y: Array,
        weight: Array,
        output_weights: Array,
    ) -> Fold:
        """Fold of a problem of the training rows and of the held-out rows themselves.

        ``index`` has their places, ``weight`` (t,) their weights; ``output_weights`` (p,) is the diagonal of
        the form on the outputs.
        """
        errors = Y - problem.mean_y
        reduced = (Phi - problem.mean_phi) @ problem.features  # (t, m')
        B, V = (weight[:, None] * reduced).T @ errors, weight @ errors**2
        R: Array | None = None if is_identity(problem.outputs) else problem.outputs
        return cls(
            problem=problem,
            C=(weight[:, None] * reduced).T @ reduced,
            BN=B * output_weights if R is None else B * output_weights @ R,
            N=output_weights if R is None else R.T @ (output_weights[:, None] * R),
            VN=float(output_weights @ V),
            weight=float(weight.sum()),
            B=B,
            V=V,
            outputs=None,
            rows=HeldOutRows(index, Phi, problem.mean_y, weight),
        )

    def error(self, coef: Array) -> Array:
        """Weighted squared error summed over the held-out rows, (...) for coefficients (..., m', k)."""
        linear = np.einsum("...fk,fk->...", coef, self.BN)
        quadratic = np.einsum("...fk,...fk->...", self.C @ coef, _times(coef, self.N))
        return _squares(self.VN, linear, quadratic)

    def spectral_error(self, form: Spectral) -> Array:
        """What `error` gives, for all alphas at the cost of a few; (..., a) for stacked forms.

        With G = back, s and t the gains of the axes, b and x what they multiply, and S = G^T C G, the
        quadratic term is s^T (S * b N b^T) s + 2 s^T (S * b N x^T) t + t^T (S * x N x^T) t, where * goes
        entry by entry.
        """
        G, s, t, b, x = form
        S, BN = self._between(G), _from_left(G, self.BN)
        linear = s @ np.einsum("...fk,...fk->...f", b, BN)[..., None]
        bN = _times(b, self.N)
        quadratic = _form(s, S * (bN @ b.swapaxes(-1, -2)), s)
        if t.size:
            linear = linear + t @ np.einsum("...fk,...fk->...f", x, BN)[..., None]
            quadratic = quadratic + 2.0 * _form(s, S * (bN @ x.swapaxes(-1, -2)), t)
            quadratic = quadratic + _form(t, S * (_times(x, self.N) @ x.swapaxes(-1, -2)), t)
        return _squares(self.VN, linear[..., 0], quadratic)

    def target_errors(self, coef: Array) -> Array:
        """Squared error of each target summed over held-out rows, (a, p) for coefficients (a, m', k)."""
        a, m, k = coef.shape
        V, B, R = self._targets
        # One product for all alphas, which is faster than one for each.
        mapped = (self.C @ coef.transpose(1, 0, 2).reshape(m, a * k)).reshape(m, a, k).transpose(1, 0, 2)
        transposed = coef.transpose(0, 2, 1)
        linear = np.einsum("ako,ok->ao", transposed @ B, R)
        quadratic = np.einsum("ako,ok->ao", (transposed @ mapped) @ R.T, R)
        return _squares(V, linear, quadratic)

    def spectral_target_errors(self, form: Spectral) -> Array:
        """What `target_errors` gives, without the coefficients of every alpha; (..., a, p) if stacked.

        With C = H^T H, whose H are the rows that are held out, and the names of `spectral_error`, the
        quadratic term of a target is the squared length of H G (s * b + t * x).
        """
        V, B, R = self._targets
        parts = spectral_parts(form, R)
        scaled = scaled_parts(parts)  # (..., f, a * p)
        BG = _from_left(form.back, B)
        linear = np.asarray(sum(axes @ (rows * BG) for axes, rows in parts))  # (..., a, p)
        if self._root is None:
            squares = np.einsum("...fc,...fc->...c", scaled, self._between(form.back) @ scaled)
        else:
            values = _times(self._root, form.back) @ scaled  # (..., h, a * p)
            squares = np.einsum("...hc,...hc->...c", values, values)
        return _squares(V, linear, squares.reshape(linear.shape))

    @property
    def basis(self) -> Array:
        """Original targets of the coordinates in which coefficients are found, (p, k)."""
        R = self.problem.outputs
        return R if self.outputs is None else self.outputs @ R

    def with_rows(
        self,
        index: NDArray[np.intp],
        Phi: Array,
        first_y: Array | None = None,
        weight: Array | None = None,
    ) -> Fold:
        """The fold with its held-out rows; ``first_y`` is what targets were taken relative to.

        ``weight`` is given where they are all of them.
        """
        mean_y = self.problem.mean_y
        if self.outputs is not None:
            mean_y = mean_y @ self.outputs.T
        mean_y = mean_y if first_y is None else mean_y + first_y
        return replace(self, rows=HeldOutRows(index, Phi, mean_y, weight))

    def at(self, index: NDArray[np.intp]) -> Fold:
        """The fold with other places of its held-out rows."""
        return self if self.rows is None else replace(self, rows=replace(self.rows, index=index))

    def only(self, index: NDArray[np.intp]) -> Fold:
        """The fold with those of its held-out rows that are at these places."""
        if self.rows is None or np.array_equal(self.rows.index, index):
            return self
        order = np.argsort(self.rows.index, kind="stable")
        chosen = order[np.searchsorted(self.rows.index, index, sorter=order)]
        return replace(self, rows=replace(self.rows, index=index, Phi=self.rows.Phi[chosen], weight=None))

    def for_predictions(self) -> Fold:
        """The fold without what only errors need, which is most of it."""
        none = np.zeros((0, 0))
        return replace(self, C=none, BN=none, N=none, B=none, V=none)

    def predictions(self, coef: Array, share: Array, basis: Array | None = None) -> Array:
        """Values (t, p) at the held-out rows of coefficients (m', p) of the original targets.

        ``share`` (p,) or (1,) is the weight of the training mean, one for coefficients of one model. With a
        ``basis`` (p, q) of the targets coefficients are of its coordinates, (m', q).
        """
        if self.rows is None:
            raise ValueError("the fold was made of moments alone, without its held-out rows")
        reduced = (self.rows.Phi - self.problem.mean_phi) @ self.problem.features  # (t, m')
        values = reduced @ coef
        return np.asarray((values if basis is None else values @ basis.T) + share * self.rows.mean_y)

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
    def _root(self) -> Array | None:
        """H (h, m') with H^T H = C: the held-out rows themselves, where all are there and they are few."""
        rows = self.rows
        if rows is None or rows.weight is None or len(rows.index) >= len(self.problem.scale):
            return None
        reduced = (rows.Phi - self.problem.mean_phi) @ self.problem.features
        return np.asarray(np.sqrt(rows.weight)[:, None] * reduced)

    def _between(self, G: Array) -> Array:
        """G^T C G, where a vector G is a diagonal matrix."""
        if G.ndim == 1:
            return self.C * G * G[:, None]
        if self._root is None:
            return _from_left(G, self.C @ G)
        Z = self._root @ G
        return Z.swapaxes(-1, -2) @ Z


def spectral_parts(form: Spectral, basis: Array) -> list[tuple[Array, Array]]:
    """Gains of the axes (..., a, f), and what they multiply (..., f, p) in targets with a basis (p, k)."""
    parts = [(form.gains, form.targets @ basis.T)]
    return [*parts, (form.operator_gains, form.operator @ basis.T)] if form.operator.size else parts


def scaled_parts(parts: Sequence[tuple[Array, Array]]) -> Array:
    """Sum of one part, or two, for all alphas, (..., f, a * p), to be multiplied in one product."""
    # For every axis a product (a, 2) (2, p), which is far faster than entry by entry, or than (a, 1) (1, p).
    axes, rows = parts[0][0], np.broadcast_arrays(*(rows for _, rows in parts))
    gains = np.zeros((*axes.shape[:-2], axes.shape[-1], axes.shape[-2], 2))  # (..., f, a, 2)
    for place, (own, _) in enumerate(parts):
        gains[..., place] = own.swapaxes(-1, -2)
    total = gains @ np.stack([rows[0], rows[-1]], axis=-2)  # (..., f, a, p)
    return np.asarray(total.reshape(*total.shape[:-2], total.shape[-2] * total.shape[-1]))


def _times(H: Array, G: Array) -> Array:
    """H G, where a vector G is a diagonal matrix."""
    return H * G if G.ndim == 1 else H @ G


def _from_left(G: Array, B: Array) -> Array:
    """G^T B, where a vector G is a diagonal matrix."""
    return G[:, None] * B if G.ndim == 1 else G.swapaxes(-1, -2) @ B


def _form(left: Array, form: Array, right: Array) -> Array:
    """left_a^T form right_a for every alpha a, (..., a)."""
    return np.asarray(np.einsum("...af,...af->...a", left @ form, right))


def _squares(total: float | Array, linear: Array, quadratic: Array) -> Array:
    """total - 2 linear + quadratic, and at least the rounding of the targets' own squares."""
    return np.asarray(np.maximum(total - 2.0 * linear + quadratic, ROUNDING * total))
