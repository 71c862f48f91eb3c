import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from entangled_kernels import (
    MultiViewKernelRidge,
    OperatorFourierRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
    StandardizedRegressor,
)
from entangled_kernels.storage import load_model, save_model


@parametrize_with_checks(
    [
        StandardizedRegressor(OutputKernelRidge()),
        StandardizedRegressor(OperatorFourierRidge(), feature_map=StandardScaler()),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(30, 4)) * [1.0, 10.0, 0.1, 1.0] + 3.0
    return X, X @ rng.normal(size=(4, 3)) * [1.0, 100.0, 0.01] + 5.0


def test_it_is_the_regressor_on_standardised_rows(rows):
    X, Y = rows
    inputs, targets = StandardScaler().fit(X), StandardScaler().fit(Y)
    plain = OutputKernelRidge(alpha=0.3).fit(inputs.transform(X), targets.transform(Y))
    model = StandardizedRegressor(OutputKernelRidge(alpha=0.3), feature_map=StandardScaler()).fit(X, Y)
    expected = targets.inverse_transform(plain.predict(inputs.transform(X)))
    np.testing.assert_allclose(model.predict(X), expected)
    np.testing.assert_allclose(model.regressor_.output_kernel_, plain.output_kernel_)


def test_units_of_targets_change_nothing_but_units(rows):
    X, Y = rows
    scales = np.array([3.0, 1e-4, 1e5])
    model, other = (StandardizedRegressor(OutputKernelRidge()).fit(X, T) for T in (Y, Y * scales))
    np.testing.assert_allclose(model.predict(X) * scales, other.predict(X))


def test_blanks_and_weights_of_zero_say_nothing_of_units(rows):
    X, Y = rows
    Y[:5, 1] = np.nan
    model = StandardizedRegressor(OutputKernelRidge()).fit(X, Y)
    np.testing.assert_allclose(model.mean_, np.nanmean(Y, axis=0))
    np.testing.assert_allclose(model.scale_, np.nanstd(Y, axis=0))
    weight = np.ones(30)
    weight[:5] = 0.0
    fewer = StandardizedRegressor(OutputKernelRidge()).fit(X[5:], Y[5:])
    weighted = StandardizedRegressor(OutputKernelRidge()).fit(X, Y, weight)
    np.testing.assert_allclose(weighted.scale_, fewer.scale_)
    np.testing.assert_allclose(weighted.predict(X), fewer.predict(X), rtol=1e-6)


def test_constant_targets_are_predicted(rows):
    X, Y = rows
    Y[:, 0] = 7.0
    model = StandardizedRegressor(OutputKernelRidge()).fit(X, Y)
    np.testing.assert_allclose(model.predict(X)[:, 0], 7.0)
    assert model.scale_[0] == 1.0


def test_missing_views_reach_a_regressor_that_takes_them(rows):
    X, Y = rows
    X[:6, 2:] = np.nan
    views = MultiViewKernelRidge({"first": [0, 1], "second": [2, 3]})
    model = StandardizedRegressor(views, feature_map=StandardScaler()).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueError, match="NaN"):
        StandardizedRegressor(OutputKernelRidge(), feature_map=StandardScaler()).fit(X, Y)


def test_frames_text_and_files(rows, tmp_path):
    X, Y = rows
    frame = pd.DataFrame(X, columns=list("abcd")).assign(town=["Ulm", "Aix"] * 15)
    targets = pd.DataFrame(Y, columns=list("xyz"))
    encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = StandardizedRegressor(feature_map=encoder).set_output(predict="pandas").fit(frame, targets)
    assert isinstance(model.regressor_, OutputKernelRidgeCV)
    assert list(model.predict(frame).columns) == list("xyz")
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    pd.testing.assert_frame_equal(loaded.predict(frame), model.predict(frame))
    assert list(loaded.feature_names_in_) == [*"abcd", "town"]
