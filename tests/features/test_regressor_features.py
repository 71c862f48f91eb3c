import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from entangled_kernels import EntangledKernelRidge, RegressorFeatures
from entangled_kernels.features import needs_targets
from entangled_kernels.io import load_model, save_model


# A tree predicts the classes of these checks exactly, of rows that it has seen and of others.
@parametrize_with_checks([RegressorFeatures(DecisionTreeRegressor(random_state=0), random_state=0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def standard(predictions, Y):
    return (predictions - Y.mean(axis=0)) / Y.std(axis=0)


def test_training_rows_are_predicted_by_others(make_rows):
    X, Y = make_rows(30, 4, 2)
    features = RegressorFeatures(LinearRegression(), cv=3, random_state=1)
    folds = KFold(3, shuffle=True, random_state=1)
    expected = standard(cross_val_predict(LinearRegression(), X, Y, cv=folds), Y)
    np.testing.assert_allclose(features.fit_transform(X, Y), expected)
    of_all = standard(LinearRegression().fit(X, Y).predict(X), Y)
    np.testing.assert_allclose(features.transform(X), of_all)
    np.testing.assert_allclose(features.fit(X, Y).transform(X), of_all)
    assert needs_targets(features)


def test_a_memory_of_rows_is_no_advantage(make_rows):
    """The nearest neighbour knows every row that it has seen; cross-fitted features do not show it."""
    X, Y = make_rows(40, 5, 1, noise=5.0)
    features = RegressorFeatures(KNeighborsRegressor(1), random_state=0)
    seen = np.corrcoef(features.fit(X, Y).transform(X)[:, 0], Y[:, 0])[0, 1]
    fresh = np.corrcoef(features.fit_transform(X, Y)[:, 0], Y[:, 0])[0, 1]
    assert seen > 0.999
    assert fresh < 0.9


def test_weights_reach_a_regressor_that_takes_them(make_rows, rng):
    X, Y = make_rows(30, 4, 2)
    weight = rng.uniform(0.2, 2.0, size=30)
    features = RegressorFeatures(LinearRegression(), cv=KFold(3))
    Phi = features.fit_transform(X, Y, weight)
    mean = np.average(Y, axis=0, weights=weight)
    scale = np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=weight))
    train, test = next(KFold(3).split(X))
    part = LinearRegression().fit(X[train], Y[train], weight[train])
    np.testing.assert_allclose(Phi[test], (part.predict(X[test]) - mean) / scale)
    whole = LinearRegression().fit(X, Y, weight)
    np.testing.assert_allclose(features.transform(X), (whole.predict(X) - mean) / scale)
    # One that takes none is fitted without.
    RegressorFeatures(KNeighborsRegressor(2), cv=2).fit_transform(X, Y, weight)


def test_regressors_of_one_target_and_of_none(make_rows):
    X, Y = make_rows(30, 4, 2)
    assert RegressorFeatures(SVR(), cv=2).fit_transform(X, Y).shape == (30, 2)
    assert RegressorFeatures(PLSRegression(2), cv=2).fit_transform(X, Y[:, :1]).shape == (30, 1)
    assert RegressorFeatures().fit(X, Y[:, 0]).transform(X).shape == (30, 1)


def test_tables_of_any_kind(make_rows):
    X, Y = make_rows(20, 2, 2)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(town=["Ulm", "Aix"] * 10)
    encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder=StandardScaler())
    features = RegressorFeatures(make_pipeline(encode, LinearRegression()), cv=2, random_state=0)
    assert features.fit_transform(frame, pd.DataFrame(Y)).shape == (20, 2)
    assert list(features.feature_names_in_) == ["a", "b", "town"]
    sparse = RegressorFeatures(LinearRegression(), cv=2, random_state=0).fit_transform(csr_array(X), Y)
    np.testing.assert_allclose(
        sparse, RegressorFeatures(LinearRegression(), cv=2, random_state=0).fit_transform(X, Y), atol=1e-6
    )


def test_folds_must_reach_every_row(make_rows):
    X, Y = make_rows(20, 3, 2)
    with pytest.raises(ValueError, match="cv must hold out every row, got a splitter that leaves out"):
        RegressorFeatures(cv=ShuffleSplit(2, test_size=0.2, random_state=0)).fit_transform(X, Y)
    with pytest.raises(ValueError, match="cv must be a whole number of at least 2, got 1"):
        RegressorFeatures(cv=1).fit_transform(X, Y)


def test_files_hold_them(make_rows, tmp_path):
    X, Y = make_rows(30, 4, 2)
    model = EntangledKernelRidge(RegressorFeatures(PLSRegression(2), random_state=0)).fit(X, Y)
    save_model(model, tmp_path / "model")
    assert load_model(tmp_path / "model").predict(X).tobytes() == model.predict(X).tobytes()
