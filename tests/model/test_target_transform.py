"""Estimators with a `target_transform`: learned on a scale, told in units of the targets."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.metrics import r2_score
from sklearn.preprocessing import (
    FunctionTransformer,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.io import load_model, save_model

SMALL_GRID = {
    "alphas": np.logspace(-4, 3, 8),
    "random_state": 0,
    "param_grid": {"target_alpha": (0.1,), "shrinkage": (0.0, 1.0), "prediction": ("entangled",)},
}
LOG = FunctionTransformer(np.log, inverse_func=np.exp, check_inverse=False)
NAMES = ["zinc", "lead", "tin"]


def models(**options):
    """Both estimators, quick ones."""
    one = EntangledKernelRidge(StandardScaler(), **options)
    return one, EntangledKernelRidgeCV(StandardScaler(), **SMALL_GRID, **options)


@pytest.fixture
def table():
    """Inputs, and three positive targets, whose logarithms are linear with errors that go together."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    noise = rng.normal(size=(50, 3)) @ [[0.3, 0.2, 0.2], [0.0, 0.1, 0.0], [0.0, 0.0, 0.1]]
    return X, np.exp(0.5 * X @ rng.normal(size=(4, 3)) + noise)


@pytest.mark.filterwarnings(
    "ignore:the (smallest|largest) of the alphas", "ignore:partial_fit starts anew"
)
@parametrize_with_checks(
    [
        EntangledKernelRidge(target_transform=StandardScaler()),
        EntangledKernelRidgeCV(
            None, **SMALL_GRID, target_transform=StandardScaler(), selection="best"
        ),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    "transformer", [LOG, QuantileTransformer(n_quantiles=9)], ids=lambda one: type(one).__name__
)
def test_predictions_are_those_of_a_transformed_target_regressor(table, number, transformer):
    X, Y = table
    around = TransformedTargetRegressor(
        models()[number], transformer=transformer, check_inverse=False
    )
    inside = models(target_transform=transformer)[number].fit(X, Y)
    np.testing.assert_array_equal(inside.predict(X), around.fit(X, Y).predict(X))
    np.testing.assert_array_equal(inside.coef_, around.regressor_.coef_)
    assert inside.score(X, Y) == r2_score(Y, inside.predict(X))


@pytest.mark.parametrize("number", [0, 1])
def test_logarithms_are_those_taken_by_hand(table, number):
    """Deviations, intervals and measured targets, beside a model of the logarithms."""
    X, Y = table
    X, Y, new, truth = X[:40], Y[:40], X[40:], Y[40:]
    model, hand = (
        models(target_transform="log")[number].fit(X, Y),
        models()[number].fit(X, np.log(Y)),
    )
    known = np.where(np.arange(3) == 0, truth, np.nan)
    for measured in (None, known):
        as_log = None if measured is None else np.log(measured)
        options, log_options = {"given": measured}, {"given": as_log}
        mean, std = hand.predict(new, return_std=True, **log_options)
        fixed = np.isfinite(known) if measured is not None else np.zeros_like(known, dtype=bool)
        expected = np.where(fixed, known, np.exp(mean))
        np.testing.assert_allclose(model.predict(new, **options), expected, rtol=1e-12)
        _, found = model.predict(new, return_std=True, **options)
        np.testing.assert_allclose(
            found, np.exp(mean + std**2 / 2) * np.sqrt(np.expm1(std**2)), rtol=1e-9
        )
        _, covariance = model.predict(new, return_cov=True, **options)
        np.testing.assert_allclose(np.diagonal(covariance, axis1=1, axis2=2), found**2, atol=1e-12)
        np.testing.assert_allclose(
            model.predict_mean(new, **options),
            np.where(fixed, known, np.exp(mean + std**2 / 2)),
            rtol=1e-12,
        )
        for joint in (False, True):
            ends = model.predict_interval(new, 0.8, joint=joint, **options)
            for end, log_end in zip(
                ends, hand.predict_interval(new, 0.8, joint=joint, **log_options), strict=True
            ):
                np.testing.assert_allclose(end, np.where(fixed, known, np.exp(log_end)), rtol=1e-12)
            assert ends[0].min() > 0.0
    np.testing.assert_array_equal(model.predict(new, given=truth), truth)
    assert model.suggest_measurements(new)[0].tolist() == hand.suggest_measurements(new)[0].tolist()
    # Measured logarithms tell of the others.
    errors = [
        np.mean((np.log(model.predict(new, given=own) / truth)[:, 1:]) ** 2)
        for own in (None, known)
    ]
    assert errors[1] < 0.6 * errors[0]


def test_intervals_of_lognormal_targets_cover():
    """Seeded, and few; benchmarks/target_transforms.py has many draws of several sizes."""
    inside = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(240, 3))
        Y = np.exp(X @ rng.normal(size=(3, 2)) + 0.7 * rng.normal(size=(240, 2)))
        model = EntangledKernelRidge(alpha=1.0, target_transform="log").fit(X[:40], Y[:40])
        lower, upper = model.predict_interval(X[40:], 0.9)
        inside.append(np.mean((lower <= Y[40:]) & (Y[40:] <= upper)))
    assert 0.87 < np.mean(inside) < 0.94


