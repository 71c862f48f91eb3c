import pytest

from convex.problems import (
    check_a_round_lowers_the_objective,
    check_the_solution_stays,
    label,
    penalties,
)
from entangled_kernels.convex.factor import factor_round

FIT = [penalty for penalty in penalties(4) if penalty.solver == "factor"]


@pytest.mark.parametrize("penalty", FIT, ids=label)
@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
def test_a_round_lowers_the_objective(penalty, alpha, rng):
    check_a_round_lowers_the_objective(factor_round, penalty, alpha, rng)


@pytest.mark.parametrize("penalty", FIT, ids=label)
def test_the_solution_stays(penalty, rng):
    check_the_solution_stays(factor_round, penalty, rng)
