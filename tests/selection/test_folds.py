import numpy as np
import pytest
from tests.reference import dense

from entangled_kernels.learning import FitSettings, Moments
from entangled_kernels.selection.candidates import (
    Grid,
    Member,
    learn_members,
    weighted_coefficients,
)
from entangled_kernels.selection.folds import (
    JudgedTargets,
    fold_of_moments,
    fold_of_rows,
    leave_one_out_sums,
)

MEMBERS = [
    Member("closed-form", 0.0, 1.0, 0.0, None, "entangled"),
    Member("closed-form", 0.0, 0.5, 0.1, None, "partial_trace"),
    Member("closed-form", 0.5, 0.25, 0.1, None, "entangled"),
]
GRID = Grid(MEMBERS, np.array([0.1, 1.0, 30.0]))
START = FitSettings()
SPLIT = (np.arange(18), np.arange(18, 26))


def reference(Phi, Y, member, alpha, weight=None, centred=True, split=SPLIT):
    """Predictions of the held-out rows by the dense system of the training rows."""
    train, test = split
    own = None if weight is None else weight[train]
    D = dense.closed_form(
        Phi[train],
        Y[train],
        member.alignment_mix,
        member.target_alpha,
        member.shrinkage,
        own,
        centred,
    )
    D = dense.partial_trace_kernel(D, Y.shape[1]) if member.prediction == "partial_trace" else D
    return dense.ridge_predict(Phi[train], Y[train], D, alpha, Phi[test], own, centred)


def errors_of(fold):
    found = [
        (place, fold.errors(f.coefficients(GRID.alphas)))
        for place, f in learn_members(fold.problem, MEMBERS, START)
    ]
    return np.stack([errors for _, errors in sorted(found, key=lambda pair: pair[0])])


def row_fold(Phi, Y, weight, units, *, compress=True, centred=True, split=SPLIT, **options):
    targets = JudgedTargets.of(Y, units, compress=compress)
    both = Phi[split[0]], Phi[split[1]]
    plain = {"centred": centred, "iterative": False, "ridge_only": False}
    return fold_of_rows(targets, weight, split, both, **(plain | options)), targets


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("m", "p"), [(3, 2), (30, 2), (3, 40)])
def test_errors_and_predictions_are_those_of_the_dense_system(make_rows, rng, m, p, centred):
    Phi, Y = make_rows(26, m, p)
    weight, units = rng.uniform(0.5, 2.0, size=26), rng.uniform(0.5, 1.0, size=p)
    fold, targets = row_fold(Phi, Y, weight, units, compress=centred, centred=centred)
    test = SPLIT[1]
    found = errors_of(fold)
    for j, member in enumerate(MEMBERS):
        for a, alpha in enumerate(GRID.alphas):
            if member is MEMBERS[2] and not centred:
                continue
            expected = reference(Phi, Y, member, alpha, weight, centred)
            squares = np.average((Y[test] - expected) ** 2, axis=0, weights=weight[test])
            assert found[j, a].sum() == pytest.approx(units @ squares, rel=1e-6)
            if p <= 26:
                np.testing.assert_allclose(found[j, a], units * squares, rtol=1e-6)
            one = np.zeros((*GRID.shape, 1))
            one[j, a] = 1.0
            coef = weighted_coefficients(fold.problem, GRID, one, START)
            values = targets.expanded(fold.predict(coef, np.ones(1)))
            np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-8)


def test_weighted_sums_are_sums_of_the_coefficients_of_candidates(make_rows, rng):
    Phi, Y = make_rows(26, 4, 3)
    fold, _ = row_fold(Phi, Y, None, np.ones(3))
    weights = rng.dirichlet(np.ones(9), size=3).T.reshape(3, 3, 3)
    whole = 0.0
    for place, factor in learn_members(fold.problem, MEMBERS, START):
        for own, coef in zip(weights[place], factor.coefficients(GRID.alphas), strict=True):
            whole = whole + own * (coef @ fold.problem.outputs.T)
    np.testing.assert_allclose(
        weighted_coefficients(fold.problem, GRID, weights, START), whole, rtol=1e-10
    )


