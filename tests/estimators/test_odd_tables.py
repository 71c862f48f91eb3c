"""Tables that are sparse, hold long texts, lack a column for a while, or come with odd splits."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    ForestFeatures,
    OperatorFourierRidge,
    TargetProcessFeatures,
)
from entangled_kernels.model import InputRange


def peak_bytes(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_wide_sparse_rows_are_never_dense_all_at_once(rng):
    """The novelty warning of predict, novelty and explain."""
    X = random_array((4000, 10_000), density=1e-4, rng=rng, format="csr")
    dense = X.shape[0] * X.shape[1] * 8
    model = EntangledKernelRidge(TruncatedSVD(2, random_state=0)).fit(X, rng.normal(size=4000))
    assert peak_bytes(lambda: model.predict(2.0 * X)) < 0.7 * dense
    assert peak_bytes(lambda: model.novelty(X)) < 0.7 * dense


def test_sparse_rows_are_judged_and_explained_like_dense_ones(rng, monkeypatch):
    dense = np.where(rng.random((60, 5)) < 0.4, rng.normal(size=(60, 5)), 0.0)
    X, Y = csr_array(dense), dense[:, :2] + 0.1 * rng.normal(size=(60, 2))
    # Several blocks of rows.
    monkeypatch.setattr("entangled_kernels.model.input_range._MOST_NUMBERS", 35)
    inputs = InputRange.of(dense)
    for factor in (0.5, 3.0, 1e3):
        assert inputs.judge(factor * X, 10.0) == inputs.judge(factor * dense, 10.0)
        np.testing.assert_array_equal(inputs.distance(factor * X), inputs.distance(factor * dense))
    for method in ("gradient", "permutation"):
        one, other = (
            EntangledKernelRidge(MaxAbsScaler()).fit(table, Y).explain(table, method=method)
            for table in (X, dense)
        )
        np.testing.assert_allclose(one.effect, other.effect, atol=1e-12)
        np.testing.assert_allclose(one.size, other.size, atol=1e-12)


def test_one_very_long_text_in_a_list_takes_little_memory(rng):
    texts = ["a b c"] * 200 + ["d " * 500_000]
    model = EntangledKernelRidge(make_pipeline(HashingVectorizer(n_features=16)))
    Y = rng.normal(size=(201, 2))

    def use():
        model.fit(texts, Y)
        model.predict(texts)
        model.explain(texts)

    assert peak_bytes(use) < 50 * len(texts[-1])


@pytest.mark.parametrize("dropped", [False, True])
def test_listed_splits_may_count_from_the_end_and_repeat_rows(dropped, rng):
    X = rng.normal(size=(12, 2))
    Y = X + 0.3 * rng.normal(size=(12, 2))
    halves = np.arange(6), np.arange(6, 12)
    from_the_end = [(halves[0], halves[1] - 12), (halves[1] - 12, halves[0])]
    plain = [halves, halves[::-1]]
    again = [(np.r_[halves[0], 0, 1, 1], halves[1]), (halves[1], halves[0])]
    if dropped:
        Y[3] = np.nan
    found = [
        EntangledKernelRidgeCV(None, cv=cv).fit(X, Y).predict(X)
        for cv in (plain, from_the_end, again)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    # A row that is repeated counts twice, as it does in the table without the dropped row.
    assert np.abs(found[0] - found[2]).max() > 1e-9
    kept = np.arange(12) != 3 if dropped else np.ones(12, dtype=bool)
    place = np.cumsum(kept) - 1
    own = [tuple(place[part[kept[part]]] for part in split) for split in again]
    expected = EntangledKernelRidgeCV(None, cv=own).fit(X[kept], Y[kept]).predict(X)
    np.testing.assert_array_equal(found[2], expected)


def test_held_out_predictions_do_not_show_targets_of_weight_zero(rng):
    X = rng.normal(size=(20, 2))
    Y = X + 0.3 * rng.normal(size=(20, 2))
    weight = np.ones(Y.shape)
    weight[4, 1] = 0.0
    Y[4, 1] = 1e6
    measured = EntangledKernelRidgeCV(None, cv=3).fit(X, Y, weight).held_out_predictions().measured
    assert np.isnan(measured[4, 1])
    assert np.isnan(measured).sum() == 1


def test_names_of_pandas_targets_beside_dask_rows(rng):
    array = pytest.importorskip("dask.array")
    X, Y = rng.normal(size=(30, 2)), pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    model = EntangledKernelRidge().fit(array.from_array(X, chunks=(10, 2)), Y)
    assert model.target_names_.tolist() == ["a", "b"]
    np.testing.assert_allclose(model.coef_, EntangledKernelRidge().fit(X, Y).coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="as many rows"):
        EntangledKernelRidge().fit(array.from_array(X, chunks=(10, 2)), Y[:20])


@pytest.mark.parametrize("first", [True, False])
def test_a_column_that_one_batch_lacks_keeps_its_range(first, rng):
    X, Y = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    rows = slice(0, 30) if first else slice(30, 60)
    X[rows, 1] = np.nan
    model = EntangledKernelRidge(SimpleImputer().fit(np.zeros((2, 2))))
    model.partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:])
    assert model.novelty(np.array([[0.0, 1e3]]))[0] > 10.0
    assert InputRange.of(X).columns.tolist() == [0, 1]


def test_predictions_that_overflow_are_refused(rng):
    X = rng.normal(size=(30, 2))
    far = np.array([[1.0, 1.0], [1e300, 1.0]])
    with pytest.raises(ValueError, match="row 2 of X overflows"):
        EntangledKernelRidge().fit(X[:19], 1e30 * X[:19, ::-1]).predict(far)
    assert np.isfinite(OperatorFourierRidge().fit(X, X).predict(far)).all()
    for feature_map in (ColumnWidthFeatures(), TargetProcessFeatures()):
        fitted = feature_map.fit(X, X)
        with pytest.raises(ValueError, match="X in units of the training rows"):
            fitted.transform(far)


def test_columns_too_large_for_a_foreign_map_are_named(rng):
    X = 1e203 * rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match="X has columns too large"), np.errstate(all="ignore"):
        EntangledKernelRidge(Nystroem(n_components=5)).fit(csr_array(X), rng.normal(size=(20, 2)))


def test_inputs_too_far_apart_are_not_explained(rng):
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    model = EntangledKernelRidge(ForestFeatures(5, random_state=0)).fit(X, Y)
    X[0, 1] = 1e308
    with pytest.raises(ValueError, match="column 2 of X"), np.errstate(all="ignore"):
        model.explain(X)


@pytest.mark.parametrize("maps", [[None, StandardScaler()], EvidenceFeatures(random_state=0)])
def test_several_models_of_one_split(maps, rng):
    """Nothing but its own held-out rows weighs the models, so their estimate has equal shares."""
    X = rng.normal(size=(30, 2))
    Y = X + 0.3 * rng.normal(size=(30, 2))
    model = EntangledKernelRidgeCV(maps, cv=[(np.arange(20), np.arange(20, 30))], random_state=0)
    model.fit(X, Y)
    assert 0.0 < model.cv_score_ < 0.5
    assert np.isfinite(model.predict_interval(X)).all()


@pytest.mark.parametrize(
    "features", [ColumnWidthFeatures(random_state=0), TargetProcessFeatures(random_state=0)]
)
def test_a_category_of_one_row_is_missing_in_a_fold(rng, features):
    frame = pd.DataFrame(rng.normal(size=(24, 2)), columns=["a", "b"])
    frame["m"] = ["x", "y", "rare"] + ["x", "y", "y"] * 7
    Y = np.column_stack([frame["a"] + (frame["m"] == "x"), frame["b"]])
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("m", encoder, ["m"])], remainder="passthrough")
    model = EntangledKernelRidgeCV(make_pipeline(columns, features), cv=3, random_state=0)
    assert np.isfinite(model.fit(frame, Y).cv_score_)
