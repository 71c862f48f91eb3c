import numpy as np
import pytest
from entangled_kernels.selection.errors import candidate_errors, member_factors, weighted_coefficients
from entangled_kernels.selection.stacked_members import in_two, stacked_forms
from sklearn.model_selection import KFold

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.learning import Moments, SolverOptions, reduce_moments
from entangled_kernels.learning.problem import reduce_centred_rows
from entangled_kernels.selection import Member, RowFolds
from entangled_kernels.selection import stacked_members as module
from entangled_kernels.selection.candidates import Grid

MEMBERS = [
    *EntangledKernelRidgeCV()._members(),
    # Nothing regularises, and a mix that is a metric and an operator.
    *(Member("closed-form", mix, 0.0, 0.0, None, "entangled") for mix in (0.0, 0.3, 1.0)),
    Member("closed-form", 0.3, 0.4, 0.0, None, "partial_trace"),
]
RELATIVE_ALPHAS = np.logspace(-6, 3, 7)


def coefficients(form, place):
    """Coefficients (alphas, m', k) of one member of a stack, by the definition of `Spectral`."""
    back = np.diag(form.back) if form.back.ndim == 1 else form.back[place]
    targets = form.targets if form.targets.ndim == 2 else form.targets[place]
    coef = form.gains[place][:, :, None] * targets
    if form.operator.size:
        coef = coef + form.operator_gains[place][:, :, None] * form.operator[place]
    return back @ coef


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(40, 6, 3), (12, 20, 4), (30, 5, 17), (25, 4, 1)])
def test_a_stack_has_the_coefficients_of_its_members(make_rows, monkeypatch, centred, shape):
    Phi, Y = make_rows(*shape)
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=centred)
    alphas = RELATIVE_ALPHAS * problem.scale.mean()
    expected = {
        member: factor.coefficients(alphas)
        for member, factor in member_factors(problem, MEMBERS, SolverOptions())
    }
    for numbers in (1, 2**18):
        monkeypatch.setattr(module, "_STACK_NUMBERS", numbers)
        seen = []
        for places, form in stacked_forms(problem, MEMBERS, alphas):
            seen.extend(places)
            for row, place in enumerate(places):
                wanted = expected[MEMBERS[place]]
                size = np.abs(wanted).max(axis=(1, 2), keepdims=True)
                np.testing.assert_allclose(coefficients(form, row) / size, wanted / size, atol=1e-10)
        assert sorted(seen) == list(range(len(MEMBERS)))


def test_axes_that_are_all_alike(rng):
    """Where all scales are equal, the axes of the fit are enough."""
    centred = rng.normal(size=(30, 12))
    axes = np.linalg.qr(centred - centred.mean(axis=0))[0]
    Y = axes @ rng.normal(size=(12, 4)) + 0.1 * rng.normal(size=(30, 4))
    problem = reduce_centred_rows(3.0 * axes, Y, None)
    assert problem.scale.max() > problem.scale.min()
    alphas = RELATIVE_ALPHAS * problem.scale.mean()
    expected = dict(member_factors(problem, MEMBERS, SolverOptions()))
    for places, form in stacked_forms(problem, MEMBERS, alphas):
        assert form.back.shape[-1] == 4 or form.back.ndim == 1
        for row, place in enumerate(places):
            wanted = expected[MEMBERS[place]].coefficients(alphas)
            size = np.abs(wanted).max(axis=(1, 2), keepdims=True)
            np.testing.assert_allclose(coefficients(form, row) / size, wanted / size, atol=1e-10)


def test_short_axes_keep_their_coefficients(rng):
    """Rounding along long axes must not reach coefficients of short ones, which are large."""
    Phi = rng.normal(size=(40, 6)) * 10.0 ** np.array([0.0, -1.0, -3.0, -5.0, -6.0, -7.0])
    Y = np.sin(Phi / Phi.std(axis=0)) @ rng.normal(size=(6, 4))
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=True)
    alphas = RELATIVE_ALPHAS * problem.scale.mean()
    expected = dict(member_factors(problem, MEMBERS, SolverOptions()))
    for places, form in stacked_forms(problem, MEMBERS, alphas):
        for row, place in enumerate(places):
            wanted = expected[MEMBERS[place]].coefficients(alphas)
            # What they contribute to predictions.
            root = np.sqrt(problem.scale)[:, None]
            size = np.abs(root * wanted).max(axis=(1, 2), keepdims=True)
            found = root * coefficients(form, row) / size
            np.testing.assert_allclose(found, root * wanted / size, atol=1e-9)


def test_which_members_are_stacked(make_rows):
    problem = reduce_moments(Moments.from_arrays(*make_rows(200, 150, 3)), centred=True)
    ridge, metric, operator = (
        Member("closed-form", mix, shrinkage, 0.1, None, "entangled")
        for mix, shrinkage in ((0.0, 1.0), (0.5, 0.5), (1.0, 0.5))
    )
    ranked, other = (Member(solver, 1.0, 0.5, 0.1, 2, "entangled") for solver in ("closed-form", "ascent"))
    members = [ridge, metric, operator, ranked, other]
    assert in_two(problem, members, 10) == ([ridge, operator], [metric, ranked, other])
    assert in_two(problem, members, 10_000) == ([ridge, metric, operator], [ranked, other])
    nothing = reduce_moments(Moments.from_arrays(make_rows(20, 4, 3)[0], np.zeros((20, 3))), centred=True)
    assert in_two(nothing, members, 10) == ([ridge], [metric, operator, ranked, other])


@pytest.mark.parametrize("p", [3, 30])
def test_errors_of_stacks_are_those_of_one_member_after_the_other(make_rows, rng, p):
    Phi, Y = make_rows(40, 12, p)
    weight, output_weights = rng.uniform(0.5, 2.0, size=40), rng.uniform(0.5, 1.5, size=p)
    folds = RowFolds(Phi, Y, weight, list(KFold(4).split(Phi))).folds(output_weights)
    for fold in folds:
        alphas = RELATIVE_ALPHAS * fold.problem.scale.mean()
        grid = Grid(MEMBERS, alphas)
        one, each = (
            candidate_errors(fold, grid, SolverOptions(), by_target=by_target) for by_target in (False, True)
        )
        for member, factor in member_factors(fold.problem, MEMBERS, SolverOptions()):
            place, coef = MEMBERS.index(member), factor.coefficients(alphas)
            expected = fold.error(coef) / fold.weight
            np.testing.assert_allclose(one[place, ..., 0], expected, rtol=1e-9)
            expected = fold.target_errors(coef) / fold.weight
            np.testing.assert_allclose(each[place], expected, rtol=1e-9)


@pytest.mark.parametrize("columns", [1, 3])
def test_weighted_sums_of_coefficients(make_rows, rng, columns):
    problem = reduce_moments(Moments.from_arrays(*make_rows(30, 5, 3)), centred=True)
    members = [*MEMBERS, Member("closed-form", 0.5, 0.5, 0.1, 2, "entangled")]
    grid = Grid(members, RELATIVE_ALPHAS * problem.scale.mean())
    weights = rng.uniform(size=(*grid.shape, columns)) * (rng.uniform(size=(*grid.shape, 1)) < 0.05)
    expected = np.zeros((5, 3))
    for member, factor in member_factors(problem, members, SolverOptions()):
        path = factor.coefficients(grid.alphas) @ problem.outputs.T  # (alphas, m', p)
        expected += np.einsum("ao,afo->fo", weights[members.index(member)] * np.ones(3), path)
    found = weighted_coefficients(problem, problem.outputs, grid, weights, SolverOptions())
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
