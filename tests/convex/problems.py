"""Small problems of learning a stack of psd matrices."""

import numpy as np

from entangled_kernels.convex import Cluster, Elastic, Entrywise, Schatten
from entangled_kernels.convex.kronecker import KroneckerGram


def penalties(k):
    """One of every kind, for k levels."""
    return [
        Schatten(2.0),
        Schatten(4 / 3),
        Schatten(1.0),
        Schatten(1.0, radius=float(k)),
        Schatten(1.5, radius=k ** (2 / 3)),
        Elastic(0.5),
        Elastic(0.3, radius=0.5 * k),
        Entrywise(1),
        Entrywise(2),
        Entrywise(3, radius=k ** (5 / 6)),
        Cluster(0.2, 3.0, float(k)),
    ]


def label(penalty):
    return repr(penalty).replace("radius=None", "")


def make_gram(rng, q, k, alpha):
    mixing = rng.normal(size=(2, k))
    targets = rng.normal(size=(q, 2)) @ mixing + 0.3 * rng.normal(size=(q, k))
    return KroneckerGram(np.sort(rng.gamma(0.5, size=q)) + 1e-3, targets, alpha)


def random_psd(rng, k, rank=None):
    B = rng.normal(size=(k, rank or k))
    return B @ B.T
