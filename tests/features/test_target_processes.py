import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from entangled_kernels import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    TargetProcessFeatures,
)
from entangled_kernels.features import FeatureMapTraits, fit_and_map

from reference.evidence import process_prediction


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(50, 4)) * [1.0, 100.0, 1e-3, 1.0] + [0.0, 50.0, 7.0, 1.0]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.column_stack([np.sin(2.0 * Z[:, 0]), 30.0 * Z[:, 1] ** 2 + 7.0, Z[:, 2] * Z[:, 3]])
    return X, Y + 0.05 * Y.std(axis=0) * rng.normal(size=Y.shape)


def standard(values, own):
    return (values - own.mean(axis=0)) / own.std(axis=0)


def test_features_of_new_rows_are_predictions_of_processes(rows, rng):
    X, Y = rows
    features = TargetProcessFeatures(random_state=0).fit(X, Y)
    Z, Z_new = standard(X, X), standard(X[:9] + 3.0 * X.std(axis=0) * rng.normal(size=(9, 4)), X)
    found = features.transform(Z_new * X.std(axis=0) + X.mean(axis=0))
    for target, y in enumerate(standard(Y, Y).T):
        expected = process_prediction(
            Z, y, Z_new, features.theta_[target], Z.min(axis=0), Z.max(axis=0)
        )
        np.testing.assert_allclose(found[:, target], expected, rtol=1e-7, atol=1e-9)


def test_every_target_has_widths_of_its_own(rows):
    features = TargetProcessFeatures(random_state=0).fit(*rows)
    relative = np.argsort(features.theta_[:, 5:], axis=1)
    assert (relative[0, 0], relative[1, 0], set(relative[2, :2])) == (0, 1, {2, 3})
    np.testing.assert_allclose(
        features.widths_, np.exp(features.theta_[:, 4:5] + features.theta_[:, 5:])
    )
    np.testing.assert_allclose(features.noises_, np.exp(features.theta_[:, 3]))
    assert TargetProcessFeatures(0.0).fit(*rows).theta_[:, 5:].any() == 0.0


def leave_one_out(features, X, targets, weight):
    """Predictions of every row by the processes of all other rows."""
    Z, found = (X - features.mean_) / features.scale_, np.empty_like(targets)
    for row, target in np.ndindex(*targets.shape):
        others = np.flatnonzero(
            (np.arange(len(X)) != row) & ~np.isnan(targets[:, target]) & (weight > 0.0)
        )
        theta = features.theta_[target]
        args = theta, *((features.range_ - features.mean_) / features.scale_)
        found[row, target] = process_prediction(
            Z[others], targets[others, target], Z[[row]], *args, weight[others]
        )[0]
    return found


def turned(predicted, targets, weight):
    """Predictions plus a ridge regression of their errors on them, with the penalty one."""
    used, found = (weight > 0.0) & ~np.isnan(targets).all(axis=1), predicted.copy()
    mean = np.average(predicted[used], axis=0, weights=weight[used])
    for target in range(targets.shape[1]):
        rows = used & ~np.isnan(targets[:, target])
        F = predicted[rows] - np.average(predicted[rows], axis=0, weights=weight[rows])
        W = np.diag(weight[rows])
        errors = targets[rows, target] - predicted[rows, target]
        found[:, target] += (
            (predicted - mean) @ np.linalg.inv(F.T @ W @ F + np.eye(3)) @ F.T @ W @ errors
        )
    return found


def test_features_of_training_rows_are_turned_leave_one_out_predictions(rows):
    X, Y = rows
    Y[4, 1], Y[11] = np.nan, np.nan
    weight = np.linspace(0.5, 2.0, len(X))
    weight[6] = 0.0
    features = TargetProcessFeatures(random_state=0)
    Phi = features.fit_transform(X, Y, weight)
    targets = (Y - features.target_mean_) / features.target_scale_
    predicted = leave_one_out(features, X, targets, weight)
    np.testing.assert_allclose(Phi, turned(predicted, targets, weight), rtol=1e-6, atol=1e-8)
    # A row without weight or target is new to the process.
    np.testing.assert_allclose(predicted[[6, 11]], features.transform(X)[[6, 11]], rtol=1e-9)
    assert predicted[4, 1] == pytest.approx(features.transform(X)[4, 1], rel=1e-9)
    assert not features.dual_coef_[4, 1]
    fitted, mapped = fit_and_map(TargetProcessFeatures(random_state=0), X, Y, weight)
    np.testing.assert_array_equal(mapped, Phi)
    traits = FeatureMapTraits.of(make_pipeline(StandardScaler(), fitted))
    assert (traits.needs_targets, traits.takes_missing_targets, traits.cross_fitted) == (
        True,
        True,
        True,
    )