def test_moments_judge_as_their_rows_do(make_rows, rng):
    """Also where held-out rows are so many that a few in their place are judged."""
    Phi, Y = make_rows(90, 4, 3, offset=5.0)
    weight, units = rng.uniform(0.5, 2.0, size=90), rng.uniform(0.5, 1.0, size=3)
    split = (np.arange(30), np.arange(30, 90))
    of_rows, targets = row_fold(Phi, Y, weight, units, split=split)
    assert len(of_rows.Z) < 60
    train, test = (Moments.from_arrays(Phi[own], Y[own], weight[own]) for own in split)
    of_moments = fold_of_moments(targets, train, test, split[1][:5], Phi[30:35], centred=True)
    np.testing.assert_allclose(errors_of(of_moments), errors_of(of_rows), rtol=1e-8)
    one = np.full((3, 3, 1), 1.0 / 9.0)
    values = [
        f.predict(weighted_coefficients(f.problem, GRID, one, START), np.ones(1))
        for f in (of_moments, of_rows)
    ]
    np.testing.assert_allclose(values[0], values[1][:5], rtol=1e-8)


def test_missing_targets_are_not_judged(make_rows, rng):
    Phi, Y = make_rows(26, 3, 3)
    weight = np.where(rng.random(Y.shape) < 0.3, 0.0, rng.uniform(0.5, 2.0, size=Y.shape))
    weight[:, 0] = 1.0
    weight[SPLIT[0], 2] = 0.0
    Y = np.where(weight > 0.0, Y, np.nan)
    fold, _ = row_fold(Phi, Y, weight, np.ones(3), shrinkage=0.5)
    test, coef = (
        SPLIT[1],
        next(learn_members(fold.problem, MEMBERS, START))[1].coefficients(GRID.alphas),
    )
    values = (
        fold.problem.mean_y
        + (Phi[test] - fold.problem.mean_phi)
        @ fold.problem.features
        @ coef
        @ fold.problem.outputs.T
    )
    squares = np.where(weight[test] > 0.0, (Y[test] - values) ** 2, 0.0) * weight[test]
    expected = squares.sum(axis=1)[:, :2] / weight[test].sum(axis=0)[:2]
    np.testing.assert_allclose(fold.errors(coef)[:, :2], expected, rtol=1e-8)
    # The last one has no training row.
    assert np.isnan(fold.errors(coef)[:, 2]).all()
    assert np.isnan(fold.mean_y[2])


def test_moments_with_missing_targets_judge_every_target_on_its_own_rows(make_rows, rng):
    Phi, Y = make_rows(60, 3, 2)
    weight = (rng.random(Y.shape) < 0.7).astype(float)
    train, test = (
        Moments.from_arrays(Phi[own], Y[own], weight[own]) for own in (slice(40), slice(40, 60))
    )
    targets = JudgedTargets(Y, np.ones(2), 2)
    fold = fold_of_moments(targets, train, test, np.arange(40, 60), Phi[40:], centred=True)
    coef = next(learn_members(fold.problem, MEMBERS, START))[1].coefficients(GRID.alphas)
    values = (
        fold.problem.mean_y
        + (Phi[40:] - fold.problem.mean_phi) @ fold.problem.features @ coef @ fold.problem.outputs.T
    )
    squares = weight[40:] * (Y[40:] - values) ** 2
    np.testing.assert_allclose(
        fold.errors(coef), squares.sum(axis=1) / weight[40:].sum(axis=0), rtol=1e-8
    )


def test_steps_of_a_path_are_kernels_of_their_own(make_rows):
    Phi, Y = make_rows(26, 3, 2)
    fold, _ = row_fold(Phi, Y, None, np.ones(2), iterative=True)
    path = [Member("ascent", 0.5, 0.0, 0.0, None, "entangled", steps) for steps in (1, 4)]
    found = {
        place: factor.coefficients([0.5])[0]
        for place, factor in learn_members(fold.problem, path, START)
    }
    for place, member in enumerate(path):
        own = dict(learn_members(fold.problem, [member], START))[0].coefficients([0.5])[0]
        np.testing.assert_allclose(found[place], own, rtol=1e-9)
    assert not np.allclose(found[0], found[1])


@pytest.mark.parametrize("empty", [0, 1])
def test_folds_need_rows_that_count(make_rows, empty):
    Phi, Y = make_rows(26, 3, 2)
    weight = np.ones(26)
    weight[SPLIT[empty]] = 0.0
    with pytest.raises(ValueError, match="positive sample_weight in both"):
        row_fold(Phi, Y, weight, np.ones(2))


def test_sums_of_all_other_parts():
    assert leave_one_out_sums([1.0, 2.0, 4.0]) == [6.0, 5.0, 3.0]
