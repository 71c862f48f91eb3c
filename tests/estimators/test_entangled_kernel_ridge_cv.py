import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, cross_val_score
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
)
from entangled_kernels.selection import GRID

SMALL_GRID = {
    "alphas": np.logspace(-4, 3, 8),
    "param_grid": {"target_alpha": (0.1,), "shrinkage": (0.0, 0.5, 1.0)},
}


# The checks fit many tiny tables, on some of which the best alpha is the largest or the smallest.
@pytest.mark.filterwarnings("ignore:the (smallest|largest) of the alphas")
# One of them calls partial_fit after fit.
@pytest.mark.filterwarnings("ignore:partial_fit starts anew")
@parametrize_with_checks(
    [
        EntangledKernelRidgeCV(**SMALL_GRID, cv=KFold(2), random_state=0),
        EntangledKernelRidgeCV(None, **SMALL_GRID, selection="best", random_state=0),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def rows(make_rows):
    return make_rows(40, 4, 3)


def refit_scores(model, X, Y, splits):
    """Mean held-out error of every candidate of cv_results_, by fitting each on each split."""
    table, expected = model.cv_results_, []
    names = [*GRID, "alpha"]
    for values in zip(*(table[f"param_{name}"] for name in names), strict=True):
        candidate = EntangledKernelRidge(model.feature_map, **dict(zip(names, values, strict=True)))
        errors = []
        for train, test in splits:
            predicted = candidate.fit(X[train], Y[train]).predict(X[test])
            errors.append(np.mean((Y[test] - predicted) ** 2 / Y.var(axis=0)))
        expected.append(np.mean(errors))
    return table["mean_test_score"], np.array(expected)


@pytest.mark.filterwarnings("ignore:the (smallest|largest) of the alphas")
def test_results_are_those_of_refitting(rows):
    X, Y = rows
    splits, features = list(KFold(3).split(X)), Nystroem(gamma=0.2, n_components=10, random_state=0)
    grid = {"target_alpha": (0.1,), "shrinkage": (0.0, 0.5, 1.0)}
    model = EntangledKernelRidgeCV(features, cv=splits, alphas=(0.01, 1.0), param_grid=grid)
    ours, expected = refit_scores(model.fit(X, Y), X, Y, splits)
    np.testing.assert_allclose(ours, expected, rtol=1e-7)
    assert model.best_score_ == pytest.approx(expected.min(), rel=1e-3)


def test_kernel_ridge_is_always_a_candidate(rows):
    X, Y = rows
    model = EntangledKernelRidgeCV(
        None, random_state=0, param_grid={"shrinkage": (0.2,), "target_alpha": (0.1,)}
    ).fit(X, Y)
    assert (model.cv_results_["param_shrinkage"] == 1.0).sum() == 34


def test_scores_of_targets_have_the_score_as_their_mean(rng):
    X = rng.normal(size=(40, 3))
    Y = np.column_stack([X[:, 0], rng.normal(size=40), np.full(40, 7.0)])
    model = EntangledKernelRidgeCV([None, StandardScaler()], random_state=0, **SMALL_GRID).fit(X, Y)
    scores, table = model.cv_target_scores_, model.cv_results_
    assert np.isnan(scores[:, 2]).all()
    np.testing.assert_allclose(scores[:, :2].mean(axis=1), table["mean_test_score"], rtol=1e-9)
    assert table["mean_test_score"][model.best_index_] == model.best_score_
    for name, value in model.best_params_.items():
        assert table[f"param_{name}"][model.best_index_] == value
    model.set_params(selection="best").fit(X, Y)
    assert not hasattr(model, "cv_target_scores_")


def test_every_target_has_its_own_weights_of_candidates(rng):
    """A target that is all noise and one without noise are not averaged alike; many targets are."""
    X = rng.normal(size=(60, 4))
    Y = np.column_stack([X @ rng.normal(size=4), rng.normal(size=60)])
    model = EntangledKernelRidgeCV(None, random_state=0).fit(X, Y)
    alphas = model.average_weights_.T @ np.log(model.cv_results_["param_alpha"])
    assert alphas[1] > alphas[0] + 0.2
    many = rng.normal(size=(60, 61)) + X[:, :1]
    assert EntangledKernelRidgeCV(None, random_state=0).fit(X, many).average_weights_.ndim == 1


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_average_over_feature_maps_is_the_weighted_mean_of_candidates(rng, fit_intercept):
    X = rng.normal(size=(24, 3))
    Y = X @ rng.normal(size=(3, 2)) + np.sin(2 * X[:, :2]) + rng.normal(size=(24, 2))
    maps = [None, StandardScaler(), Nystroem(gamma=0.2, n_components=12, random_state=0)]
    model = EntangledKernelRidgeCV(
        maps, **SMALL_GRID, fit_intercept=fit_intercept, random_state=0
    ).fit(X, Y)
    weights, table = model.average_weights_, model.cv_results_
    assert len(weights) == len(table["mean_test_score"])
    used = np.flatnonzero(weights.any(axis=1))
    assert len(set(table["param_feature_map"][used])) >= 2
    names = ("alignment_mix", "shrinkage", "target_alpha", "rank", "prediction", "alpha")
    total = np.zeros_like(Y)
    for i in used:
        own = {name: table[f"param_{name}"][i] for name in names} | {"fit_intercept": fit_intercept}
        member = EntangledKernelRidge(maps[table["param_feature_map"][i]], **own).fit(X, Y)
        total += weights[i] * member.predict(X)
    np.testing.assert_allclose(model.predict(X), total, atol=1e-9)
    np.testing.assert_allclose(
        model.feature_map_.transform(X) @ model.coef_.T + model.intercept_, total
    )
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(X))
    covariance = model.predict(X, return_cov=True)[1]
    np.testing.assert_allclose(std**2, np.einsum("noo->no", covariance), rtol=1e-9)


def test_one_standard_error_regularises_more(rows):
    X, Y = rows
    best = EntangledKernelRidgeCV(None, **SMALL_GRID, selection="best", random_state=0).fit(X, Y)
    wary = EntangledKernelRidgeCV(None, **SMALL_GRID, selection="one_se", random_state=0).fit(X, Y)
    assert wary.best_params_["shrinkage"] >= best.best_params_["shrinkage"]
    assert wary.best_score_ >= best.best_score_


def test_early_stopping_is_selected(rows):
    X, Y = rows
    grid = {
        "rank": (4,),
        "shrinkage": (0.0, 1.0),
        "solver": ["ascent"],
        "solver_params": [{"max_iter": 25}],
    }
    model = EntangledKernelRidgeCV(
        None, alphas=np.logspace(-3, 3, 7), random_state=0, param_grid=grid
    )
    model.fit(X, Y)
    assert set(model.cv_results_["param_n_steps"]) == {1, 2, 5, 10, 20, 25}
    assert model.best_estimator_.n_iter_ <= 25


def test_groups_and_leave_one_out(rows):
    X, Y = rows
    groups = np.repeat(np.arange(8), 5)
    grouped = EntangledKernelRidgeCV(None, **SMALL_GRID, cv=GroupKFold(4)).fit(X, Y, groups=groups)
    assert grouped.n_splits_ == 4
    assert EntangledKernelRidgeCV(None, **SMALL_GRID, cv=LeaveOneOut()).fit(X, Y).n_splits_ == 40
    assert EntangledKernelRidgeCV(None, **SMALL_GRID, cv=40).fit(X, Y).n_splits_ == 40
    with pytest.raises(ValueError, match="groups"):
        EntangledKernelRidgeCV(None, **SMALL_GRID, cv=GroupKFold(4)).fit(X, Y)


def test_constant_targets(rows):
    X, Y = rows
    Y[:, 1] = 3.0
    model = EntangledKernelRidgeCV(None, **SMALL_GRID, random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.predict(X)[:, 1], 3.0)
    assert np.isfinite(model.best_score_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, np.full_like(Y, 2.0))
    np.testing.assert_allclose(model.predict(X), 2.0)


def test_end_of_the_grid_is_named(rows):
    X, Y = rows
    for alphas, end in (
        ((100.0, 1000.0), "smallest of the alphas was chosen, 100"),
        ((1e-9, 1e-8), "largest"),
    ):
        with pytest.warns(UserWarning, match=f"the {end}"):
            EntangledKernelRidgeCV(
                None, alphas=alphas, random_state=0, param_grid={"shrinkage": (1.0,)}
            ).fit(X, Y)


def test_in_scikit_learn_tools(rows):
    X, Y = rows
    model = EntangledKernelRidgeCV(None, **SMALL_GRID, random_state=0)
    assert cross_val_score(clone(model), X, Y, cv=3).shape == (3,)
    fitted = model.set_output(predict="pandas").fit(
        pd.DataFrame(X), pd.DataFrame(Y, columns=list("abc"))
    )
    prediction = fitted.predict(pd.DataFrame(X))
    assert list(prediction.columns) == ["a", "b", "c"]
    again = pickle.loads(pickle.dumps(fitted)).predict(pd.DataFrame(X))
    np.testing.assert_array_equal(prediction, again)
    mean, std = fitted.predict(pd.DataFrame(X), return_std=True)
    assert mean.shape == std.shape == (40, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alphas": ()}, "alphas must hold at least one value"),
        ({"alphas": (1.0, -1.0)}, "alphas must be a positive number, got -1.0"),
        ({"alphas": 1.0}, "alphas must be a sequence"),
        ({"param_grid": 3}, "param_grid must be None or a dictionary"),
        ({"param_grid": {"alpha": (1.0,)}}, "param_grid must have keys .*'alpha'"),
        ({"param_grid": {"shrinkage": ()}}, "param_grid.*shrinkage.* must hold at least one value"),
        ({"param_grid": {"shrinkage": (2,)}}, "param_grid.*shrinkage must be .* got 2"),
        ({"param_grid": {"prediction": "entangled"}}, "param_grid.*prediction.* a sequence"),
        ({"param_grid": {"rank": (100,)}}, "full rank 12"),
        ({"param_grid": {"solver_params": {"tol": 1.0}}}, "solver_params must be .* got 'tol'"),
        ({"param_grid": {"solver_params": [{"tol": -1.0}]}}, "tol.* at least 0"),
        ({"scoring": "r2"}, "scoring must be one of 'nmse', 'mse', got 'r2'"),
        ({"selection": "worst"}, "selection must be one of"),
        ({"cv": 1}, "cv must be a whole number of at least 2, got 1"),
        ({"cv": 41}, "cv must be at most the number of rows, 40, got 41"),
        ({"feature_map": "rbf"}, "feature_map must be 'auto', None, a transformer or a list"),
        ({"feature_map": []}, "feature_map must hold at least one feature map"),
        ({"feature_map": 3}, "feature_map must be None or a transformer"),
    ],
)
def test_bad_settings(rows, settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        EntangledKernelRidgeCV(**settings).fit(*rows)


def test_auto_features_choose_the_kernel(rng):
    X = rng.normal(size=(60, 3))
    curved = np.column_stack([np.sin(2 * X[:, 0]), np.cos(X[:, 1]) + X[:, 2]])
    straight = X @ rng.normal(size=(3, 2)) + 0.1 * rng.normal(size=(60, 2))
    grid = {"param_grid": {"target_alpha": (0.1,), "shrinkage": (0.5,)}}
    model = EntangledKernelRidgeCV(**grid, cv=KFold(4), random_state=0).fit(X, curved)
    assert isinstance(model.best_estimator_.feature_map_, EvidenceFeatures | ColumnWidthFeatures)
    assert model.best_params_["feature_map"] in (1, 3)
    assert model.best_estimator_.feature_map_.noise_ < 0.05
    assert model.score(X, curved) > 0.95
    assert model.fit(X * 1e6 + 5, straight).score(X * 1e6 + 5, straight) > 0.95


def test_auto_tries_the_noise_that_the_evidence_found(rng):
    X = rng.normal(size=(30, 2))
    Y = np.sin(X) + 0.3 * rng.normal(size=(30, 2))
    grid = {"param_grid": {"target_alpha": (0.1,), "shrinkage": (1.0,)}}
    model = EntangledKernelRidgeCV(**grid, cv=KFold(3), random_state=0).fit(X, Y)
    noise = ColumnWidthFeatures("gaussian", reach=1.0, random_state=0).fit(X, Y).noise_
    tried = model.cv_results_["param_alpha"][model.cv_results_["param_feature_map"] == 1]
    assert noise in tried


def test_average_with_the_columns_themselves_takes_data_frames(rng):
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    noise = 0.1 * rng.normal(size=(60, 2))
    Y = pd.DataFrame(X.to_numpy() @ rng.normal(size=(3, 2)) + noise, columns=["y", "z"])
    model = EntangledKernelRidgeCV([None, StandardScaler()], random_state=0).fit(X, Y)
    assert isinstance(model.feature_map_, FeatureUnion)
    expected = model.feature_map_.transform(X) @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.predict(X), expected)


@pytest.mark.filterwarnings("ignore:the (smallest|largest) of the alphas")
def test_features_that_say_nothing(rng):
    """Constant in all rows, or zero in a whole fold."""
    Y = rng.normal(size=(20, 3))
    settings = {"cv": KFold(4), "random_state": 0}
    model = EntangledKernelRidgeCV(None, **settings).fit(np.ones((20, 3)), Y)
    np.testing.assert_allclose(model.predict(np.ones((1, 3))), Y.mean(axis=0, keepdims=True))
    assert model.best_estimator_.kraus_.shape == (0, 3, 3)
    X = rng.normal(size=(20, 3))
    X[:5] = 0.0
    model = EntangledKernelRidgeCV(None, **settings, fit_intercept=False, scoring="mse").fit(X, Y)
    np.testing.assert_allclose(model.cv_results_["split0_test_score"], np.mean(Y[:5] ** 2))
