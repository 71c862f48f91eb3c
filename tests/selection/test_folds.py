import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, TimeSeriesSplit
from tests.reference import dense

from entangled_kernels.learning import FitSettings, Moments
from entangled_kernels.selection import group_splits, time_splits
from entangled_kernels.selection.candidates import learn_kernels, weighted_coefficients
from entangled_kernels.selection.folds import (
    ScoredTargets,
    fold_of_moments,
    fold_of_rows,
    leave_one_out_sums,
)

KERNELS = [
    FitSettings(shrinkage=1.0),
    FitSettings(alignment_mix=0.0, shrinkage=0.5, prediction="partial_trace"),
    FitSettings(alignment_mix=0.5, shrinkage=0.25),
    FitSettings(alignment_mix=0.0, shrinkage=0.5, prediction="reduced_rank", rank=1),
]
ALPHAS = np.array([0.1, 1.0, 30.0])
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
    if member.prediction != "entangled":
        D = dense.partial_trace_kernel(D, Y.shape[1])
    if member.prediction == "reduced_rank":
        A, rank = D[:: Y.shape[1], :: Y.shape[1]], member.rank
        return dense.reduced_rank_predict(
            Phi[train], Y[train], A, alpha, rank, Phi[test], own, centred
        )
    return dense.ridge_predict(Phi[train], Y[train], D, alpha, Phi[test], own, centred)


def errors_of(fold):
    found = [
        (place, fold.errors(f.coefficients(ALPHAS)))
        for place, f in learn_kernels(fold.problem, KERNELS)
    ]
    return np.stack([errors for _, errors in sorted(found, key=lambda pair: pair[0])])


def row_fold(Phi, Y, weight, units, *, compress=True, centred=True, split=SPLIT, **options):
    targets = ScoredTargets.of(Y, weight, units, compress=compress)
    both = Phi[split[0]], Phi[split[1]]
    plain = {"centred": centred, "iterative": False, "ridge_only": False}
    return fold_of_rows(targets, split, both, **(plain | options)), targets


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("m", "p"), [(3, 2), (30, 2), (3, 40)])
def test_errors_and_predictions_are_those_of_the_dense_system(make_rows, rng, m, p, centred):
    Phi, Y = make_rows(26, m, p)
    weight, units = rng.uniform(0.5, 2.0, size=26), rng.uniform(0.5, 1.0, size=p)
    fold, targets = row_fold(Phi, Y, weight, units, compress=centred, centred=centred)
    test = SPLIT[1]
    found = errors_of(fold)
    for j, member in enumerate(KERNELS):
        for a, alpha in enumerate(ALPHAS):
            if member.alignment_mix > 0.0 and member.shrinkage < 1.0 and not centred:
                continue
            expected = reference(Phi, Y, member, alpha, weight, centred)
            squares = np.average((Y[test] - expected) ** 2, axis=0, weights=weight[test])
            assert found[j, a].sum() == pytest.approx(units @ squares, rel=1e-6)
            if p <= 26:
                np.testing.assert_allclose(found[j, a], units * squares, rtol=1e-6)
            one = np.zeros((len(KERNELS), 3, 1))
            one[j, a] = 1.0
            coef = weighted_coefficients(fold.problem, KERNELS, ALPHAS, one)
            values = fold.predict(coef, np.ones(1))
            if targets.basis is not None:
                values = targets.first + values @ targets.basis.T
            np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-8)


def test_weighted_sums_are_sums_of_the_coefficients_of_candidates(make_rows, rng):
    Phi, Y = make_rows(26, 4, 3)
    fold, _ = row_fold(Phi, Y, None, np.ones(3))
    weights = rng.dirichlet(np.ones(12), size=3).T.reshape(len(KERNELS), 3, 3)
    whole = 0.0
    for place, factor in learn_kernels(fold.problem, KERNELS):
        for own, coef in zip(weights[place], factor.coefficients(ALPHAS), strict=True):
            whole = whole + own * (coef @ fold.problem.outputs.T)
    np.testing.assert_allclose(
        weighted_coefficients(fold.problem, KERNELS, ALPHAS, weights), whole, rtol=1e-10
    )


def test_moments_give_the_errors_of_their_rows(make_rows, rng):
    """Also if many held-out rows are replaced by a few."""
    Phi, Y = make_rows(90, 4, 3, offset=5.0)
    weight, units = rng.uniform(0.5, 2.0, size=90), rng.uniform(0.5, 1.0, size=3)
    split = (np.arange(30), np.arange(30, 90))
    of_rows, targets = row_fold(Phi, Y, weight, units, split=split)
    assert len(of_rows.Z) < 60
    train, test = (Moments.from_arrays(Phi[own], Y[own], weight[own]) for own in split)
    of_moments = fold_of_moments(targets, train, test, split[1][:5], Phi[30:35], centred=True)
    np.testing.assert_allclose(errors_of(of_moments), errors_of(of_rows), rtol=1e-8)
    one = np.full((len(KERNELS), 3, 1), 1.0 / 12.0)
    values = [
        f.predict(weighted_coefficients(f.problem, KERNELS, ALPHAS, one), np.ones(1))
        for f in (of_moments, of_rows)
    ]
    np.testing.assert_allclose(values[0], values[1][:5], rtol=1e-8)


