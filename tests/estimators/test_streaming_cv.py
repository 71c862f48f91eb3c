import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import PredefinedSplit, RepeatedKFold, ShuffleSplit
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.features import default_feature_maps
from entangled_kernels.streams import row_stream
from entangled_kernels.streams.row_stream import row_folds

GRID = {
    "alphas": np.logspace(-3, 3, 7),
    "param_grid": {"shrinkage": (0.0, 0.5), "target_alpha": (0.1, 1.0)},
}


def in_memory(model, X, Y, weight=None):
    """The fit on all rows, with the folds that a stream has."""
    folds = PredefinedSplit(row_folds(X, Y.reshape(len(Y), -1), model.cv))
    return clone(model).set_params(cv=folds).fit(X, Y, weight)


def assert_same_choice(model, whole):
    model.solve()
    whole.solve()
    assert model.best_params_ == whole.best_params_
    assert model.best_score_ == pytest.approx(whole.best_score_, rel=1e-9)
    scores = (model.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])
    np.testing.assert_allclose(*scores, rtol=1e-8)
    np.testing.assert_allclose(
        model.coef_, whole.coef_, rtol=1e-8, atol=1e-9 * np.abs(whole.coef_).max()
    )
    np.testing.assert_allclose(model.intercept_, whole.intercept_, rtol=1e-8, atol=1e-9)


