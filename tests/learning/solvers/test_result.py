from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from entangled_kernels.learning.solvers import SOLVERS, SolverOptions, solve
from entangled_kernels.learning.solvers.result import Progress, SolverResult

REASONS = {"closed form", "tolerance", "max_iter", "callback", "nothing to learn", "stalled"}


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("options", [{}, {"max_iter": 1}, {"tol": 1e3}, {"callback": lambda progress: True}])
def test_results_are_of_the_types_they_say(make_problem, name, options):
    result = solve(name, make_problem(), SolverOptions(**options))
    assert isinstance(result, SolverResult)
    assert isinstance(result.value, float)
    assert isinstance(result.converged, bool)
    assert isinstance(result.n_iter, int)
    assert isinstance(result.n_evaluations, int)
    assert result.history.dtype == np.float64
    assert result.reason in REASONS
    assert result.converged == (result.reason in ("closed form", "tolerance", "nothing to learn"))


def test_every_options_object_has_a_generator_of_its_own():
    first, second = SolverOptions(), SolverOptions()
    assert first.rng is not second.rng
    np.testing.assert_array_equal(first.rng.normal(size=3), second.rng.normal(size=3))


@pytest.mark.parametrize("kind", [Progress, SolverOptions, SolverResult])
def test_values_cannot_be_exchanged(kind):
    value = kind(**{field.name: None for field in fields(kind)})
    with pytest.raises(FrozenInstanceError):
        setattr(value, fields(kind)[0].name, 1)


def test_a_misspelt_option_is_refused():
    with pytest.raises(TypeError, match="max_iters"):
        SolverOptions(max_iters=3)