@pytest.mark.parametrize("number", [0, 1])
def test_errors_are_those_of_predictions_in_units_of_the_targets(table, number):
    X, Y = table
    model = EntangledKernelRidgeCV(
        StandardScaler(), **SMALL_GRID, selection="best", cv=[(np.arange(25), np.arange(25, 50))],
        target_transform=[LOG, QuantileTransformer(n_quantiles=9)][number],
    ).fit(X, Y)  # fmt: skip
    # The one split chooses; a model of its training rows with these settings predicts the others.
    one = clone(model.best_estimator_).set_params(target_transform=None)
    scale = model.target_transform_
    predicted = scale.inverse_transform(one.fit(X[:25], scale.transform(Y)[:25]).predict(X[25:]))
    squares = np.mean((predicted - Y[25:]) ** 2, axis=0)
    np.testing.assert_allclose(model.cv_rmse_, np.sqrt(squares), rtol=1e-9)
    np.testing.assert_allclose(model.cv_target_score_, squares / Y.var(axis=0), rtol=1e-9)
    np.testing.assert_allclose(model.cv_score_, np.mean(squares / Y.var(axis=0)), rtol=1e-9)
    assert model.kernel_ridge_score_ > 0.0


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("transform", ["log", PowerTransformer()], ids=["log", "power"])
def test_missing_targets_stay_missing(table, number, transform):
    X, Y = table
    Y = np.where(np.random.default_rng(4).random(Y.shape) < 0.2, np.nan, Y)
    model = models(target_transform=transform)[number].fit(X, Y)
    latent = model.target_transform_.transform(Y)
    np.testing.assert_array_equal(np.isnan(latent), np.isnan(Y))
    hand = models()[number].fit(X, latent)
    np.testing.assert_allclose(
        model.predict(X), model.target_transform_.inverse_transform(hand.predict(X)), rtol=1e-12
    )
    lower, upper = model.predict_interval(X)
    assert np.nanmean((lower <= Y) & (upper >= Y) | np.isnan(Y)) > 0.85


@pytest.mark.parametrize("number", [0, 1])
def test_targets_without_weight_may_hold_anything(table, number):
    X, Y = table
    each, missing, bad = np.ones(Y.shape), Y.copy(), Y.copy()
    each[3, 1], missing[3, 1], bad[3, 1] = 0.0, np.nan, -7.0
    first, second = (clone(models(target_transform="log")[number]) for _ in range(2))
    np.testing.assert_array_equal(
        first.fit(X, bad, each).predict(X), second.fit(X, missing).predict(X)
    )
    rows = np.ones(len(X))
    rows[:5], bad[:5] = 0.0, 0.0
    splits = {} if number == 0 else {"cv": [(np.arange(5, 30), np.arange(30, 50))]}
    scaled = models(target_transform=StandardScaler())[number].set_params(
        **splits, feature_map=None
    )
    for model in (clone(scaled), clone(scaled).set_params(target_transform="log")):
        kept = clone(model)
        if number:
            kept.set_params(cv=[(np.arange(25), np.arange(25, 45))])
        np.testing.assert_allclose(
            model.fit(X, bad, rows).predict(X), kept.fit(X[5:], bad[5:]).predict(X), rtol=1e-7
        )


