import contextlib
import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.streams import row_stream


def assert_same_fit(model, whole, rtol=1e-9):
    model.solve()
    for name in ("coef_", "intercept_", "noise_variance_"):
        expected = getattr(whole, name)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(
            getattr(model, name), expected, rtol=rtol, atol=rtol * scale, err_msg=name
        )
    np.testing.assert_allclose(model.alignment_terms_, whole.alignment_terms_, rtol=rtol)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_split_in_any_order(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n, m, p = (
        data.draw(st.integers(2, 60)),
        data.draw(st.integers(1, 8)),
        data.draw(st.integers(1, 5)),
    )
    n = max(n, m + p + 2)
    X = rng.normal(size=(n, m)) + rng.normal(size=m)
    Y = X @ rng.normal(size=(m, p)) + rng.normal(size=(n, p))
    weight = rng.uniform(0.1, 3.0, size=n) if data.draw(st.booleans()) else None
    model = EntangledKernelRidge(
        fit_intercept=data.draw(st.booleans()),
        prediction=data.draw(st.sampled_from(["entangled", "partial_trace"])),
    )
    whole = clone(model).fit(X, Y, weight)
    cuts = np.sort(rng.integers(0, n + 1, size=data.draw(st.integers(0, 10))))
    for rows in np.split(rng.permutation(n), cuts):
        model.partial_fit(X[rows], Y[rows], None if weight is None else weight[rows])
    assert_same_fit(model, whole)


@pytest.mark.parametrize("solver", ["closed-form", "ascent", "lbfgs"])
@pytest.mark.parametrize("shape", [(30, 5, 3), (8, 12, 2), (7, 3, 11), (6, 9, 8)])
def test_wide_streams(make_rows, solver, shape):
    """More columns than rows work from moments as they do from compressed rows."""
    X, Y = make_rows(*shape)
    model = EntangledKernelRidge(solver=solver, solver_params={"max_iter": 20})
    whole = clone(model).fit(X, Y)
    for x, y in zip(X, Y, strict=True):
        model.partial_fit(x[None], y[None])
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-7 * np.abs(Y).max())
    assert model.full_rank_ == whole.full_rank_


def test_solved_when_used(make_rows):
    X, Y = make_rows(40, 4, 2)
    model = EntangledKernelRidge(StandardScaler())
    for rows in np.array_split(np.arange(40), 5):
        model.partial_fit(X[rows], Y[rows])
    names = [name for name in dir(EntangledKernelRidge) if name.endswith("_") and name[0] != "_"]
    names = [name for name in names if name not in ("n_samples_seen_",)]
    assert len(names) > 15
    assert not any(hasattr(model, name) or hasattr(EntangledKernelRidge(), name) for name in names)
    with pytest.raises(AttributeError, match=r"no attribute 'alignment_' yet; call solve\(\)"):
        model.alignment_  # noqa: B018
    assert model.predict(X).shape == (40, 2)
    assert all(getattr(model, name) is not None for name in names if name != "target_transform_")
    # What is solved stays so until more rows come.
    assert model.model_ is model.solve().model_
    again = pickle.loads(pickle.dumps(model.partial_fit(X[:1], Y[:1])))
    assert not hasattr(model, "alignment_")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_one_row_is_too_few(make_rows):
    X, Y = make_rows(3, 2, 2)
    model = EntangledKernelRidge()
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.partial_fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match=r"at least 2 rows .* got 1"):
        model.predict(X)
    model.partial_fit(X[1:], Y[1:])
    np.testing.assert_allclose(
        model.solve().coef_, EntangledKernelRidge().fit(X, Y).coef_, rtol=1e-9
    )


