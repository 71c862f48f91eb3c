"""Penalties on output kernels by name, and the kernel of a graph of outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from ..convex import Cluster, Elastic, Entrywise, Penalty, Schatten
from ..linalg import Array

__all__ = ["PENALTIES", "OutputPenalty", "graph_output_kernel"]

#: Names of penalties, and what they are.
PENALTIES: Mapping[str, str] = MappingProxyType(
    {
        "frobenius": "half the squared Frobenius norm",
        "schatten": "half the sum of powers of the eigenvalues",
        "trace": "half the trace, which favours low rank",
        "elastic": "a mixture of trace and Frobenius",
        "cluster": "eigenvalues within bounds, the mean of all outputs apart",
        "entrywise": "half the sum of powers of the entries",
    }
)


@dataclass(frozen=True)
class OutputPenalty:
    """A penalty on the output kernel, before the number of outputs is known.

    Attributes
    ----------
    name : str
        One of `PENALTIES`.
    constraint : bool
        Whether the penalty of L is kept to that of the identity, with which the model is kernel ridge
        regression, rather than added to the objective. The clusters are always a constraint.
    exponent : float
        Of ``"schatten"``, at least 1; of ``"entrywise"``, 2k / (2k - 1) for a whole number k.
    l1_ratio : float
        Share of the trace in ``"elastic"``, at least 0 and below 1.
    level_bounds : tuple of float
        Smallest and largest eigenvalue in ``"cluster"``; one lies between them.
    """

    name: str = "frobenius"
    constraint: bool = False
    exponent: float = 4.0 / 3.0
    l1_ratio: float = 0.5
    level_bounds: tuple[float, float] = (0.1, 10.0)

    @property
    def is_ball(self) -> bool:
        """Whether L keeps the size of the identity."""
        return self.constraint or self.name == "cluster"

    @property
    def is_plain(self) -> bool:
        """Whether this is the squared Frobenius norm, added to the objective."""
        return self.name == "frobenius" and not self.constraint

    @property
    def power(self) -> float:
        """The power of the size of L that the penalty grows with; for a mixture that of its larger part."""
        return {"trace": 1.0, "schatten": self.exponent, "entrywise": self.exponent}.get(self.name, 2.0)

    def build(self, n_outputs: int, n_levels: int) -> Penalty:
        """The penalty on L restricted to ``n_levels`` directions of the outputs.

        Of the other directions, ``"cluster"`` keeps the mean at one and the rest at the lower bound.
        """
        p = float(n_outputs)
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
    With the Laplacian M = diag(degrees) - adjacency the penalty sum_i |f_i|^2 + strength * sum_ij A_ij |f_i -
    f_j|^2 / 2 of models f_1, ..., f_p is that of the kernel k(x, z) (I + strength M)^-1. Time p^3.

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
        raise ValueError("adjacency must hold finite weights of at least 0; take absolute values, or clip")
    if not np.allclose(A, A.T):
        raise ValueError("adjacency must be symmetric; use (adjacency + adjacency.T) / 2")
    if not (np.isfinite(strength) and strength >= 0.0):
        raise ValueError(f"strength must be a number of at least 0, got {strength!r}")
    L = np.linalg.inv(np.eye(len(A)) + strength * (np.diag(A.sum(axis=1)) - A))
    return np.asarray((L + L.T) * (0.5 * len(A) / np.trace(L)))