def test_some_targets_only(table):
    X, Y = table
    Y = pd.DataFrame(Y, columns=NAMES)
    Y["tin"] -= Y["tin"].mean()
    model = EntangledKernelRidge(target_transform={"zinc": "log", "lead": "log1p"}).fit(X, Y)
    assert model.target_transform_.kinds == ("log", "log1p", "")
    hand = EntangledKernelRidge().fit(X, np.column_stack([np.log(Y.zinc), np.log1p(Y.lead), Y.tin]))
    mean, covariance = hand.predict(X, return_cov=True)
    expected = np.column_stack(
        [np.exp(mean[:, 0]), np.maximum(np.expm1(mean[:, 1]), 0.0), mean[:, 2]]
    )
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-12)
    found, centre = (
        model.predict(X, return_cov=True)[1],
        np.exp(mean[:, 0] + covariance[:, 0, 0] / 2),
    )
    np.testing.assert_allclose(found[:, 2, 2], covariance[:, 2, 2])
    np.testing.assert_allclose(found[:, 0, 2], centre * covariance[:, 0, 2])
    np.testing.assert_allclose(model.predict_mean(X)[:, 0], centre)
    np.testing.assert_allclose(model.predict_mean(X)[:, 2], mean[:, 2])
    frame = model.set_output(predict="pandas").predict_mean(pd.DataFrame(X), given=Y[["tin"]])
    assert list(frame.columns) == NAMES
    pd.testing.assert_series_equal(frame["tin"], Y["tin"])
    by_number = EntangledKernelRidge(target_transform={0: "log", 1: "log1p", 2: None}).fit(
        X, Y.to_numpy()
    )
    np.testing.assert_array_equal(
        by_number.predict(X), model.set_output(predict="default").predict(X)
    )


def test_counts_may_be_zero():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 2))
    Y = rng.poisson(np.exp(X[:, :1] + 0.5))
    model = EntangledKernelRidge(target_transform="log1p").fit(X, Y)
    lower, upper = model.predict_interval(X)
    assert Y.min() == lower.min() == 0.0
    assert 0.85 < np.mean((lower <= Y) & (upper >= Y)) < 0.97
    assert min(model.predict(X).min(), model.predict_mean(X).min()) >= 0.0


@pytest.mark.parametrize("number", [0, 1])
def test_an_inverse_may_fall_and_may_end(table, number):
    X, Y = table
    falls = FunctionTransformer(np.reciprocal, inverse_func=np.reciprocal, check_inverse=False)
    lower, upper = models(target_transform=falls)[number].fit(X, Y).predict_interval(X, 0.5)
    assert (lower <= upper).all()
    skewed = Y**3
    model = models(target_transform=PowerTransformer())[number].fit(X, skewed)
    ends = [
        *model.predict_interval(X, 0.95),
        *model.predict(X, return_std=True),
        model.predict_mean(X),
    ]
    assert all(np.isfinite(end).all() for end in ends)
    assert ends[1].max() <= (2 * skewed.max(axis=0) - skewed.min(axis=0)).max() * (1 + 1e-9)