def test_empty_batches_and_rows_of_no_weight(make_rows):
    X, Y = make_rows(20, 3, 2)
    model = EntangledKernelRidge().partial_fit(X[:0], Y[:0])
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.partial_fit(X[:10], Y[:10]).partial_fit(X[:0], Y[:0]).partial_fit(
        X[:5], Y[:5], np.zeros(5)
    )
    model.partial_fit(X[10:], Y[10:], 1.0).partial_fit([], [])
    assert_same_fit(model, EntangledKernelRidge().fit(X, Y))
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(X[:0, :2], Y[:0])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_are_checked_between_batches(make_rows, frame):
    X, Y = make_rows(40, 3, 2)
    table = lambda rows, names: frame(dict(zip(names, rows.T, strict=True)))  # noqa: E731
    model = EntangledKernelRidge(StandardScaler())
    for part in (slice(0, 25), slice(25, 40)):
        model.partial_fit(table(X[part], "abc"), table(Y[part], "yz"))
    assert_same_fit(model, EntangledKernelRidge(StandardScaler()).fit(X, Y))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert list(model.target_names_) == ["y", "z"]
    before = model.predict(table(X, "abc"))
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(table(X, "acb"), table(Y, "yz"))
    with pytest.raises(ValueError, match=r"columns it had before, \['y', 'z'\], got \['z', 'y'\]"):
        model.partial_fit(table(X, "abc"), table(Y, "zy"))
    np.testing.assert_array_equal(model.predict(table(X, "abc")), before)


@pytest.mark.parametrize(
    ("X", "y", "weight", "message"),
    [
        ([[1.0, np.nan]], [[1.0, 2.0]], None, "NaN"),
        ([[1.0, np.inf]], [[1.0, 2.0]], None, "infinity"),
        ([[1.0, 2.0, 3.0]], [[1.0, 2.0]], None, "2 features"),
        ([[1.0, 2.0]], [[1.0, np.inf]], None, "y contains infinity"),
        ([[1.0, 2.0]], [[1.0, 2.0, 3.0]], None, "2 columns it had before, got 3"),
        ([[1.0, 2.0]], [1.0], None, "as many dimensions as before, 2, got 1"),
        ([[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]], None, "inconsistent numbers of samples"),
        ([[1.0, 2.0]], [[1.0, 2.0]], [-1.0], "sample_weight must be finite and not negative"),
        ([[1e200, 2.0]], [[1.0, 2.0]], None, "values between"),
    ],
)
@pytest.mark.parametrize("feature_map", [None, StandardScaler()])
def test_a_refused_batch_changes_nothing(make_rows, feature_map, X, y, weight, message):
    rows, Y = make_rows(20, 2, 2)
    model = EntangledKernelRidge(feature_map).partial_fit(rows, Y)
    if feature_map is not None:
        assert model.solve().feature_map_ is not None
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, weight)
    assert_same_fit(model, EntangledKernelRidge(feature_map).fit(rows, Y))


def test_a_first_batch_may_be_refused(make_rows):
    X, Y = make_rows(20, 3, 2)
    model = EntangledKernelRidge()
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit([[np.nan, 1.0]], [1.0])
    assert_same_fit(model.partial_fit(X, Y), EntangledKernelRidge().fit(X, Y))
    # Also when it is the feature map that does not take it.
    scaler = StandardScaler().fit(X)
    scaled = EntangledKernelRidge(scaler)
    with pytest.raises(ValueError, match="expecting 3 features"):
        scaled.partial_fit(X[:, :2], Y)
    assert_same_fit(
        scaled.partial_fit(X, Y), EntangledKernelRidge(FrozenEstimator(scaler)).fit(X, Y)
    )


def test_partial_fit_goes_on_after_fit(make_rows):
    X, Y = make_rows(60, 4, 2)
    model = EntangledKernelRidge().fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:])
    assert_same_fit(model, EntangledKernelRidge().fit(X, Y))
    assert_same_fit(model.fit(X[:30], Y[:30]), EntangledKernelRidge().fit(X[:30], Y[:30]))
    wide = EntangledKernelRidge().fit(X[:3], Y[:3])
    with pytest.warns(UserWarning, match="partial_fit starts anew: fit kept no moments") as told:
        wide.partial_fit(X, Y)
    assert told[0].filename == __file__
    assert_same_fit(wide, EntangledKernelRidge().fit(X, Y))