def test_missing_targets_have_no_errors(make_rows, rng):
    Phi, Y = make_rows(26, 3, 3)
    weight = np.where(rng.random(Y.shape) < 0.3, 0.0, rng.uniform(0.5, 2.0, size=Y.shape))
    weight[:, 0] = 1.0
    weight[SPLIT[0], 2] = 0.0
    Y = np.where(weight > 0.0, Y, np.nan)
    fold, _ = row_fold(Phi, Y, weight, np.ones(3), fill_shares=np.array([0.5, 0.0]))
    test, coef = (
        SPLIT[1],
        next(learn_kernels(fold.problem, KERNELS))[1].coefficients(ALPHAS),
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


def test_moments_with_missing_targets_give_errors_on_the_rows_of_each_target(make_rows, rng):
    Phi, Y = make_rows(60, 3, 2)
    weight = (rng.random(Y.shape) < 0.7).astype(float)
    train, test = (
        Moments.from_arrays(Phi[own], Y[own], weight[own]) for own in (slice(40), slice(40, 60))
    )
    targets = ScoredTargets.of(Y, weight, np.ones(2))
    fold = fold_of_moments(targets, train, test, np.arange(40, 60), Phi[40:], centred=True)
    coef = next(learn_kernels(fold.problem, KERNELS))[1].coefficients(ALPHAS)
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
    path = [FitSettings("ascent", shrinkage=0.0, target_alpha=0.0, max_iter=n) for n in (1, 4)]
    found = {
        place: factor.coefficients([0.5])[0] for place, factor in learn_kernels(fold.problem, path)
    }
    for place, member in enumerate(path):
        own = dict(learn_kernels(fold.problem, [member]))[0].coefficients([0.5])[0]
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


def assert_same(splits, expected):
    assert len(splits) == len(expected)
    for own, other in zip(splits, expected, strict=True):
        for part, same in zip(own, other, strict=True):
            np.testing.assert_array_equal(part, same)


def test_group_splits_are_those_of_scikit_learn(rng):
    groups = rng.integers(0, 9, size=50)
    folds = GroupKFold(4, shuffle=True, random_state=np.random.RandomState(3))
    expected = [split for _ in range(2) for split in folds.split(groups, groups=groups)]
    assert_same(group_splits(groups, 4, n_repeats=2, random_state=3), expected)


@given(st.lists(st.integers(0, 12), min_size=4, max_size=40), st.integers(2, 5), st.integers(0, 99))
def test_a_group_is_never_on_both_sides(groups, n_folds, seed):
    groups = np.array(groups)
    if len(np.unique(groups)) < n_folds:
        with pytest.raises(ValueError, match="groups"):
            group_splits(groups, n_folds, random_state=seed)
        return
    splits = group_splits(groups, n_folds, n_repeats=2, random_state=seed)
    for train, test in splits:
        assert not np.isin(groups[train], groups[test]).any()
        assert len(train) + len(test) == len(groups)
    for start in (0, n_folds):
        held = np.concatenate([test for _, test in splits[start : start + n_folds]])
        np.testing.assert_array_equal(np.sort(held), np.arange(len(groups)))


def test_too_few_groups():
    with pytest.raises(
        ValueError, match="cv must be at most the number of groups, 2, got 3; use fewer folds"
    ):
        group_splits(np.array([0, 0, 1]), 3)
    with pytest.raises(ValueError, match="groups must hold at least 2 groups, got 1"):
        group_splits(np.array(["a", "a"]), 2)


@pytest.mark.parametrize(("n", "n_folds"), [(12, 5), (47, 4), (100, 2)])
def test_time_splits_are_those_of_scikit_learn(n, n_folds):
    expected = list(TimeSeriesSplit(n_folds).split(np.empty((n, 1))))
    assert_same(time_splits(n, n_folds), expected)
    assert_same(time_splits(n, n_folds, np.linspace(2.0, 3.0, n)), expected)


@given(st.lists(st.integers(0, 30), min_size=6, max_size=60), st.integers(2, 4))
def test_the_future_never_predicts_the_past(times, n_folds):
    times = np.sort(times)
    whole = TimeSeriesSplit(n_folds).split(times[:, None]) if len(times) > n_folds else []
    if any(np.sum(times < times[test[0]]) < 2 for _, test in whole) or len(times) < 2 * (
        n_folds + 1
    ):
        with pytest.raises(ValueError, match="use fewer folds"):
            time_splits(len(times), n_folds, times)
        return
    for train, test in time_splits(len(times), n_folds, times):
        assert times[train].max() < times[test].min()
        # Of earlier rows only those of the time at which the fold begins are left out.
        assert len(train) == np.sum(times < times[test[0]])


def test_too_few_rows_or_times():
    with pytest.raises(
        ValueError, match="5 folds in the order of time need at least 12 rows, got 11"
    ):
        time_splits(11, 5)
    with pytest.raises(
        ValueError, match="must differ enough for 2 folds, got 2 different ones in 20 rows"
    ):
        time_splits(20, 2, np.repeat([1, 2], 10))