@pytest.mark.parametrize("transform", ["log", StandardScaler(), PowerTransformer()])
@pytest.mark.parametrize("features", [None, StandardScaler()])
def test_batches_give_the_model_of_all_rows(table, transform, features):
    X, Y = table
    whole = EntangledKernelRidge(features, target_transform=transform).fit(X, Y)
    parts = clone(whole)
    for start in range(0, 50, 7):
        parts.partial_fit(X[start : start + 7], Y[start : start + 7])
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-9)
    for found, expected in zip(parts.predict_interval(X), whole.predict_interval(X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    # A fit in memory goes on, on the scale that it has found.
    more = clone(whole).fit(X[:30], Y[:30])
    scale = more.target_transform_
    more.partial_fit(X[30:], Y[30:])
    hand = EntangledKernelRidge(more.feature_map_).fit(X, scale.transform(Y))
    assert more.target_transform_ is scale
    if features is None:
        np.testing.assert_allclose(
            more.predict(X), scale.inverse_transform(hand.predict(X)), rtol=1e-9
        )


def test_batches_of_a_search(table):
    X, Y = table
    search = models(target_transform="log")[1]
    for start in range(0, 50, 10):
        search.partial_fit(X[start : start + 10], Y[start : start + 10])
    assert np.mean((np.log(search.predict(X)) - np.log(Y)) ** 2) < 0.2
    residuals = np.sqrt(np.mean((search.predict(X) - Y) ** 2, axis=0))
    assert (search.cv_rmse_ > residuals).all()
    several = clone(search).set_params(
        feature_map=[StandardScaler(), PCA(1)], target_transform=PowerTransformer()
    )
    several.fit_batches([(X[:25], Y[:25]), (X[25:], Y[25:])])
    assert isinstance(several.feature_map_, StandardScaler)
    fitted = StandardScaler().fit(X[:10])
    given_map = clone(several).set_params(feature_map=fitted).partial_fit(X, Y).solve()
    assert given_map.feature_map_ is not None
    np.testing.assert_array_equal(given_map.feature_map_.mean_, fitted.mean_)


@pytest.mark.parametrize("fitted", [False, True])
def test_missing_targets_in_batches(table, fitted):
    """The first batch may lack a target."""
    X, Y = table
    Y = np.where(np.random.default_rng(4).random(Y.shape) < 0.2, np.nan, Y)
    transform = PowerTransformer()
    transform = transform.fit(Y) if fitted else transform
    Y[:10, 1] = np.nan
    for model in models(target_transform=transform):
        for start in range(0, 50, 10):
            model.partial_fit(X[start : start + 10], Y[start : start + 10])
        lower, upper = model.predict_interval(X)
        assert np.isfinite(model.predict(X)).all()
        assert np.mean((lower <= Y) & (upper >= Y) | np.isnan(Y)) > 0.8
    assert np.isfinite(model.cv_rmse_).all()


def test_a_fitted_transformer_is_used_as_it_is_in_batches(table):
    X, Y = table
    fitted = PowerTransformer("box-cox").fit(Y)
    model = EntangledKernelRidge(target_transform=fitted).partial_fit(X[:1], Y[:1])
    assert model.target_transform_.transformer is fitted
    model.partial_fit(X[1:], Y[1:])
    hand = EntangledKernelRidge().fit(X, fitted.transform(Y))
    np.testing.assert_allclose(
        model.predict(X), fitted.inverse_transform(hand.predict(X)), rtol=1e-9
    )
    assert (
        EntangledKernelRidge(target_transform=fitted).fit(X, Y).target_transform_.transformer
        is not fitted
    )


def test_merging_needs_the_same_scale(table):
    X, Y = table
    first, second = (
        EntangledKernelRidge(target_transform="log").partial_fit(X[rows], Y[rows])
        for rows in (slice(0, 20), slice(20, 50))
    )
    whole = EntangledKernelRidge(target_transform="log").fit(X, Y)
    np.testing.assert_allclose(first.merge(second).predict(X), whole.predict(X), rtol=1e-9)
    with pytest.raises(ValueError, match="same fitted target_transform"):
        first.merge(EntangledKernelRidge().partial_fit(X, Y))


def test_a_checkpoint_is_of_one_scale(table, tmp_path):
    X, Y = table
    batches = [(X[:25], Y[:25]), (X[25:], Y[25:])]
    path = tmp_path / "state"
    model = EntangledKernelRidge(target_transform="log").fit_batches(batches, checkpoint=path)
    again = clone(model).fit_batches(batches, checkpoint=path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="checkpoint of another fit"):
        EntangledKernelRidge(target_transform="log1p").fit_batches(batches, checkpoint=path)
    with pytest.raises(ValueError, match="checkpoint of another fit"):
        EntangledKernelRidge().fit_batches(batches, checkpoint=path)


def test_dask_tables(table):
    dask = pytest.importorskip("dask.array")
    X, Y = table
    lazy = dask.from_array(X, chunks=(20, 4)), dask.from_array(Y, chunks=(20, 3))
    for transform in ("log", StandardScaler()):
        whole = EntangledKernelRidge(target_transform=transform).fit(X, Y)
        model = clone(whole).fit(*lazy)
        mean, std = model.predict(lazy[0], return_std=True)
        np.testing.assert_allclose(mean.compute(), whole.predict(X), rtol=1e-9)
        np.testing.assert_allclose(std.compute(), whole.predict(X, return_std=True)[1], rtol=1e-9)
    with pytest.raises(TypeError, match="tables in memory"):
        model.predict_mean(lazy[0])


@pytest.mark.parametrize("transform", ["log", {1: "log1p"}, PowerTransformer()], ids=str)
def test_model_files(table, tmp_path, transform):
    X, Y = table
    for model in models(target_transform=transform)[: 2 if transform == "log" else 1]:
        save_model(model.fit(X, Y), tmp_path / "model")
        same = load_model(tmp_path / "model")
        np.testing.assert_array_equal(same.predict(X), model.predict(X))
        np.testing.assert_array_equal(same.predict_interval(X), model.predict_interval(X))


@pytest.mark.parametrize(
    ("transform", "value", "message"),
    [
        ("log", 0.0, "got 0 in row 3 of y, target 'lead'; 'log1p' takes zeros"),
        ("log", -1.5, "got -1.5 in row 3 of y, target 'lead'"),
        ({"lead": "log1p"}, -1.5, "got -1.5 in row 3 of y, target 'lead'"),
    ],
)
def test_what_has_no_logarithm(table, transform, value, message):
    X, Y = table
    Y = pd.DataFrame(Y, columns=NAMES)
    good = EntangledKernelRidge(target_transform=transform).fit(X, Y)
    # Rows without a target are left out, and counted all the same.
    Y.iloc[0] = np.nan
    Y.iloc[2, 1] = value
    for model in models(target_transform=transform):
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y)
        with pytest.raises(ValueError, match=message):
            clone(model).partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"in row 3 of given, target 'lead'"):
        good.predict(X, given=Y)
    with pytest.raises(ValueError, match=r"in row 3 of given, target 'lead'"):
        good.predict_interval(X, given=Y)


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ("ln", "target_transform must be None, 'log', .* got 'ln'"),
        (np.log, "target_transform must be .* got ufunc"),
        ({"lead": StandardScaler()}, "target_transform must be .* got StandardScaler"),
        ({"gold": "log"}, r"must name targets, \['zinc', 'lead', 'tin'\], got 'gold'"),
    ],
)
def test_what_is_no_transform(table, transform, message):
    X, Y = table
    for model in models(target_transform=transform):
        with pytest.raises((ValueError, TypeError), match=message):
            model.fit(X, pd.DataFrame(Y, columns=NAMES))


def test_what_transformers_cannot_take(table):
    X, Y = table
    missing, zero = Y.copy(), Y.copy()
    missing[4, 1], zero[2, 1] = np.nan, 0.0

    def refused(message, transform, targets, *weight):
        with pytest.raises(ValueError, match=message), np.errstate(divide="ignore"):
            EntangledKernelRidge(target_transform=transform).fit(X, targets, *weight)

    forgets = FunctionTransformer(np.nan_to_num, inverse_func=np.asarray, check_inverse=False)
    narrow = FunctionTransformer(lambda Y: Y[:, :2], inverse_func=lambda Z: Z, check_inverse=False)
    refused(r"PCA does not accept y .*NaN", PCA(2), missing)
    refused(r"FunctionTransformer does not accept y .*NaN", forgets, missing)
    refused(r"refuses y: .*strictly positive", PowerTransformer("box-cox"), -Y)
    refused("gives no finite number for row 3 of y", LOG, zero)
    refused("target_transform=FunctionTransformer", narrow, Y)
    refused(r"PCA mixes .* each target by itself", PCA(2), Y)
    with pytest.raises(ValueError, match="PCA mixes"):
        EntangledKernelRidge(target_transform=PCA(2)).partial_fit(X, Y).solve()