@pytest.mark.parametrize("size", [1, 7, 100])
def test_feature_map_is_fitted_on_the_first_rows(make_rows, monkeypatch, size):
    """However the rows are cut, the map is fitted on the same sample."""
    monkeypatch.setattr(row_stream, "FEATURE_SAMPLE", 25)
    X, Y = make_rows(100, 3, 2)
    weight = np.linspace(0.5, 2.0, 100)
    features = make_pipeline(StandardScaler(), Nystroem(n_components=10, random_state=0))
    model = EntangledKernelRidge(features)
    for start in range(0, 100, size):
        part = slice(start, start + size)
        model.partial_fit(X[part], Y[part], weight[part])
    given = FrozenEstimator(clone(features).fit(X[:25], Y[:25]))
    assert_same_fit(model, EntangledKernelRidge(given).fit(X, Y, weight))
    assert model.feature_map is features


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_rows_that_wait_survive_a_refused_batch(make_rows, monkeypatch, bad):
    """StandardScaler lets missing values through, so they are found when it is fitted, on 50 rows."""
    monkeypatch.setattr(row_stream, "FEATURE_SAMPLE", 50)
    X, Y = make_rows(60, 3, 2)
    model, errors = EntangledKernelRidge(StandardScaler()), []
    for number, part in enumerate(np.split(np.arange(60), 3)):
        if number == bad:
            with pytest.raises(ValueError, match="infinity"):
                model.partial_fit(np.full((30, 3), np.inf), np.zeros((30, 2)))
            try:
                model.partial_fit(np.full((10, 3), np.nan), np.zeros((10, 2)))
            except ValueError as error:
                errors.append(str(error))
        try:
            model.partial_fit(X[part], Y[part])
        except ValueError as error:
            # The call failed, so its rows are not taken in.
            errors.append(str(error))
            model.partial_fit(X[part], Y[part])
    assert len(errors) == 1
    assert "NaN" in errors[0]
    # Of two good batches and the bad one the newest is the bad one, or a good one that waits no
    # longer.
    assert ("are refused, and left out" in errors[0]) == (bad < 2)
    given = FrozenEstimator(StandardScaler().fit(X[:50]))
    assert_same_fit(model, EntangledKernelRidge(given).fit(X, Y))


def test_sparse_and_mixed_tables(make_rows):
    X, Y = make_rows(40, 4, 2)
    sparse = csr_array(np.where(X > 0.5, X, 0.0))
    features = StandardScaler(with_mean=False)
    model = (
        EntangledKernelRidge(features)
        .partial_fit(sparse[:30], Y[:30])
        .partial_fit(sparse[30:], Y[30:])
    )
    assert_same_fit(model, EntangledKernelRidge(features).fit(sparse, Y))

    table = pd.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 0, "round", "square")})
    features = ColumnTransformer(
        [("a", StandardScaler(), ["size"]), ("b", OneHotEncoder(), ["kind"])]
    )
    model = (
        EntangledKernelRidge(features)
        .partial_fit(table[:30], Y[:30])
        .partial_fit(table[30:], Y[30:])
    )
    assert_same_fit(model, EntangledKernelRidge(features).fit(table, Y))


def test_merge(make_rows):
    X, Y = make_rows(90, 4, 2)
    features = StandardScaler().fit(X)
    parts = [EntangledKernelRidge(features).partial_fit(X[i::3], Y[i::3]) for i in range(3)]
    before = parts[1].predict(X)
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert_same_fit(merged, EntangledKernelRidge(FrozenEstimator(features)).fit(X, Y))
    np.testing.assert_array_equal(parts[1].predict(X), before)
    fitted = (
        EntangledKernelRidge().fit(X[:50], Y[:50]).merge(EntangledKernelRidge().fit(X[50:], Y[50:]))
    )
    assert_same_fit(fitted, EntangledKernelRidge().fit(X, Y))


