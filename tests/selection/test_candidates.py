import numpy as np
import pytest

from entangled_kernels.learning import FitSettings
from entangled_kernels.selection import GRID, PATH_STEPS, grid_settings
from entangled_kernels.selection.candidates import RELATIVE_ALPHAS, default_alphas


def kernels(*solvers, **options):
    grid = {**GRID, "shrinkage": (0.0, 0.5, 1.0), "alignment_mix": (0.0, 0.5, 1.0), **options}
    return grid_settings(grid | {"solver": solvers or ("closed-form",)}, FitSettings(max_iter=7))


@pytest.mark.parametrize(
    "solvers", [("closed-form",), ("ascent",), ("lbfgs",), ("ascent", "closed-form")]
)
def test_kernel_ridge_comes_first_and_once(solvers):
    settings = kernels(*solvers)
    assert [own.shrinkage for own in settings].count(1.0) == 1
    assert settings[0].shrinkage == 1.0
    assert {own.solver for own in settings} == set(solvers)


def test_no_two_kernels_are_the_same():
    settings = kernels()
    # The partial trace does not depend on the mix: 2 target alphas x 2 shrinkages, once each; the
    # entangled prediction of mix 0 is the same.
    learned = [own for own in settings if own.shrinkage < 1.0]
    partial = [own for own in learned if own.prediction == "partial_trace"]
    assert len(partial) == 4
    assert {own.alignment_mix for own in learned if own not in partial} == {0.5, 1.0}
    assert len(learned) == 12


def test_reduced_ranks_are_tried_of_kernel_ridge_and_of_partial_traces():
    settings = kernels(
        "closed-form", "ascent", prediction=("reduced_rank",), rank=(None, 2), shrinkage=(0.5, 1.0)
    )
    reduced = [own for own in settings if own.prediction == "reduced_rank"]
    assert {own.rank for own in reduced} == {2}
    assert [own.shrinkage for own in reduced].count(1.0) == 1
    # Every rank is a rank of the predictions, so that without one they are those of partial traces.
    assert {own.prediction for own in settings[1:] if own.rank is None} == {"partial_trace"}


def test_steps_of_a_path_are_tried():
    settings = kernels("ascent", prediction=("entangled",), alignment_mix=(0.5,))
    assert {own.max_iter for own in settings[1:]} == {*(n for n in PATH_STEPS if n < 7), 7}
    assert {own.max_iter for own in kernels("lbfgs")} == {7}
    assert {own.target_alpha for own in kernels("ascent")} == {0.0}


def test_kernel_ridge_needs_no_more_operators_than_the_grid_has():
    assert kernels("ascent", rank=(None, 0.5, 3))[0].rank == 3
    assert kernels("ascent", rank=(None, 0.5))[0].rank == 0.5
    assert kernels(rank=(None, 0.5, 3))[0].rank is None


@pytest.mark.parametrize("noise", [None, 0.3])
def test_default_alphas_follow_the_scale_of_the_features(noise):
    expected = 2.5 * RELATIVE_ALPHAS
    expected = expected if noise is None else np.sort(np.append(expected, noise))
    np.testing.assert_array_equal(default_alphas(2.5, noise), expected)
    np.testing.assert_array_equal(default_alphas(0.0, None), RELATIVE_ALPHAS)