def test_least_squares_on_the_features_is_the_identity(rows, rng):
    X, Y = rows
    Y = Y + 0.5 * Y.std(axis=0) * rng.normal(size=Y.shape)
    Phi, T = TargetProcessFeatures(random_state=0).fit_transform(X, Y), standard(Y, Y)
    centred = Phi - Phi.mean(axis=0)
    np.testing.assert_allclose(np.linalg.lstsq(centred, T, rcond=None)[0], np.eye(3), atol=0.1)


def test_training_residuals_show_the_noise(rows, rng):
    X, Y = rows
    Y = Y + Y.std(axis=0) * rng.normal(size=Y.shape)
    model = EntangledKernelRidge(
        TargetProcessFeatures(random_state=0), shrinkage=1.0, alpha=1e-6
    ).fit(X, Y)
    _, deviation = model.predict(X, return_std=True)
    assert np.all(deviation.mean(axis=0) > 0.5 * Y.std(axis=0))


def test_ridge_on_the_features_predicts_about_as_the_processes_do(rows):
    X, Y = rows
    X_new = X[:5] + 0.1 * X.std(axis=0)
    features = TargetProcessFeatures(random_state=0).fit(X, Y)
    model = EntangledKernelRidge(TargetProcessFeatures(random_state=0), shrinkage=1.0, alpha=1e-6)
    expected = features.transform(X_new) * Y.std(axis=0) + Y.mean(axis=0)
    found = model.fit(X, Y).predict(X_new)
    assert np.all(np.abs(found - expected).max(axis=0) < 0.1 * Y.std(axis=0))
    large = model.set_params(alpha=1e12).fit(X, Y).predict(X_new)
    np.testing.assert_allclose(
        large, np.broadcast_to(Y.mean(axis=0), large.shape), rtol=1e-4, atol=1e-6
    )


def test_rows_in_batches_get_the_features_of_new_rows(rows):
    X, Y = rows
    model = EntangledKernelRidge(TargetProcessFeatures(random_state=0)).partial_fit(X[:30], Y[:30])
    model.partial_fit(X[30:], Y[30:])
    found = model.predict(X)
    expected = EntangledKernelRidge(model.feature_map_).partial_fit(X, Y).predict(X)
    np.testing.assert_allclose(found, expected)


def test_explanations_cannot_compare_effects_with_noise(rng):
    """Features are predictions, which do not show the noise that went into them."""
    X = rng.normal(size=(60, 5))
    Y = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 1] ** 2]) + 0.5 * rng.normal(size=(60, 2))
    model = EntangledKernelRidge(TargetProcessFeatures(random_state=0), shrinkage=1.0, alpha=1e-6)
    found = model.fit(X, Y).explain(X)
    assert found.method == "permutation"
    assert found.importance[:2].min() > found.importance[2:].max()
    assert np.isnan(found.importance_noise).all()


def test_missing_targets_are_predicted(rows):
    X, Y = rows
    Y[:20, 0], Y[30, 1:] = np.nan, np.nan
    features = TargetProcessFeatures(random_state=0)
    assert np.isfinite(features.fit_transform(X, Y)).all()
    assert not features.dual_coef_[:20, 0].any()
    model = EntangledKernelRidgeCV([features, StandardScaler()], cv=3, random_state=0).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()


def test_held_out_rows_are_predicted_by_processes_that_have_not_seen_them(rng):
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    own = TargetProcessFeatures(random_state=0)
    found = EntangledKernelRidgeCV(own, cv=3, param_grid={"shrinkage": (1.0,)}, random_state=0).fit(
        X, Y
    )
    assert found.best_score_ > 0.8
    assert np.all(found.best_estimator_.noise_variance_ > 0.5 * Y.var(axis=0))
    assert np.all(found.predict(X[:1], return_std=True)[1] > 0.5 * Y.std(axis=0))


