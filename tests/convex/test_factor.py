import numpy as np
import pytest

from convex.problems import label, make_gram, penalties
from entangled_kernels.convex import certify
from entangled_kernels.convex.factor import factor_round

FIT = [penalty for penalty in penalties(4) if penalty.solver == "factor"]


@pytest.mark.parametrize("penalty", FIT, ids=label)
@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
def test_a_round_lowers_the_objective(penalty, alpha, rng):
    gram = make_gram(rng, 12, 4, alpha)
    start = certify(gram, penalty, np.eye(4)[None])
    step = factor_round(gram, penalty, start, 40)
    point = certify(gram, penalty, step.L)
    assert point.value < start.value
    assert point.gap < 0.1 * start.gap
    assert 0 < step.evaluations <= 102


@pytest.mark.parametrize("penalty", FIT, ids=label)
def test_the_solution_stays(penalty, rng):
    gram = make_gram(rng, 12, 4, 0.3)
    point = certify(gram, penalty, np.eye(4)[None])
    for _ in range(6):
        point = certify(gram, penalty, factor_round(gram, penalty, point, 40).L)
    again = certify(gram, penalty, factor_round(gram, penalty, point, 40).L)
    assert point.gap <= 1e-7 * point.value
    assert again.value == pytest.approx(point.value, rel=1e-7)
