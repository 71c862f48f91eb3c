"""Small problems of learning a stack of psd matrices."""

import numpy as np
import pytest

from entangled_kernels.convex import Cluster, Elastic, Entrywise, Schatten, certify
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


def check_a_round_lowers_the_objective(take_round, penalty, alpha, rng):
    """From even weights a round of a solver gains most of what there is to gain."""
    gram = make_gram(rng, 12, 4, alpha)
    start = certify(gram, penalty, np.eye(4)[None])
    step = take_round(gram, penalty, start, 40)
    point = certify(gram, penalty, step.L)
    assert point.value < start.value
    assert point.gap < 0.1 * start.gap
    assert 0 < step.evaluations <= 102


def check_the_solution_stays(take_round, penalty, rng):
    """Rounds end at a certified solution, and one more leaves it there."""
    gram = make_gram(rng, 12, 4, 0.3)
    point = certify(gram, penalty, np.eye(4)[None])
    for _ in range(6):
        point = certify(gram, penalty, take_round(gram, penalty, point, 40).L)
    again = certify(gram, penalty, take_round(gram, penalty, point, 40).L)
    assert point.gap <= 1e-7 * point.value
    assert again.value == pytest.approx(point.value, rel=1e-7)
