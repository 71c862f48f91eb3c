"""Tables in and predictions out: containers, names, shapes and what there is before a fit."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV, OutputKernelRidge

GRID = {
    "alphas": [1e-4, 1.0, 10.0, 1e6],
    "random_state": 0,
    "param_grid": {"shrinkage": (0.5,), "target_alpha": (0.1,)},
}


@pytest.fixture
def tables(make_rows):
    X, Y = make_rows(20, 4, 2)
    inputs, targets = ["a", "b b", "c", "d"], ["yield (%)", "π"]
    return {
        "array": (X, Y),
        "pandas": (
            pd.DataFrame(X, columns=inputs, index=range(100, 120)),
            pd.DataFrame(Y, columns=targets),
        ),
        "polars": (pl.DataFrame(X, schema=inputs), pl.DataFrame(Y, schema=targets)),
    }


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_in(tables, kind):
    plain = EntangledKernelRidge().fit(*tables["array"])
    X, Y = tables[kind]
    model = EntangledKernelRidge().fit(X, Y)
    assert list(model.feature_names_in_) == ["a", "b b", "c", "d"]
    assert list(model.target_names_) == ["yield (%)", "π"]
    prediction = model.predict(X)
    assert isinstance(prediction, np.ndarray)
    np.testing.assert_allclose(prediction, plain.predict(tables["array"][0]), atol=1e-12)
    assert list(model.get_feature_names_out()) == ["yield (%)_kraus0", "π_kraus0"]


@pytest.mark.parametrize(("kind", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_frames_out(tables, kind, frame):
    X, Y = tables[kind]
    model = clone(EntangledKernelRidge().set_output(transform=kind, predict=kind)).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    for table in (mean, std):
        assert isinstance(table, frame)
        assert list(table.columns) == ["yield (%)", "π"]
    projected = model.transform(X)
    assert isinstance(projected, frame)
    assert list(projected.columns) == ["yield (%)_kraus0", "π_kraus0"]
    assert model.score(X, Y) > 0
    if kind == "pandas":
        assert list(mean.index) == list(X.index)
    assert isinstance(model.set_output(predict="default").predict(X), np.ndarray)


def test_series_in_and_out(tables):
    X, Y = tables["pandas"]
    model = EntangledKernelRidge().set_output(predict="pandas").fit(X, Y["π"])
    prediction = model.predict(X)
    assert isinstance(prediction, pd.Series)
    assert prediction.name == "π"
    X, Y = tables["polars"]
    prediction = EntangledKernelRidge().set_output(predict="polars").fit(X, Y["π"]).predict(X)
    assert isinstance(prediction, pl.Series)
    assert prediction.name == "π"


def test_names_are_forgotten_with_the_frame(tables):
    model = EntangledKernelRidge().fit(*tables["pandas"])
    model.fit(*tables["array"])
    assert not hasattr(model, "target_names_")
    assert list(model.set_output(predict="pandas").predict(tables["array"][0]).columns) == [
        "output0",
        "output1",
    ]


def test_unknown_container():
    with pytest.raises(
        ValueError, match="predict must be one of 'default', 'pandas', 'polars', got 'arrow'"
    ):
        EntangledKernelRidge().set_output(predict="arrow")


@pytest.mark.parametrize("Estimator", [EntangledKernelRidge, OutputKernelRidge])
def test_predictions_have_the_dimensions_of_the_targets(make_rows, Estimator):
    X, Y = make_rows(20, 3, 1)
    assert Estimator().fit(X, Y).predict(X).shape == (20, 1)
    assert Estimator().fit(X, Y[:, 0]).predict(X).shape == (20,)
    with pytest.raises(ValueError, match="y must have at least one column"):
        Estimator().fit(X, np.empty((20, 0)))
    with pytest.raises(ValueError, match="requires y to be passed"):
        Estimator().fit(X, None)


def test_complete_rows_of_weight_zero_are_kept_and_missing_ones_are_not(make_rows):
    X, Y = make_rows(20, 3, 2)
    weight = np.ones(20)
    weight[4] = 0.0
    assert np.shares_memory(OutputKernelRidge().fit(X, Y, weight).X_fit_, X)
    Y[4] = np.nan
    assert len(OutputKernelRidge().fit(X, Y).X_fit_) == 19


@pytest.mark.parametrize("model", [EntangledKernelRidge(), EntangledKernelRidgeCV(None, **GRID)])
def test_one_of_deviation_and_covariance(make_rows, model):
    X, Y = make_rows(20, 3, 2)
    model.fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    same, cov = model.predict(X, return_cov=True)
    np.testing.assert_array_equal(mean, same)
    np.testing.assert_allclose(std, np.sqrt(np.einsum("noo->no", cov)))
    with pytest.raises(ValueError, match="return_std and return_cov cannot both be true"):
        model.predict(X, return_std=True, return_cov=True)


def test_wide_tables_keep_no_moments(make_rows):
    X, Y = make_rows(10, 20, 2)
    assert not hasattr(EntangledKernelRidge().fit(X, Y), "n_samples_seen_")
    with pytest.raises(ValueError, match="at least 2 rows of positive sample_weight"):
        EntangledKernelRidge().fit(X, Y, np.eye(10)[0])