# The grid is short, so that its ends are chosen now and then.
@pytest.mark.filterwarnings("ignore:the (smallest|largest) of the alphas:UserWarning")
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_any_split_gives_the_same_choice(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n, m, p = (
        data.draw(st.integers(60, 120)),
        data.draw(st.integers(1, 5)),
        data.draw(st.integers(1, 4)),
    )
    X = rng.normal(size=(n, m)) + rng.normal(size=m)
    Y = X @ rng.normal(size=(m, p)) + rng.normal(size=(n, p))
    weight = rng.uniform(0.1, 3.0, size=n) if data.draw(st.booleans()) else None
    model = EntangledKernelRidgeCV(
        None,
        fit_intercept=data.draw(st.booleans()),
        selection=data.draw(st.sampled_from(["best", "average"])),
        cv=3,
        **GRID,
    )
    cuts = np.sort(rng.integers(0, n + 1, size=data.draw(st.integers(0, 6))))
    for rows in np.split(rng.permutation(n), cuts):
        model.partial_fit(X[rows], Y[rows], None if weight is None else weight[rows])
    assert_same_choice(model, in_memory(model, X, Y, weight))


@pytest.mark.parametrize(
    "options",
    [
        {"selection": "one_se"},
        {"scoring": "mse"},
        {"param_grid": {"rank": (1, None)}},
        {"param_grid": {"solver": ("ascent",), "solver_params": ({"max_iter": 5},)}},
    ],
)
def test_all_ways_to_choose(make_rows, options):
    X, Y = make_rows(100, 4, 3)
    model = EntangledKernelRidgeCV(StandardScaler(), random_state=0, **GRID | options)
    whole = in_memory(model.set_params(feature_map=FrozenEstimator(StandardScaler().fit(X))), X, Y)
    model.set_params(feature_map=StandardScaler())
    for rows in np.array_split(np.arange(100), 3):
        model.partial_fit(X[rows], Y[rows])
    assert_same_choice(model, whole)
    mean, std = model.predict(X, return_std=True)
    whole_mean, whole_std = whole.predict(X, return_std=True)
    np.testing.assert_allclose(mean, whole_mean, rtol=1e-7)
    np.testing.assert_allclose(std, whole_std, rtol=1e-7)


def test_a_feature_map_is_chosen_on_the_first_rows(make_rows, rng, monkeypatch):
    """With "auto" it is the one of the maps for streams that fit chooses, and all else is from all rows."""
    X, Y = make_rows(120, 2, 1)
    Y = Y + 3.0 * np.sin(3.0 * X[:, :1]) + rng.normal(size=(120, 1))
    monkeypatch.setattr(row_stream, "FEATURE_SAMPLE", 60)
    grid = GRID | {"alphas": np.logspace(-4, 3, 8)}
    model = EntangledKernelRidgeCV(random_state=0, cv=3, **grid)
    for rows in np.array_split(np.arange(120), 9):
        model.partial_fit(X[rows], Y[rows])
    maps = default_feature_maps(0, streamed=True)
    sample = in_memory(EntangledKernelRidgeCV(maps, random_state=0, cv=3, **grid), X[:60], Y[:60])
    assert type(model.solve().feature_map_) is type(sample.best_estimator_.feature_map_)
    # Rows to come count as much as the first ones, however far they are.
    assert model.feature_map_.reach is None
    given = EntangledKernelRidgeCV(
        FrozenEstimator(model.feature_map_), random_state=0, cv=3, **grid
    )
    # A frozen map is not fitted again in the folds.
    assert_same_choice(model, in_memory(given, X, Y))


def test_files_merging_dask_and_checkpoints(make_rows, tmp_path):
    X, Y = make_rows(300, 4, 2)
    features = Nystroem(n_components=8, random_state=0).fit(X)
    make = lambda: EntangledKernelRidgeCV(features, **GRID)  # noqa: E731
    whole = make().partial_fit(X, Y)
    parts = [make().partial_fit(X[i::3], Y[i::3]) for i in range(3)]
    assert_same_choice(parts[0].merge(parts[1]).merge(parts[2]), whole)
    lazy = da.from_array(X, chunks=(70, 4))
    distributed = make().fit(lazy, Y)
    assert_same_choice(distributed, whole)
    np.testing.assert_allclose(distributed.predict(lazy).compute(), whole.predict(X), rtol=1e-9)
    batches = [(X[i : i + 30], Y[i : i + 30]) for i in range(0, 300, 30)]
    quiet = make().fit_batches(batches)
    assert_same_choice(quiet, whole)
    state = {"checkpoint": tmp_path / "state", "checkpoint_every": 2}
    make().fit_batches(batches[:5], **state)
    resumed = make().fit_batches(batches, **state)
    np.testing.assert_array_equal(resumed.coef_, quiet.coef_)
    with pytest.raises(ValueError, match="checkpoint of another fit"):
        make().set_params(cv=4).fit_batches(batches, **state)


def test_what_is_refused(make_rows):
    X, Y = make_rows(40, 3, 2)
    with pytest.raises(ValueError, match="cv must be a number of folds"):
        EntangledKernelRidgeCV(None, cv=ShuffleSplit(3)).partial_fit(X, Y)
    model = EntangledKernelRidgeCV(None, **GRID).fit(X, Y)
    with pytest.warns(UserWarning, match="partial_fit starts anew"):
        model.partial_fit(X[:30], Y[:30])
    assert model.n_samples_seen_ == 30
    same = EntangledKernelRidgeCV(None, **GRID).partial_fit(np.ones((5, 2)), np.ones(5))
    with pytest.raises(ValueError, match="cv must leave rows in at least 2 folds, got 1"):
        same.predict(np.ones((1, 2)))


@pytest.mark.filterwarnings("ignore:the (smallest|largest) of the alphas:UserWarning")
@pytest.mark.parametrize("repeats", [1, 2])
def test_search_in_blocks(make_rows, watched_features, repeats):
    """In memory too, features that take more than working_memory are made in blocks; nothing else changes."""
    X, Y = make_rows(9000, 3, 2)
    weight = np.linspace(0.0, 2.0, 9000)
    features, seen = watched_features
    folds = RepeatedKFold(n_splits=3, n_repeats=repeats, random_state=0)
    model = EntangledKernelRidgeCV(features, cv=folds, random_state=0, **GRID)
    whole = clone(model).fit(X, Y, weight)
    # One row, the first, has no weight and is left out.
    assert max(seen) == 8999
    seen.clear()
    with config_context(working_memory=1):
        blocked = clone(model).fit(X, Y, weight)
    assert max(seen) <= 4096
    assert blocked.n_splits_ == 3 * repeats
    assert_same_choice(blocked, whole)
    np.testing.assert_allclose(blocked.average_weights_, whole.average_weights_)
    # Both have residuals of some of the rows; those of the same rows are the same.
    some, every = blocked.model_.residuals, whole.model_.residuals
    assert len(some.row) < 9000
    assert (weight[1:][some.row] > 0.0).all()
    _, mine, theirs = np.intersect1d(some.row, every.row, return_indices=True)
    assert len(mine) > 100
    if repeats == 1:
        np.testing.assert_allclose(some.values[mine], every.values[theirs], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        np.diag(blocked.residual_covariance_), np.diag(whole.residual_covariance_), rtol=0.3
    )


def test_plain_columns_may_win_among_maps_in_a_stream_of_frames(make_rows):
    """Rows that wait as data frames become features when the map that wins is none."""
    X, Y = make_rows(60, 3, 2)
    inputs, targets = pd.DataFrame(X, columns=list("abc")), pd.DataFrame(Y, columns=list("yz"))
    maps = [Nystroem(gamma=50.0, n_components=5, random_state=0), None]
    model = EntangledKernelRidgeCV(maps, cv=3, random_state=0, **GRID)
    model.partial_fit(inputs[:30], targets[:30]).partial_fit(inputs[30:], targets[30:])
    predicted = model.predict(inputs)
    assert model.feature_map_ is None
    plain = EntangledKernelRidgeCV(None, cv=3, random_state=0, **GRID).partial_fit(inputs, targets)
    np.testing.assert_allclose(predicted, plain.predict(inputs), rtol=1e-9)
    more = model.partial_fit(inputs, targets).predict(inputs)
    np.testing.assert_allclose(more, plain.partial_fit(inputs, targets).predict(inputs), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:the (smallest|largest) of the alphas:UserWarning")
def test_a_map_is_chosen_where_rows_have_no_targets(make_rows):
    X, Y = make_rows(40, 2, 2)
    holes = np.vstack([np.full((5, 2), np.nan), Y])
    model = EntangledKernelRidgeCV(
        [None, StandardScaler()], cv=3, alphas=[0.1, 1.0], random_state=0
    )
    found = clone(model).partial_fit(np.vstack([X[:5] + 9.0, X]), holes).solve()
    assert np.isfinite(found.predict(X)).all()