def test_merge_needs_estimators_alike(make_rows):
    X, Y = make_rows(30, 4, 2)
    model = EntangledKernelRidge().fit(X, Y)
    with pytest.raises(TypeError, match="other must be of type EntangledKernelRidge, got Ridge"):
        model.merge(Ridge())
    with pytest.raises(NotFittedError, match="other has seen no rows"):
        model.merge(EntangledKernelRidge())
    with pytest.raises(NotFittedError, match="this estimator has seen no rows"):
        EntangledKernelRidge().merge(model)
    with pytest.raises(ValueError, match="same n_features_in_"):
        model.merge(EntangledKernelRidge().fit(X[:, :3], Y))
    with pytest.raises(ValueError, match="same number of targets"):
        model.merge(EntangledKernelRidge().fit(X, Y[:, :1]))
    with pytest.raises(ValueError, match="other must be another estimator"):
        model.merge(model)
    assert model.n_samples_seen_ == 30
    with pytest.raises(ValueError, match="kept no moments to merge"):
        EntangledKernelRidge().fit(X[:3], Y[:3]).merge(model)
    scaled = EntangledKernelRidge(StandardScaler())
    with pytest.raises(ValueError, match="same fitted feature_map"):
        clone(scaled).partial_fit(X[:15], Y[:15]).merge(clone(scaled).partial_fit(X[15:], Y[15:]))


def test_features_in_blocks(make_rows, watched_features):
    """More features than working_memory allows are never there at once; nothing else changes."""
    X, Y = make_rows(9000, 3, 2)
    weight = np.linspace(0.0, 2.0, 9000)
    features, seen = watched_features
    whole = EntangledKernelRidge(features).fit(X, Y, weight)
    # One row has no weight.
    assert max(seen) == 8999
    mean, std = whole.predict(X, return_std=True)
    seen.clear()
    with config_context(working_memory=1):
        model = EntangledKernelRidge(features).fit(X, Y, weight)
        assert_same_fit(model, whole)
        blocked_mean, blocked_std = model.predict(X, return_std=True)
    np.testing.assert_allclose(blocked_mean, mean, rtol=1e-9)
    np.testing.assert_allclose(blocked_std, std, rtol=1e-9)
    assert max(seen) == 4096


@pytest.mark.parametrize("Estimator", [EntangledKernelRidge, EntangledKernelRidgeCV])
def test_use_before_there_are_enough_rows_loses_none(make_rows, Estimator):
    X, Y = make_rows(12, 3, 2)
    model = Estimator(StandardScaler()).partial_fit(X[:1], Y[:1])
    assert not hasattr(model, "coef_")
    for row in range(1, 12):
        # Of two rows all large alphas predict the mean, and rounding decides whether the largest is
        # best.
        with contextlib.suppress(ValueError), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the largest of the alphas was chosen")
            model.predict(X)
        model.partial_fit(X[row : row + 1], Y[row : row + 1])
    assert model.n_samples_seen_ == 12
    # A map is fitted on the rows that there are when the model is first used.
    given = Estimator(clone(model.feature_map_)).set_params(feature_map=model.feature_map_)
    np.testing.assert_allclose(model.predict(X), given.partial_fit(X, Y).predict(X), rtol=1e-9)
    assert model.feature_map_.n_samples_seen_ < 12


