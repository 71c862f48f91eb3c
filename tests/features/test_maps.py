import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from entangled_kernels.features import (
    ColumnWidthFeatures,
    EvidenceFeatures,
    FeatureMapTraits,
    ForestFeatures,
    TargetProcessFeatures,
    default_feature_maps,
    fit_and_map,
    fit_feature_map,
    is_fitted,
    map_features,
    warm_start,
)


def needs_targets(feature_map):
    return FeatureMapTraits.of(feature_map).needs_targets


def is_exact(feature_map, n_rows):
    return n_rows <= FeatureMapTraits.of(feature_map).exact_rows


def test_a_map_is_cloned_and_fitted_with_weights_where_it_takes_them(make_rows, rng):
    X, Y = make_rows(20, 3, 2)
    weight = rng.uniform(0.5, 2.0, size=20)
    scaler = StandardScaler()
    fitted = fit_feature_map(scaler, X, Y, weight)
    assert not hasattr(scaler, "mean_")
    np.testing.assert_allclose(fitted.mean_, np.average(X, axis=0, weights=weight))
    assert fit_feature_map(FunctionTransformer(), X, Y, weight).transform(X) is X
    assert fit_feature_map(None, X, Y, None) is None


def test_features_are_dense_numbers(make_rows):
    X, _ = make_rows(6, 2, 1)
    text = pd.DataFrame({"kind": list("ababab")})
    encoder = OneHotEncoder().fit(text)
    np.testing.assert_array_equal(map_features(encoder, text)[:2], [[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(map_features(None, pd.DataFrame(X, columns=["a", "b"])), X)
    assert map_features(None, X.astype(np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match="got text in 'kind'"):
        map_features(None, text)
    with pytest.raises(ValueError, match="features contains NaN"):
        map_features(FunctionTransformer(lambda X: X * np.nan), X)
    with pytest.raises(TypeError, match="Sparse data was passed for X"):
        map_features(None, csr_array(X))


def test_training_rows_get_the_features_of_all_rows(make_rows):
    X, Y = make_rows(20, 3, 2)
    scaler = StandardScaler()
    fitted, Phi = fit_and_map(scaler, X, Y, None)
    np.testing.assert_array_equal(Phi, fitted.transform(X))
    assert not is_fitted(scaler)
    fitted, Phi = fit_and_map(None, X, Y, None)
    assert fitted is None
    np.testing.assert_array_equal(Phi, X)
    with pytest.raises(ValueError, match="features contains NaN"):
        fit_and_map(FunctionTransformer(lambda X: X * np.nan), X, Y, None)


@pytest.mark.parametrize("piped", [False, True])
def test_training_rows_get_cross_fitted_features_of_a_map_that_has_them(make_rows, rng, piped):
    X, Y = make_rows(20, 3, 2)
    own = TargetProcessFeatures(random_state=0)
    feature_map = make_pipeline(StandardScaler(), own) if piped else own
    weight = None if piped else rng.uniform(0.5, 2.0, size=20)
    fitted, Phi = fit_and_map(feature_map, X, Y, weight)
    weights = {} if piped else {"sample_weight": weight}
    np.testing.assert_allclose(Phi, clone(feature_map).fit_transform(X, Y, **weights))
    assert not np.allclose(Phi, fitted.transform(X))
    assert FeatureMapTraits.of(feature_map).cross_fitted
    np.testing.assert_allclose(
        fitted.transform(X), clone(feature_map).fit(X, Y, **weights).transform(X)
    )


def test_which_maps_are_fitted():
    assert is_fitted(None)
    assert not is_fitted(StandardScaler())
    assert is_fitted(StandardScaler().fit([[1.0], [2.0]]))
    assert not is_fitted([StandardScaler(), None])


def test_which_maps_need_targets():
    assert needs_targets(EvidenceFeatures())
    assert needs_targets(make_union(StandardScaler(), ForestFeatures()))
    assert needs_targets(make_pipeline(StandardScaler(), EvidenceFeatures()))
    assert not needs_targets(make_pipeline(StandardScaler(), Nystroem()))
    assert not needs_targets(None)


def test_other_maps_are_not_tuned():
    scaler = StandardScaler()
    assert FeatureMapTraits.of(scaler).noise is None
    assert FeatureMapTraits.of(None).noise is None
    assert warm_start(scaler, scaler) is scaler


def test_the_automatic_maps():
    kinds = [type(one) for one in default_feature_maps(3)]
    widths = [ColumnWidthFeatures, ForestFeatures, ColumnWidthFeatures]
    assert kinds == [StandardScaler, *widths, TargetProcessFeatures]
    assert [one.random_state for one in default_feature_maps(3)[1:]] == [3] * 4
    assert [default_feature_maps()[number].reach for number in (1, 3, 4)] == [1.0] * 3
    assert [default_feature_maps()[number].shape for number in (1, 3)] == [
        "gaussian",
        "exponential",
    ]
    assert default_feature_maps()[4].max_targets == 8
    streamed = default_feature_maps(3, streamed=True)
    assert [type(one) for one in streamed] == kinds[:-1]
    assert [streamed[number].reach for number in (1, 3)] == [None] * 2
    assert [streamed[number].shape for number in (1, 3)] == ["matern", "exponential"]


def test_exact_maps_give_one_kernel_whatever_rows_they_saw(make_rows):
    X, _ = make_rows(12, 3, 1)
    exact = Nystroem(n_components=12, random_state=0)
    assert is_exact(exact, 12)
    assert not is_exact(exact, 13)
    assert not is_exact(make_pipeline(StandardScaler(), exact), 12)
    assert not is_exact(RBFSampler(), 12)
    # Indefinite, or unknown, kernels.
    assert not is_exact(Nystroem("sigmoid", n_components=12), 12)
    assert not is_exact(Nystroem(lambda x, z: float(x @ z), n_components=12), 12)
    train, test = X[:8], X[8:]
    whole = fit_feature_map(exact, X, None, None)
    part = fit_feature_map(clone(exact).set_params(n_components=8), train, None, None)
    for one, other in ((train, train), (test, train)):
        kernels = [map_features(own, one) @ map_features(own, other).T for own in (whole, part)]
        np.testing.assert_allclose(*kernels, atol=1e-9)
