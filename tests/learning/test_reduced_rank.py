"""Predictions of reduced rank: ridge coefficients projected on a few directions of the targets."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.learning import (
    FitSettings,
    Moments,
    RowSample,
    fit_problem,
    leave_one_out,
    reduce_moments,
    reduce_rows,
)
from entangled_kernels.learning.missing import FILL_ALPHA

from reference import dense

SHAPES = [(20, 4, 6), (9, 14, 5), (12, 4, 30)]


def metric_of(fit):
    """The partial trace of the learned kernel over the outputs, divided by p."""
    m, p = fit.problem.n_features, fit.problem.n_outputs
    metric = np.zeros((m, m)) if fit.metric() is None else fit.metric()
    D = dense.partial_trace_kernel(dense.learned_matrix(fit.kraus(), metric), p)
    return D[::p, ::p]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shrinkage", [1.0, 0.3])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("way", ["rows", "moments"])
def test_against_the_dense_definition(make_rows, rng, shape, shrinkage, centred, weighted, way):
    Phi, Y = make_rows(*shape)
    weight = rng.uniform(0.2, 2.0, size=len(Y)) if weighted else None
    if way == "moments":
        problem = reduce_moments(Moments.from_arrays(Phi, Y, weight), centred=centred)
    else:
        problem, _ = reduce_rows(Phi, Y, weight, centred=centred)
    settings = FitSettings(alpha=0.8, shrinkage=shrinkage, prediction="reduced_rank", rank=2)
    fit = fit_problem(problem, settings)
    Z, A = rng.normal(size=(7, shape[1])), metric_of(fit)
    if shrinkage == 1.0:
        np.testing.assert_allclose(A, np.eye(shape[1]), atol=1e-12)
    expected = dense.reduced_rank_predict(Phi, Y, A, 0.8, 2, Z, weight, centred)
    np.testing.assert_allclose(fit.linear.predict(Z), expected, atol=1e-10 * np.abs(Y).max())
    values = np.linalg.svd(fit.linear.coef, compute_uv=False)
    assert values[2] < 1e-12 * values[0]


@pytest.mark.parametrize("rank", [None, 5, 1.0])
def test_all_directions_are_the_partial_trace(make_rows, rank):
    X, Y = make_rows(20, 4, 5)
    reduced = EntangledKernelRidge(prediction="reduced_rank", rank=rank).fit(X, Y)
    whole = EntangledKernelRidge(prediction="partial_trace").fit(X, Y)
    np.testing.assert_array_equal(reduced.predict(X), whole.predict(X))


def test_a_share_of_the_directions(make_rows):
    X, Y = make_rows(20, 6, 5)
    share = EntangledKernelRidge(prediction="reduced_rank", rank=0.4).fit(X, Y)
    count = EntangledKernelRidge(prediction="reduced_rank", rank=2).fit(X, Y)
    np.testing.assert_array_equal(share.coef_, count.coef_)
    assert np.linalg.matrix_rank(share.coef_) == 2


def test_more_directions_than_targets_are_an_error(make_rows):
    X, Y = make_rows(20, 4, 3)
    model = EntangledKernelRidge(prediction="reduced_rank", rank=4)
    with pytest.raises(ValueError, match="the number of targets, 3"):
        model.fit(X, Y)
    search = EntangledKernelRidgeCV(
        None, param_grid={"prediction": ["reduced_rank"], "rank": [4]}, random_state=0
    )
    with pytest.raises(ValueError, match="the number of targets, 3"):
        search.fit(X, Y)


@pytest.mark.parametrize("shrinkage", [1.0, 0.25])
def test_streams_are_fits_of_all_rows(make_rows, rng, shrinkage):
    X, Y = make_rows(60, 4, 6)
    weight = rng.uniform(0.5, 2.0, size=60)
    model = EntangledKernelRidge(shrinkage=shrinkage, prediction="reduced_rank", rank=2)
    streamed = EntangledKernelRidge(shrinkage=shrinkage, prediction="reduced_rank", rank=2)
    for rows in np.array_split(rng.permutation(60), 5):
        streamed.partial_fit(X[rows], Y[rows], weight[rows])
    model.fit(X, Y, weight)
    for option in ({}, {"return_std": True}):
        np.testing.assert_allclose(
            streamed.predict(X, **option), model.predict(X, **option), rtol=1e-8
        )


def test_streams_and_dask_tables_in_a_search(rng):
    X = rng.normal(size=(120, 5))
    Y = X[:, :2] @ rng.normal(size=(2, 8)) + rng.normal(size=(120, 8))
    grid = {"shrinkage": [1.0], "prediction": ["reduced_rank"], "rank": [1, 2, 3]}
    model = EntangledKernelRidgeCV(None, param_grid=grid, selection="best", random_state=0)
    for rows in np.split(np.arange(120), 4):
        model.partial_fit(X[rows], Y[rows])
    assert model.solve().best_params_["rank"] == 2
    assert np.linalg.matrix_rank(model.coef_) == 2
    array = pytest.importorskip("dask.array")
    tables = array.from_array(X, chunks=(30, 5)), array.from_array(Y, chunks=(30, 8))
    plain = EntangledKernelRidge(prediction="reduced_rank", rank=2)
    expected = plain.fit(X, Y).coef_
    np.testing.assert_allclose(plain.fit(*tables).coef_, expected, atol=1e-10)


@pytest.mark.parametrize("centred", [True, False])
def test_missing_targets(make_rows, rng, centred):
    """Ridge to the targets that are present, in directions of the targets that were filled in."""
    X, Y = make_rows(40, 3, 5)
    missing = rng.random(Y.shape) < 0.3
    missing[:2] = False
    X, Y = X[~missing.all(axis=1)], np.where(missing, np.nan, Y)[~missing.all(axis=1)]
    model = EntangledKernelRidge(
        alpha=0.7, shrinkage=1.0, prediction="reduced_rank", rank=2, fit_intercept=centred
    ).fit(X, Y)
    coef, filled = np.empty((5, 3)), Y.copy()
    for o, target in enumerate(Y.T):
        rows = np.isfinite(target)
        Phi = X[rows] - X[rows].mean(axis=0) if centred else X[rows]
        coef[o] = Ridge(0.7, fit_intercept=centred).fit(X[rows], target[rows]).coef_
        alpha = FILL_ALPHA * np.sum(Phi**2) / 3
        filler = Ridge(alpha, fit_intercept=centred).fit(X[rows], target[rows])
        filled[~rows, o] = filler.predict(X[~rows])
    V = dense.leading_directions(X, filled, np.eye(3), 0.7, 2, None, centred)
    np.testing.assert_allclose(model.coef_, V @ V.T @ coef, atol=1e-10)
    assert np.isfinite(model.predict(X, return_std=True)[1]).all()


def test_residuals_without_a_row_where_targets_are_missing(make_rows, rng):
    """Nearly those of fits without the row, in the same directions."""
    X, Y = make_rows(40, 4, 5)
    Y = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
    settings = FitSettings(shrinkage=1.0, prediction="reduced_rank", rank=2)
    fit = fit_problem(reduce_rows(X, Y, None, centred=True)[0], settings)
    sample = RowSample.of(X, Y, np.arange(40, dtype=np.uint64))
    found, expected = leave_one_out(fit, sample).values, np.full(Y.shape, np.nan)
    V = fit.posterior.unit.directions
    for i in range(40):
        coef, intercept = np.empty((5, 4)), np.empty(5)
        for o, target in enumerate(Y.T):
            rows = np.isfinite(target) & (np.arange(40) != i)
            peer = Ridge(1.0).fit(X[rows], target[rows])
            coef[o], intercept[o] = peer.coef_, target[rows].mean()
        coef = V @ V.T @ coef
        for o, target in enumerate(Y.T):
            rows = np.isfinite(target) & (np.arange(40) != i)
            expected[i, o] = target[i] - intercept[o] - coef[o] @ (X[i] - X[rows].mean(axis=0))
    present = np.isfinite(Y)
    difference = np.linalg.norm((found - expected)[present])
    assert difference < 0.05 * np.linalg.norm(expected[present])


def test_few_directions_predict_better_where_the_truth_has_few(rng):
    X, directions = rng.normal(size=(60, 20)), rng.normal(size=(2, 30))
    truth = X[:, :2] @ directions
    Y = truth + 2.0 * rng.normal(size=truth.shape)
    search = {"random_state": 0, "selection": "best"}
    ridge = EntangledKernelRidgeCV(None, param_grid={"shrinkage": [1.0]}, **search).fit(X, Y)
    grid = {"shrinkage": [1.0], "prediction": ["reduced_rank"], "rank": [1, 2, 4]}
    reduced = EntangledKernelRidgeCV(None, param_grid=grid, **search).fit(X, Y)
    errors = [np.mean((model.predict(X) - truth) ** 2) for model in (reduced, ridge)]
    assert reduced.best_params_["rank"] == 2
    assert errors[0] < 0.6 * errors[1]


def test_all_that_a_model_does(make_rows):
    """Intervals, given targets and explanations of a search that tries reduced ranks."""
    X, Y = make_rows(30, 4, 5)
    grid = {"prediction": ["reduced_rank"], "rank": [1, 2], "shrinkage": [0.5, 1.0]}
    model = EntangledKernelRidgeCV(StandardScaler(), param_grid=grid, random_state=0).fit(X, Y)
    given = np.full(Y.shape, np.nan)
    given[:, 0] = Y[:, 0]
    low, high = model.predict_interval(X, given=given)
    assert (low <= high).all()
    assert np.isfinite(model.explain(X).noise).all()
    best = model.best_estimator_
    assert np.linalg.matrix_rank(best.coef_, tol=1e-9) == best.rank
