"""The form every learned kernel takes: a multiple of the identity, a metric, and Kraus operators."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from ..linalg import Array, rank_tolerance

__all__ = ["LearnedKernel"]


@dataclass(frozen=True, eq=False)
class LearnedKernel:
    """D = (identity * I + L L^T) kron I_p + Q Q^T, in the reduced coordinates of a `Problem`.

    Attributes
    ----------
    identity : float
        Coefficient of the plain kernel phi(x)^T phi(z) I_p. It acts on all features, also on those that
        the reduction drops, and on all outputs.
    L : ndarray of shape (m, l)
        Factor of the learned metric; adds phi(x)^T L L^T phi(z) I_p.
    Q : ndarray of shape (m, k, r)
        Kraus operators, M_i = Q[:, :, i]^T.
    """

    identity: float
    L: Array
    Q: Array

    @classmethod
    def from_operators(cls, Q: Array) -> LearnedKernel:
        """Kernel of Kraus operators alone."""
        return cls(0.0, np.zeros((len(Q), 0)), Q)

    def metric(self) -> Array:
        """identity * I + L L^T, (m, m)."""
        metric: Array = self.L @ self.L.T
        metric[np.diag_indices_from(metric)] += self.identity
        return metric

    def gram_trace(self, scale: Array, n_outputs: int) -> float:
        """Trace of the training Gram matrix, tr((diag(scale) kron I_p) D)."""
        metric = float(np.einsum("f,fl,fl->", scale, self.L, self.L))
        kraus = float(np.einsum("f,fkr,fkr->", scale, self.Q, self.Q))
        return n_outputs * (self.identity * float(scale.sum()) + metric) + kraus

    def scaled(self, factor: float) -> LearnedKernel:
        """The kernel times a positive number."""
        root = np.sqrt(factor)
        return LearnedKernel(factor * self.identity, root * self.L, root * self.Q)

    def canonical(self, targets: Array) -> LearnedKernel:
        """The same kernel with orthogonal operators, strongest first, signs by covariance with the targets.

        D = Q Q^T does not change when Q is multiplied by an orthogonal matrix; this picks one Q for each D.
        """
        m, k, r = self.Q.shape
        Q = self.Q.reshape(m * k, r)
        if r > 1:
            Q = Q @ eigh(Q.T @ Q)[1][:, ::-1]
        Q = np.where(targets.reshape(-1) @ Q < 0.0, -Q, Q)
        return replace(self, Q=Q.reshape(m, k, r))

    def shrunk(self, shrinkage: float, n_features: int, n_outputs: int) -> LearnedKernel:
        """Mix with the plain kernel of trace one: shrinkage * I / (m p) + (1 - shrinkage) * D.

        With ``shrinkage=1`` nothing of the learned part is left, not even operators that are zero.
        """
        identity = shrinkage / (n_features * n_outputs)
        if shrinkage == 1.0:
            return LearnedKernel(identity, self.L[:, :0], self.Q[:, :, :0])
        rest = self.scaled(1.0 - shrinkage)
        return replace(rest, identity=rest.identity + identity)

    def partial_trace(self, n_outputs: int) -> LearnedKernel:
        """The kernel (S / p) kron I_p, with S = p metric + sum_i M_i^T M_i the trace over the outputs."""
        if self.Q.shape[2] == 0:
            return self
        # Q as (m, k * r).
        L = _compact(np.hstack([self.L, self.Q.reshape(len(self.Q), -1) / np.sqrt(n_outputs)]))
        return LearnedKernel(self.identity, L, self.Q[:, :, :0])


def _compact(L: Array) -> Array:
    """A factor of L L^T with no more columns than its rank."""
    wide = L.shape[1] > L.shape[0]
    values, vectors = eigh(L @ L.T if wide else L.T @ L)
    keep = values > rank_tolerance(len(values)) * values[-1]
    columns = (vectors if wide else L @ vectors)[:, keep]
    return np.asarray(columns * np.sqrt(values[keep]) if wide else columns)
