import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import get_tags

from entangled_kernels import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    TargetProcessFeatures,
)
from entangled_kernels.features import FeatureMapTraits, fit_and_map


def test_tags_follow_the_feature_map():
    assert not get_tags(EntangledKernelRidge()).input_tags.sparse
    scaler = StandardScaler(with_mean=False)
    assert (
        get_tags(EntangledKernelRidge(scaler)).input_tags.sparse
        == get_tags(scaler).input_tags.sparse
    )
    assert get_tags(EntangledKernelRidge(MaxAbsScaler())).input_tags.sparse


@pytest.mark.parametrize(
    "model",
    [
        EntangledKernelRidge(StandardScaler()),
        EntangledKernelRidgeCV(),
    ],
    ids=["plain", "search"],
)
def test_a_map_that_takes_no_sparse_rows_tells_the_way_out(make_rows, model):
    X, Y = make_rows(20, 3, 2)
    with pytest.raises(
        TypeError, match=r"X is sparse, and StandardScaler needs dense rows; use X.toarray()"
    ):
        model.fit(csr_array(X), Y)


def test_other_errors_of_sparse_rows_are_left_alone(make_rows):
    X, Y = make_rows(20, 3, 2)
    with pytest.raises(ValueError, match="n_components"):
        EntangledKernelRidge(TruncatedSVD(n_components=9)).fit(csr_array(X), Y)


@pytest.mark.parametrize("feature_map", [None, StandardScaler()])
def test_columns_and_names_are_those_of_the_first_rows(make_rows, feature_map):
    X, Y = make_rows(20, 3, 2)
    frame = pd.DataFrame(X, columns=list("abc"))
    model = EntangledKernelRidge(feature_map).fit(frame, Y)
    assert list(model.feature_names_in_) == list("abc")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("acb")])
    model.fit(X, Y)
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.predict(X[0])


def test_a_batch_may_have_missing_values_where_the_map_takes_them(make_rows):
    X, Y = make_rows(20, 3, 2)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        EntangledKernelRidge().partial_fit(X, Y)
    assert np.isfinite(EntangledKernelRidge(SimpleImputer()).partial_fit(X, Y).predict(X)).all()


@pytest.mark.parametrize("remainder", ["drop", "passthrough", SimpleImputer(), MaxAbsScaler()])
def test_of_maps_in_parts_all_must_take_missing_values(remainder):
    parts = ColumnTransformer([("a", StandardScaler(), [0])], remainder=remainder)
    assert FeatureMapTraits.of(make_pipeline(parts, Nystroem())).takes_missing_inputs == (
        remainder != "passthrough"
    )
    other = ColumnTransformer([("a", Nystroem(), [0])], remainder=remainder)
    assert not FeatureMapTraits.of(other).takes_missing_inputs


def test_sparse_rows_need_a_map(make_rows):
    X, Y = make_rows(20, 3, 2)
    sparse = csr_array(X)
    with pytest.raises(TypeError, match="Sparse data"):
        EntangledKernelRidge().fit(sparse, Y)
    scaler = StandardScaler(with_mean=False)
    dense = EntangledKernelRidge(scaler).fit(X, Y).predict(X)
    np.testing.assert_allclose(EntangledKernelRidge(scaler).fit(sparse, Y).predict(sparse), dense)


def test_features_of_training_rows_are_cross_fitted(make_rows):
    X, Y = make_rows(60, 4, 2)
    memory = TargetProcessFeatures(random_state=0)
    fitted, Phi = fit_and_map(memory, X, Y, None)
    assert np.abs(fitted.transform(X) - Phi).max() > 0.01
    model = EntangledKernelRidge(memory, shrinkage=1.0, alpha=1e-3).fit(X, Y)
    expected = EntangledKernelRidge(None, shrinkage=1.0, alpha=1e-3).fit(Phi, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_)
    np.testing.assert_allclose(model.predict(X), expected.predict(fitted.transform(X)))


def test_texts_are_rows(rng):
    """A map may take texts, which are no table."""
    texts = [f"a{i % 5} b{i % 3} c{i % 7}" for i in range(40)]
    counts = CountVectorizer(token_pattern=r"\S+")
    Y = counts.fit_transform(texts).toarray() @ rng.normal(size=(15, 2)) + 0.1 * rng.normal(
        size=(40, 2)
    )
    model = EntangledKernelRidge(counts).fit(texts, Y)
    Phi = counts.transform(texts).toarray().astype(float)
    np.testing.assert_allclose(
        model.predict(texts), EntangledKernelRidge().fit(Phi, Y).predict(Phi)
    )
    lower, upper = model.predict_interval(texts)
    assert (lower < upper).all()
