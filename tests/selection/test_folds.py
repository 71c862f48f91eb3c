import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedKFold, ShuffleSplit, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler

from entangled_kernels.learning import LearnedKernel, Moments
from entangled_kernels.learning.ridge import KernelRidgeFactor
from entangled_kernels.selection import MomentFolds, RefittedFolds, RowFolds
from entangled_kernels.selection.folds import leave_one_out_sums


@pytest.mark.parametrize(
    "splitter", [KFold(4), LeaveOneOut(), RepeatedKFold(n_splits=3, n_repeats=2), ShuffleSplit(3)]
)
def test_splits_of_every_kind(make_rows, splitter):
    Phi, Y = make_rows(13, 3, 2)
    splits = list(splitter.split(Phi))
    folds = list(RowFolds(Phi, Y, None, splits, centred=True).folds(np.ones(2)))
    assert len(folds) == len(splits)
    for fold, (train, test) in zip(folds, splits, strict=True):
        one = next(RowFolds(Phi, Y, None, [(train, test)], centred=True).folds(np.ones(2)))
        coef = np.ones(fold.problem.targets.shape)
        np.testing.assert_allclose(np.sort(fold.problem.scale), np.sort(one.problem.scale), rtol=1e-9)
        assert fold.weight == len(test)
        assert pytest.approx(one.VN) == fold.VN
        assert fold.error(0 * coef) == pytest.approx(one.error(0 * coef))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(
    ("shape", "splitter"), [((15, 9, 2), KFold(3)), ((15, 9, 14), KFold(3)), ((30, 3, 2), ShuffleSplit(3))]
)
def test_folds_from_rows_are_those_from_moments(make_rows, rng, shape, splitter, weighted):
    Phi, Y = make_rows(*shape)
    weight = rng.uniform(0.5, 2.0, size=len(Y)) if weighted else None
    splits, output_weights = list(splitter.split(Phi)), rng.uniform(0.5, 2.0, size=shape[2])
    from_moments = RowFolds(Phi, Y, weight, splits, norms=True).folds(output_weights)
    from_rows = RowFolds(Phi, Y, weight, splits, norms=False).folds(output_weights)
    alphas = np.array([1e-3, 1.0])
    for slow, fast, (_, test) in zip(from_moments, from_rows, splits, strict=True):
        assert fast.V.ndim == 1
        np.testing.assert_array_equal(fast.rows.index, test)
        errors, predictions = [], []
        for fold in (slow, fast):
            problem = fold.problem
            coef = problem.targets / (problem.scale[:, None] + alphas[:, None, None])
            errors.append((fold.error(coef), fold.target_errors(coef)))
            predictions.append(fold.predictions(coef[0] @ fold.basis.T, np.ones(1)))
        for one, other in zip(*errors, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-9)
        np.testing.assert_allclose(predictions[1], predictions[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_outputs", [2, 14])
def test_folds_for_kernel_ridge_alone_keep_the_outputs(make_rows, rng, n_outputs):
    """Fewer outputs than features, which need no basis anyway, or more."""
    Phi, Y = make_rows(18, 9, n_outputs)
    splits, output_weights = list(KFold(3).split(Phi)), rng.uniform(0.5, 2.0, size=n_outputs)
    both = (RowFolds(Phi, Y, None, splits, norms=False, ridge_only=own) for own in (False, True))
    alphas = np.array([1e-3, 1.0])
    for slow, fast in zip(*(own.folds(output_weights) for own in both), strict=True):
        np.testing.assert_array_equal(fast.problem.outputs, np.eye(n_outputs))
        assert slow.problem.outputs.shape == (n_outputs, min(9, n_outputs))
        assert fast.N.ndim == 1
        found = []
        for fold in (slow, fast):
            none = np.zeros((*fold.problem.targets.shape, 0))
            factor = KernelRidgeFactor(fold.problem, LearnedKernel(1.0, none[:, 0], none))
            form, coef = factor.spectral(alphas), factor.coefficients(alphas)
            predicted = fold.predictions(coef[0] @ fold.basis.T, np.ones(1))
            errors = fold.spectral_error(form), fold.error(coef), fold.spectral_target_errors(form)
            found.append((predicted, *errors))
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


def test_far_more_outputs_than_axes_are_reduced_for_kernel_ridge_too(make_rows):
    Phi, Y = make_rows(18, 9, 19)
    for fold in RowFolds(Phi, Y, None, list(KFold(3).split(Phi)), norms=False, ridge_only=True).folds(
        np.ones(19)
    ):
        assert fold.problem.outputs.shape == (19, 9)


@pytest.mark.parametrize("shape", [(12, 40, 2), (12, 8, 40)])
def test_wide_tables_are_compressed_once(make_rows, shape):
    """What a fold keeps grows with the rows, not with the columns."""
    Phi, Y = make_rows(*shape)
    for fold in RowFolds(Phi, Y, None, list(KFold(3).split(Phi)), norms=False).folds(np.ones(shape[2])):
        assert len(fold.problem.features) <= 12
        assert fold.rows.Phi.shape[1] <= 12
        assert len(fold.problem.outputs) <= 13


def test_columns_of_many_lengths_keep_their_moments(make_rows):
    Phi, Y = make_rows(12, 8, 2)
    Phi[:, 0] *= 1e-8
    splits = list(KFold(3).split(Phi))
    folds = list(RowFolds(Phi, Y, None, splits, norms=False).folds(np.ones(2)))
    assert [len(fold.problem.scale) for fold in folds] == [7, 7, 7]
    assert all(fold.V.ndim == 2 for fold in folds)


def test_each_row_is_visited_once(make_rows, monkeypatch):
    Phi, Y = make_rows(12, 3, 2)
    seen = []
    original = Moments.from_arrays.__func__

    def counting(cls, Phi, Y, weight=None, **options):
        seen.append(len(Y))
        return original(cls, Phi, Y, weight, **options)

    monkeypatch.setattr(Moments, "from_arrays", classmethod(counting))
    list(RowFolds(Phi, Y, None, list(KFold(4).split(Phi)), centred=True).folds(np.ones(2)))
    assert sum(seen) == 12


def test_leave_one_out_sums(make_rows):
    Phi, Y = make_rows(12, 3, 2)
    parts = [Moments.from_arrays(Phi[i : i + 3], Y[i : i + 3]) for i in range(0, 12, 3)]
    for i, total in enumerate(leave_one_out_sums(parts)):
        others = np.r_[0 : 3 * i, 3 * i + 3 : 12]
        assert total.allclose(Moments.from_arrays(Phi[others], Y[others]))


def test_fold_without_weight_is_an_error(make_rows):
    Phi, Y = make_rows(12, 3, 2)
    weight = np.ones(12)
    weight[:6] = 0.0
    with pytest.raises(ValueError, match="every fold needs rows of positive sample_weight"):
        list(RowFolds(Phi, Y, weight, list(KFold(2).split(Phi)), centred=True).folds(np.ones(2)))


def test_folds_of_moments_are_those_of_rows(make_rows):
    Phi, Y = make_rows(24, 3, 2)
    splits = list(RepeatedKFold(n_splits=3, n_repeats=2, random_state=0).split(Phi))
    parts = [Moments.from_arrays(Phi[test], Y[test]) for _, test in splits]
    of_rows, of_moments = RowFolds(Phi, Y, None, splits), MomentFolds([parts[:3], parts[3:]])
    assert of_rows.n_splits == of_moments.n_splits == 6
    assert of_rows.n_repeats == of_moments.n_repeats == 2.0
    output_weights = np.array([0.5, 2.0])
    folds = zip(of_rows.folds(output_weights), of_moments.folds(output_weights), strict=True)
    for one, other in folds:
        coef = np.zeros(one.problem.targets.shape)
        np.testing.assert_allclose(other.error(coef), one.error(coef), rtol=1e-12)
        np.testing.assert_allclose(np.sort(other.problem.scale), np.sort(one.problem.scale), rtol=1e-9)


@pytest.mark.parametrize("weighted", [True, False])
def test_a_map_is_fitted_on_the_training_rows_of_each_fold(make_rows, rng, weighted):
    X, Y = make_rows(30, 3, 2)
    weight = rng.uniform(0.5, 2.0, size=30) if weighted else None
    splits = list(KFold(3).split(X))
    source = RefittedFolds(X, Y, weight, splits, feature_map=StandardScaler())
    assert source.n_splits == 3
    assert source.n_repeats == 1.0
    for make, (train, test) in zip(source.folds(np.ones(2)), splits, strict=True):
        fitted = StandardScaler().fit(X[train], sample_weight=None if weight is None else weight[train])
        expected = next(RowFolds(fitted.transform(X), Y, weight, [(train, test)]).folds(np.ones(2)))
        fold = make()
        coef = np.ones(fold.problem.targets.shape)
        np.testing.assert_allclose(fold.error(0 * coef), expected.error(0 * coef), rtol=1e-12)
        np.testing.assert_allclose(np.sort(fold.problem.scale), np.sort(expected.problem.scale), rtol=1e-9)


def test_parts_in_order_are_held_out_from_those_before(make_rows):
    Phi, Y = make_rows(24, 3, 2)
    splits = list(TimeSeriesSplit(3).split(Phi))
    parts = [Moments.from_arrays(Phi[a : a + 6], Y[a : a + 6]) for a in range(0, 24, 6)]
    of_rows, of_moments = RowFolds(Phi, Y, None, splits), MomentFolds([parts], ordered=True)
    assert of_moments.n_splits == of_rows.n_splits == 3
    assert of_moments.n_repeats == of_rows.n_repeats == 1.0
    for fold, other in zip(of_moments.folds(np.ones(2)), of_rows.folds(np.ones(2)), strict=True):
        np.testing.assert_allclose(np.sort(fold.problem.scale), np.sort(other.problem.scale), rtol=1e-9)
        np.testing.assert_allclose(fold.problem.mean_phi, other.problem.mean_phi)
        assert fold.weight == other.weight == 6.0
        assert pytest.approx(other.VN) == fold.VN
