import numpy as np
import pytest

from entangled_kernels.selection import GRID, PATH_STEPS, grid_members
from entangled_kernels.selection.candidates import RELATIVE_ALPHAS, Grid, Member, default_alphas


def members(*solvers, **options):
    grid = {**GRID, "shrinkage": (0.0, 0.5, 1.0), "alignment_mix": (0.0, 0.5, 1.0), **options}
    return grid_members(grid | {"solver": solvers or ("closed-form",)}, max_iter=7)


def test_kernel_ridge_comes_first_and_once():
    for solvers in (("closed-form",), ("ascent",), ("lbfgs",), ("ascent", "closed-form")):
        found = members(*solvers)
        assert [member.shrinkage for member in found].count(1.0) == 1
        assert found[0].shrinkage == 1.0
        assert {one.solver for one in found} == set(solvers)


def test_no_two_members_are_the_same_kernel():
    found = members()
    assert len(found) == len(set(found))
    # The partial trace does not depend on the mix: 2 target alphas x 2 shrinkages, once each; the
    # entangled prediction of mix 0 is the same.
    partial = [one for one in found if one.prediction == "partial_trace" and one.shrinkage < 1.0]
    assert len(partial) == 4
    entangled = [one for one in found if one.prediction == "entangled" and one.shrinkage < 1.0]
    assert {one.alignment_mix for one in entangled} == {0.5, 1.0}
    assert len(entangled) == 8


def test_steps_of_a_path_are_members_of_their_own():
    steps = [
        one.n_steps
        for one in members("ascent", prediction=("entangled",), alignment_mix=(0.5,))[1:]
    ]
    assert set(steps) == {*(step for step in PATH_STEPS if step < 7), 7}
    assert {one.n_steps for one in members("lbfgs")} == {None}
    assert {one.target_alpha for one in members("ascent")} == {0.0}


def test_kernel_ridge_needs_no_more_operators_than_the_grid_has():
    assert members("ascent", rank=(None, 0.5, 3))[0].rank == 3
    assert members("ascent", rank=(None, 0.5))[0].rank == 0.5
    assert members(rank=(None, 0.5, 3))[0].rank is None


def test_parameters_are_those_of_the_estimator():
    member = Member("ascent", 0.5, 0.25, 0.0, 2, "entangled", 5)
    assert member.parameters() == {
        "solver": "ascent",
        "alignment_mix": 0.5,
        "shrinkage": 0.25,
        "target_alpha": 0.0,
        "rank": 2,
        "prediction": "entangled",
    }


def test_columns_and_preference_are_in_the_order_of_candidates():
    grid = Grid(members(), np.array([0.1, 1.0, 10.0]))
    columns = grid.columns()
    assert len(columns["param_alpha"]) == np.prod(grid.shape)
    place = 17
    member, alpha = np.unravel_index(place, grid.shape)
    assert columns["param_shrinkage"][place] == grid.members[member].shrinkage
    assert columns["param_alpha"][place] == grid.alphas[alpha]
    assert "param_n_steps" not in columns
    order = grid.preference()
    assert sorted(order) == list(range(len(order)))
    keys = list(
        zip(-columns["param_shrinkage"][order], -columns["param_alpha"][order], strict=True)
    )
    assert keys == sorted(keys)
    path = Grid(members("ascent"), np.ones(2))
    steps = [one.n_steps for one in path.members]
    np.testing.assert_array_equal(path.columns()["param_n_steps"], np.repeat(steps, 2))


@pytest.mark.parametrize("noise", [None, 0.3])
def test_default_alphas_follow_the_scale_of_the_features(noise):
    alphas = default_alphas(2.5, noise)
    expected = (
        2.5 * RELATIVE_ALPHAS if noise is None else np.sort(np.append(2.5 * RELATIVE_ALPHAS, noise))
    )
    np.testing.assert_array_equal(alphas, expected)
    np.testing.assert_array_equal(default_alphas(0.0, None), RELATIVE_ALPHAS)
