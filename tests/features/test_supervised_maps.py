"""What all feature maps that are fitted with targets have in common."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidge,
    EvidenceFeatures,
    ForestFeatures,
    TargetProcessFeatures,
)
from entangled_kernels.features import FeatureMapTraits, warm_start
from entangled_kernels.io import load_model, save_model

TUNED = [
    EvidenceFeatures(random_state=0),
    ColumnWidthFeatures(random_state=0),
    ColumnWidthFeatures("exponential", warp=True, spread=1.0, random_state=0),
    TargetProcessFeatures(random_state=0),
]
MAPS = [
    *TUNED,
    ForestFeatures(10, min_samples_leaf=4, random_state=0),
    ForestFeatures(10, min_samples_leaf=2, n_components=9, random_state=0),
]
CROSS_FITTED = (
    "features of training rows come from leave-one-out predictions, those of new rows do not"
)
DIFFERENT = {
    "check_transformer_data_not_an_array": CROSS_FITTED,
    "check_transformer_general": CROSS_FITTED,
}

pytestmark = pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
every_map = pytest.mark.parametrize("feature_map", MAPS, ids=str)


@parametrize_with_checks(
    MAPS,
    expected_failed_checks=lambda one: DIFFERENT if isinstance(one, TargetProcessFeatures) else {},
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(50, 3)) * [1.0, 100.0, 1e-3] + [0.0, 50.0, 7.0]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.column_stack([np.sin(2.0 * Z[:, 0]), 30.0 * Z[:, 1] ** 2]) + 5.0
    return X, Y + 0.05 * Y.std(axis=0) * rng.normal(size=Y.shape)


def gram(feature_map, X):
    Phi = feature_map.transform(X)
    return Phi @ Phi.T


@every_map
def test_weights_are_repeated_rows(feature_map, rows, rng):
    X, Y = rows
    counts = rng.integers(1, 4, size=50)
    weighted = gram(clone(feature_map).fit(X, Y, counts), X)
    both = np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0)
    repeated = gram(clone(feature_map).fit(*both), X)
    atol = 1e-9 if isinstance(feature_map, ForestFeatures) else 0.05 * np.abs(repeated).max()
    np.testing.assert_allclose(weighted, repeated, atol=atol)


@every_map
def test_rows_without_weight_or_target_are_left_out(feature_map, rows):
    (X, Y), weight = rows, np.ones(50)
    Y[1], Y[2:8, 0], weight[3] = np.nan, np.nan, 0.0
    kept = np.delete(np.arange(50), [1, 3])
    fitted = clone(feature_map).fit(X, Y, weight)
    expected = clone(feature_map).fit(X[kept], Y[kept]).transform(X)
    np.testing.assert_allclose(fitted.transform(X), expected, rtol=1e-9, atol=1e-9)


@every_map
def test_constant_columns_and_targets(feature_map, rows):
    X, Y = rows
    X[:, 1] = 4.0
    fitted = clone(feature_map).fit(X, np.column_stack([Y, np.full(50, 2.0)]))
    assert np.isfinite(fitted.transform(X)).all()


@every_map
def test_model_files(feature_map, rows, tmp_path):
    X, Y = rows
    frame = pd.DataFrame(X, columns=list("abc"))
    model = EntangledKernelRidge(feature_map).fit(frame, Y)
    save_model(model, tmp_path / "model")
    assert load_model(tmp_path / "model").predict(frame).tobytes() == model.predict(frame).tobytes()


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("feature_map", TUNED, ids=str)
def test_a_warm_start_continues_from_tuned_parameters(feature_map, rows, piped):
    X, Y = rows
    given = make_pipeline(StandardScaler(), feature_map) if piped else feature_map
    first = clone(given).fit(X, Y)
    started, inner = warm_start(given, first), first[-1] if piped else first
    start = started[-1] if piped else started
    if isinstance(feature_map, EvidenceFeatures):
        assert (start.kernel, start.noise) == (inner.kernel_, inner.noise_)
    else:
        np.testing.assert_array_equal(start.start, inner.theta_)
    assert not hasattr(start, "components_")
    # The map that was given is not changed.
    assert feature_map.get_params()["random_state"] == 0
    assert getattr(feature_map, "start", None) is None
    assert FeatureMapTraits.of(first).noise == getattr(inner, "noise_", None)
    again = started.fit(X, Y)
    atol = 0.1 * np.abs(gram(first, X)).max()
    np.testing.assert_allclose(gram(again, X), gram(first, X), atol=atol)


@every_map
def test_bad_parameters(feature_map, rows):
    settings = {
        "n_components": (0, "a whole number of at least 1, got 0"),
        "max_rows": (1, "a whole number of at least 2, got 1"),
        "max_targets": (0, "a whole number of at least 2, got 0"),
        "reach": (-0.5, "a number of at least 0, got -0.5"),
        "spread": (-1.0, "a number of at least 0, got -1.0"),
    }
    for name, (value, message) in settings.items():
        if name in feature_map.get_params():
            bad = clone(feature_map).set_params(**{name: value})
            with pytest.raises(ValueError, match=f"{name} must be {message}"):
                bad.fit(*rows)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.eye(3), np.full(3, np.nan), "y must have a target that is known"),
        (np.eye(3), [1.0, np.inf, 2.0], "Input y contains infinity"),
        (np.eye(3), [1.0, 2.0], "inconsistent numbers of samples"),
        (pd.DataFrame({"a": [1.0], "b": ["x"]}), [1.0], "got text in 'b'"),
    ],
)
def test_rows_that_cannot_be_used(X, y, message):
    with pytest.raises(ValueError, match=message):
        EvidenceFeatures().fit(X, y)
