"""Missing targets, and weights of single targets: the same for every estimator and way to fit."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import StandardScaler

from entangled_kernels import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    MultipleKernelRidge,
    MultiViewKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from entangled_kernels.learning.missing import FILL_ALPHA

from reference import cells as dense
from reference.dense import closed_form, learned_matrix, rescale

SMALL = {
    "random_state": 0,
    "param_grid": {"shrinkage": (0.5, 1.0), "alignment_mix": (0.5,), "target_alpha": (0.1,)},
}
ESTIMATORS = {
    "plain": EntangledKernelRidge(alpha=0.5),
    "ascent": EntangledKernelRidge(solver="ascent", rank=3, solver_params={"max_iter": 10}),
    "partial trace": EntangledKernelRidge(StandardScaler(), prediction="partial_trace"),
    "no intercept": EntangledKernelRidge(fit_intercept=False),
    "search": EntangledKernelRidgeCV(None, **SMALL),
    "search with maps": EntangledKernelRidgeCV(
        [StandardScaler(), EvidenceFeatures(max_rows=20, random_state=0)], cv=2, **SMALL
    ),
    "output kernel": OutputKernelRidge("rbf", alpha=0.3),
    "output kernel in a ball": OutputKernelRidge(
        penalty="trace", constraint=True, fit_intercept=False
    ),
    "output kernel of rank one": OutputKernelRidge("rbf", rank=1),
    "output kernel search": OutputKernelRidgeCV("rbf", cv=2),
    "output kernels of two kernels": MultipleKernelRidge(output_kernel="own"),
    "outputs by two kernels": MultipleKernelRidge(
        output_kernel="diagonal", norm=2.0, fit_intercept=False
    ),
    "outputs of two views": MultiViewKernelRidge({"first": [0, 1], "second": [2, 3]}),
}
# Kernels that are learned, without a stream.
LEARNERS = [name for name in ESTIMATORS if name.startswith("output")]


@pytest.fixture
def holes(make_rows, rng):
    X, Y = make_rows(40, 4, 3)
    missing = rng.random(Y.shape) < 0.35
    missing[:3] = missing[missing.all(axis=1)] = False
    return X, Y, np.where(missing, np.nan, Y)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_row_without_targets_changes_nothing(holes, name):
    X, _, Y = holes
    extra = np.vstack([X[:5], np.full((1, 4), 1e3), X[5:], np.zeros((1, 4))])
    more = np.vstack([Y[:5], np.full((1, 3), np.nan), Y[5:], np.full((1, 3), np.nan)])
    left, right = clone(ESTIMATORS[name]).fit(X, Y), clone(ESTIMATORS[name]).fit(extra, more)
    # A copy, since scikit-learn takes the distances between an array and itself apart.
    rows = X.copy()
    np.testing.assert_array_equal(left.predict(rows), right.predict(rows))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_target_with_missing_values_is_rows_dropped(holes, name):
    X, _, Y = holes
    kept = np.isfinite(Y[:, 0])
    left, right = clone(ESTIMATORS[name]), clone(ESTIMATORS[name])
    if name == "ascent":
        left.rank = right.rank = 1
    left.fit(X, Y[:, 0]), right.fit(X[kept], Y[kept, 0])
    np.testing.assert_array_equal(left.predict(X), right.predict(X))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_equal_weights_of_cells_are_weights_of_rows(holes, rng, name):
    X, Y, _ = holes
    weight = rng.uniform(0.5, 2.0, size=40)
    left = clone(ESTIMATORS[name]).fit(X, Y, weight)
    right = clone(ESTIMATORS[name]).fit(X, Y, np.repeat(weight[:, None], 3, axis=1))
    np.testing.assert_array_equal(left.predict(X), right.predict(X))
    right = clone(ESTIMATORS[name]).fit(X, Y, np.ones_like(Y))
    np.testing.assert_array_equal(clone(ESTIMATORS[name]).fit(X, Y).predict(X), right.predict(X))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_target_of_no_weight_is_missing(holes, name):
    X, Y, spoilt = holes
    weight = np.isfinite(spoilt).astype(float)
    left = clone(ESTIMATORS[name]).fit(X, spoilt)
    right = clone(ESTIMATORS[name]).fit(X, np.where(weight > 0, Y, 1e6), weight)
    np.testing.assert_allclose(left.predict(X), right.predict(X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["plain", "ascent", "partial trace", "no intercept"])
@pytest.mark.parametrize("weighted", [False, True])
def test_missing_targets_in_batches_are_those_of_the_table(holes, rng, name, weighted):
    X, _, Y = holes
    weight = rng.uniform(0.5, 2.0, size=Y.shape) if weighted else None
    model = clone(ESTIMATORS[name]).set_params(feature_map=None)
    whole = clone(model).fit(X, Y, weight)
    for rows in np.array_split(np.arange(40), 7):
        model.partial_fit(X[rows], Y[rows], None if weight is None else weight[rows])
    assert model.n_samples_seen_ == 40
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-8)
    np.testing.assert_allclose(model.residual_covariance_, whole.residual_covariance_, rtol=1e-6)


@pytest.mark.parametrize("cuts", [(7,), (1, 2, 30), (13, 14)])
def test_a_search_in_batches_does_not_depend_on_them(holes, cuts):
    X, _, Y = holes
    model, whole = (EntangledKernelRidgeCV(None, cv=3, **SMALL) for _ in range(2))
    for rows in np.split(np.arange(40), cuts):
        model.partial_fit(X[rows], Y[rows])
    whole.partial_fit(X, Y)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-8)
    np.testing.assert_allclose(model.residual_covariance_, whole.residual_covariance_, rtol=1e-6)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("prediction", ["entangled", "partial_trace"])
@pytest.mark.parametrize("shrinkage", [0.3, 1.0])
def test_the_definition_written_out(holes, centred, prediction, shrinkage):
    """Kernel of the closed form on filled targets, ridge over measured values."""
    X, _, spoilt = holes
    weight = np.isfinite(spoilt).astype(float)
    model = EntangledKernelRidge(
        alignment_mix=0.5,
        shrinkage=shrinkage,
        target_alpha=0.2,
        alpha=0.7,
        prediction=prediction,
        fit_intercept=centred,
    ).fit(X, spoilt)
    filled = dense.filled_targets(
        X, np.nan_to_num(spoilt), weight, FILL_ALPHA, fit_intercept=centred
    )
    D = closed_form(X, filled, 0.5, 0.2, shrinkage, fit_intercept=centred)
    A = X - X.mean(axis=0) if centred else X
    D = rescale(D, A.T @ A, 3)
    np.testing.assert_allclose(learned_matrix(model.kraus_, model.metric_), D, atol=1e-8)
    if prediction == "partial_trace":
        D = np.kron(np.einsum("fogo->fg", D.reshape(4, 3, 4, 3)) / 3, np.eye(3))
    coef, intercept, _ = dense.observed_ridge(X, np.nan_to_num(spoilt), weight, D, 0.7, centred)
    np.testing.assert_allclose(model.coef_, coef, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, intercept, atol=1e-8)


def test_kernel_ridge_takes_each_target_from_its_measured_rows(holes):
    X, _, Y = holes
    features = Nystroem(n_components=15, random_state=0).fit(X)
    model = EntangledKernelRidge(FrozenEstimator(features), shrinkage=1.0, alpha=0.3).fit(X, Y)
    Phi = features.transform(X)
    for o in range(3):
        kept = np.isfinite(Y[:, o])
        alone = EntangledKernelRidge(shrinkage=1.0, alpha=0.3).fit(Phi[kept], Y[kept, o])
        np.testing.assert_allclose(model.predict(X)[:, o], alone.predict(Phi), atol=1e-7)


@pytest.mark.parametrize("name", ["plain", "search", "output kernel", "outputs of two views"])
def test_what_is_refused(holes, name):
    X, _, Y = holes
    never = pd.DataFrame(np.where([True, False, True], Y, np.nan), columns=["zinc", "lead", "tin"])
    for targets, weight, message in (
        (never, None, r"only missing values .* in column 'lead'"),
        (np.full_like(Y, np.nan), None, r"\(NaN\) only"),
        (np.where([True, False, True], Y, np.inf), None, r"contains infinity .* in column 1"),
        (Y, np.zeros_like(Y), "sample_weight must be positive for at least one measured"),
        (Y, -np.ones_like(Y), "not negative"),
        (Y, np.ones((40, 2)), r"got shape \(40, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(ESTIMATORS[name]).fit(X, targets, weight)
    if hasattr(ESTIMATORS[name], "partial_fit"):
        with pytest.raises(ValueError, match=r"only missing values .* in column 'lead'"):
            clone(ESTIMATORS[name]).partial_fit(X, never).solve()


def test_missing_targets_are_worth_less_than_measurements_and_more_than_nothing():
    """Half of them missing: better than each target from its rows alone, worse than complete data."""
    ratios, complete = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for seed in range(6):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(260, 4))
            common, single = rng.normal(size=(260, 1)), rng.normal(size=(260, 4))
            Y = X @ rng.normal(size=(4, 4)) + np.sqrt(0.9) * common + np.sqrt(0.1) * single
            train, test = np.arange(40), np.arange(40, 260)
            holes = np.where(rng.random((40, 4)) < 0.5, np.nan, Y[train])
            own = [EntangledKernelRidgeCV(None, **SMALL) for _ in range(4)]
            alone = np.column_stack(
                [
                    model.fit(X[train][np.isfinite(y)], y[np.isfinite(y)]).predict(X[test])
                    for model, y in zip(own, holes.T, strict=True)
                ]
            )
            errors = [
                np.mean((values - Y[test]) ** 2)
                for values in (
                    EntangledKernelRidgeCV(None, **SMALL).fit(X[train], holes).predict(X[test]),
                    alone,
                    EntangledKernelRidgeCV(None, **SMALL).fit(X[train], Y[train]).predict(X[test]),
                )
            ]
            ratios.append(errors[0] / errors[1])
            complete.append(errors[2] / errors[0])
    assert np.mean(ratios) < 0.97
    assert np.mean(complete) < 1.0