def test_targets_without_weight_are_missing(rows):
    X, Y = rows
    weight = np.ones_like(Y)
    weight[:5, 0], weight[6, 1] = 0.0, 0.5
    odd, blank = Y.copy(), Y.copy()
    odd[:5, 0], blank[:5, 0] = 1e6, np.nan
    model = EntangledKernelRidge(TargetProcessFeatures(random_state=0), alpha=1e-3)
    expected = clone(model).fit(X, blank, weight)
    found = model.fit(X, odd, weight)
    # Products of arrays that lie differently in memory differ by rounding.
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-8)
    np.testing.assert_allclose(found.noise_variance_, expected.noise_variance_, rtol=1e-8)


def test_a_target_that_is_seldom_known_is_learned_from_rows_where_it_is(rng):
    X = rng.normal(size=(300, 2))
    Y = np.column_stack([X[:, 0], X[:, 1]])
    Y[12:, 0] = np.nan
    features = TargetProcessFeatures(n_components=40, max_rows=20, random_state=0).fit(X, Y)
    assert np.count_nonzero(features.dual_coef_[:, 0]) == 12
    assert np.count_nonzero(features.dual_coef_[:, 1]) == 40
    assert np.corrcoef(features.transform(X)[:, 0], X[:, 0])[0, 1] > 0.9


def test_constant_columns_and_targets(rows):
    X, Y = rows
    X[:, 1] = 4.0
    features = TargetProcessFeatures().fit(X, np.column_stack([Y, np.full(50, 2.0)]))
    assert np.isfinite(features.transform(X)).all()
    assert not features.transform(X)[:, 3].any()


def test_many_rows_are_drawn(rows):
    X, Y = rows
    features = TargetProcessFeatures(n_components=20, max_rows=15, random_state=0)
    assert np.isfinite(features.fit_transform(X, Y)).all()
    assert features.components_.shape == (20, 4)


def test_a_reach_limits_columns(rows):
    X, Y = rows
    features = TargetProcessFeatures(reach=0.5, random_state=0).fit(X, Y)
    edge = X.max(axis=0) + 0.5 * np.ptp(X, axis=0)
    np.testing.assert_allclose(features.transform([edge * 1.0]), features.transform([edge + 100.0]))
    free = TargetProcessFeatures(random_state=0).fit(X, Y)
    assert not np.allclose(free.transform([edge]), free.transform([edge + 100.0]))


def test_in_a_search_it_is_left_out_where_targets_are_many_or_one(rows):
    X, Y = rows
    few, any_number = TargetProcessFeatures(max_targets=2), TargetProcessFeatures()
    assert [FeatureMapTraits.of(few).suits(p, 4) for p in (1, 2, 3)] == [False, True, False]
    assert FeatureMapTraits.of(make_pipeline(StandardScaler(), any_number)).suits(1, 4)
    settings = {"cv": 3, "param_grid": {"shrinkage": (1.0,)}, "random_state": 0}
    for targets, tried in ((Y[:, :1], 1), (Y[:, :2], 2), (Y, 1)):
        model = EntangledKernelRidgeCV([StandardScaler(), few], **settings).fit(X, targets)
        assert len(np.unique(model.cv_results_["param_feature_map"])) == tried
    several = [few, StandardScaler(), few, MinMaxScaler()]
    model = EntangledKernelRidgeCV(several, **settings).fit(X, Y)
    assert set(model.cv_results_["param_feature_map"]) == {1, 3}
    assert model.best_params_["feature_map"] in (1, 3)
    alone = EntangledKernelRidgeCV([few], **settings).fit(X, Y)
    assert isinstance(alone.feature_map_, TargetProcessFeatures)


def test_bad_start(rows):
    with pytest.raises(ValueError, match=r"start must be theta_ .* of shape \(3, 9\)"):
        TargetProcessFeatures(start=np.zeros(4)).fit(*rows)