def test_containers_may_change_while_rows_wait(make_rows):
    X, Y = make_rows(90, 3, 2)
    tables = [
        pd.DataFrame(X[:30], columns=list("abc")),
        X[30:60],
        pl.DataFrame(X[60:], schema=list("abc")),
    ]
    whole = EntangledKernelRidge(StandardScaler()).fit(X, Y)
    for order in ([0, 1, 2], [1, 0, 2], [2, 0, 1]):
        model = EntangledKernelRidge(StandardScaler())
        with warnings.catch_warnings():
            # An array after a data frame has no names of columns, of which scikit-learn warns.
            warnings.simplefilter("ignore")
            for place in order:
                model.partial_fit(tables[place], Y[30 * place : 30 * place + 30])
            assert_same_fit(model, whole)


def test_folds_may_not_change_in_a_stream(make_rows):
    X, Y = make_rows(40, 4, 2)
    model = EntangledKernelRidgeCV(None, cv=3).partial_fit(X, Y)
    with pytest.raises(ValueError, match="cv must stay at the 3 folds"):
        model.set_params(cv=5).partial_fit(X, Y)


FADING = [
    EntangledKernelRidge(alpha=0.5),
    EntangledKernelRidge(StandardScaler()),
    EntangledKernelRidgeCV(StandardScaler(), cv=3, alphas=np.logspace(-5, 3, 9), random_state=0),
]


@pytest.mark.parametrize("model", FADING, ids=["columns", "scaled", "search"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("cuts", [[1, 2, 40], [90], [30, 30, 60]])
def test_forgetting_is_refitting_with_fading_weights(make_rows, model, missing, cuts):
    X, Y = make_rows(120, 4, 3)
    own = np.random.default_rng(1).uniform(0.5, 2.0, size=120)
    if missing:
        Y[::4, 1] = np.nan
    forget = 0.97
    # The feature map sees the rows with the weights they have when it is fitted, so it is given.
    if model.feature_map is not None:
        model = clone(model).set_params(feature_map=FrozenEstimator(StandardScaler().fit(X)))
    streamed, whole = clone(model), clone(model)
    edges = [0, *cuts, 120]
    for start, stop in itertools.pairwise(edges):
        streamed.partial_fit(X[start:stop], Y[start:stop], own[start:stop], forget=forget)
    streamed.solve()
    whole.partial_fit(X, Y, own * forget ** np.arange(119, -1, -1.0)).solve()
    for one, other in (
        (streamed.coef_, whole.coef_),
        (streamed.intercept_, whole.intercept_),
        (streamed.predict(X), whole.predict(X)),
    ):
        assert np.abs(one - other).max() <= 1e-9 * np.abs(other).max()
    assert streamed.n_samples_seen_ == 120


@pytest.mark.parametrize("forget", [0.0, 1.5, -1.0, np.nan, "much"])
def test_forget_is_a_share(make_rows, forget):
    X, Y = make_rows(10, 3, 2)
    with pytest.raises(
        (TypeError, ValueError), match="forget must be a number above 0 and at most 1, got"
    ):
        EntangledKernelRidge().partial_fit(X, Y, forget=forget)


@pytest.mark.parametrize("feature_map", [None, StandardScaler()], ids=["columns", "waiting"])
@pytest.mark.parametrize("cuts", [[], [590], [100, 101, 300]])
def test_rows_that_faded_do_not_calibrate_however_they_are_cut(feature_map, cuts, rng):
    X, Y = rng.normal(size=(600, 3)), rng.normal(size=(600, 2))
    Y[:500] *= 100.0
    model = EntangledKernelRidge(feature_map)
    for rows in np.split(np.arange(600), cuts):
        model.partial_fit(X[rows], Y[rows], forget=0.9)
    # The weight of the last 66 rows is above a thousandth.
    expected = EntangledKernelRidge(feature_map if feature_map is None else StandardScaler().fit(X))
    expected.partial_fit(X[-66:], Y[-66:], forget=0.9)
    lower, upper = model.predict_interval(X[:5])
    low, high = expected.predict_interval(X[:5])
    assert (upper - lower < 1.5 * (high - low)).all()
    assert model.solve().model_.sample.Y.shape == (66, 2)
