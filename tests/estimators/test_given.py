import numpy as np
import pandas as pd
import polars as pl
import pytest

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.estimators.base import check_costs, check_given

NAMES = ["zinc", "lead", "tin"]
X = np.zeros((2, 1))


def checked(given, X=X, *, named=True):
    return check_given(given, X, NAMES, named=named)


def test_columns_are_matched_by_name():
    frame = pd.DataFrame({"tin": [1.0, np.nan], "zinc": [2.0, 3.0]})
    expected = [[2.0, np.nan, 1.0], [3.0, np.nan, np.nan]]
    np.testing.assert_array_equal(checked(frame), expected)
    np.testing.assert_array_equal(
        checked(pl.DataFrame({"tin": [1.0, None], "zinc": [2.0, 3.0]})), expected
    )
    np.testing.assert_array_equal(checked(np.array(expected)), expected)
    np.testing.assert_array_equal(checked(expected), expected)
    series = pd.Series([1.0, 2.0], name="lead")
    np.testing.assert_array_equal(checked(series)[:, 1], [1.0, 2.0])


def test_rows_are_matched_by_index():
    rows = pd.DataFrame({"x": [0.0, 1.0]}, index=["a", "b"])
    given = pd.DataFrame({"zinc": [2.0, 1.0]}, index=["b", "a"])
    np.testing.assert_array_equal(checked(given, rows)[:, 0], [1.0, 2.0])
    with pytest.raises(ValueError, match="given must have the index of X"):
        checked(given.set_axis(["c", "d"]), rows)


def test_frames_of_models_that_know_no_names():
    frame = pd.DataFrame([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], columns=["a", "b", "c"])
    np.testing.assert_array_equal(checked(frame, named=False), frame)
    with pytest.raises(ValueError, match="'a', 'b', 'c' as well"):
        checked(frame)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.DataFrame({"gold": [1.0, 2.0]}), "columns that are targets, .* got 'gold' as well"),
        (pd.DataFrame({"zink": [1.0, 2.0]}), "did you mean 'zinc'"),
        (np.zeros((2, 2)), "given must have 3 columns, .* got 2"),
        (np.zeros((5, 3)), "a row for each of the 2 rows of X, got 5"),
        (np.full((2, 3), np.inf), "infinity"),
        (pd.DataFrame({"zinc": ["much", "little"]}), "text in column 'zinc'"),
        (pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["zinc", "zinc"]), "name each target once"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        checked(given)


def test_costs():
    np.testing.assert_array_equal(check_costs(None, NAMES), 1.0)
    np.testing.assert_array_equal(check_costs({"lead": 3.0}, NAMES), [1.0, 3.0, 1.0])
    np.testing.assert_array_equal(check_costs([1, 2, 3], NAMES), [1.0, 2.0, 3.0])
    for cost, message in (
        ({"gold": 1.0}, "cost must name targets, .* got 'gold'"),
        ([1.0, 2.0], "cost must hold 3 numbers"),
        ([1.0, 0.0, 1.0], "positive and finite"),
    ):
        with pytest.raises(ValueError, match=message):
            check_costs(cost, NAMES)


@pytest.fixture(scope="module", params=["plain", "search", "stream"])
def fitted(request):
    """Targets whose noise goes together, with names."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(160, 3)), columns=list("abc"))
    errors = rng.normal(size=(160, 3))
    errors[:, 1] = 0.9 * errors[:, 0] + np.sqrt(0.19) * errors[:, 1]
    Y = X.to_numpy() @ rng.normal(size=(3, 3)) + errors
    Y = pd.DataFrame(Y, columns=NAMES)
    model = EntangledKernelRidge(alpha=0.1)
    if request.param != "plain":
        model = EntangledKernelRidgeCV(None, random_state=0, param_grid={"shrinkage": (0.5, 1.0)})
    if request.param == "stream":
        for rows in np.array_split(np.arange(80), 4):
            model.partial_fit(X.iloc[rows], Y.iloc[rows])
        return model.solve(), X[80:], Y[80:]
    return model.fit(X[:80], Y[:80]), X[80:], Y[80:]


def test_measured_targets_come_back_and_tell_of_the_others(fitted):
    model, X, Y = fitted
    plain = model.predict(X)
    mean, std = model.predict(X, given=Y[["zinc"]], return_std=True)
    np.testing.assert_array_equal(mean[:, 0], Y["zinc"])
    np.testing.assert_array_equal(std[:, 0], 0.0)
    errors = [np.mean((values - Y.to_numpy()) ** 2, axis=0) for values in (plain, mean)]
    assert errors[1][1] < 0.4 * errors[0][1]
    assert 0.9 < errors[1][2] / errors[0][2] < 1.1
    same, covariance = model.predict(X, given=Y[["zinc"]], return_cov=True)
    np.testing.assert_array_equal(same, mean)
    np.testing.assert_allclose(np.sqrt(np.einsum("noo->no", covariance)), std)
    nothing = model.predict(X, given=Y * np.nan)
    np.testing.assert_allclose(nothing, plain)
    # Every row by itself, as all together.
    mixed = Y.mask(np.random.default_rng(1).random(Y.shape) < 0.5)
    whole = model.predict(X, given=mixed)
    rows = [model.predict(X.iloc[[i]], given=mixed.iloc[[i]])[0] for i in range(len(X))]
    np.testing.assert_allclose(whole, rows, rtol=1e-10)


def test_intervals(fitted):
    model, X, Y = fitted
    for joint in (False, True):
        lower, upper = model.predict_interval(X, 0.9, joint=joint)
        inside = (lower <= Y.to_numpy()) & (Y.to_numpy() <= upper)
        covered = inside.all(axis=1).mean() if joint else inside.mean()
        assert 0.82 < covered < 0.98
    near, _ = model.predict_interval(X, 0.5)
    assert (near > lower).all()
    lower, upper = model.predict_interval(X, given=Y[["zinc"]])
    np.testing.assert_array_equal(lower[:, 0], Y["zinc"])
    np.testing.assert_array_equal(upper[:, 0], Y["zinc"])
    wide = model.predict_interval(X)
    assert np.mean(upper[:, 1] - lower[:, 1]) < 0.7 * np.mean(wide[1][:, 1] - wide[0][:, 1])
    for coverage in (0.0, 1.0, "much"):
        with pytest.raises(
            (ValueError, TypeError), match="coverage must be a number between 0 and 1"
        ):
            model.predict_interval(X, coverage)


def test_what_tells_what(fitted):
    model, X, Y = fitted
    covariance = model.residual_covariance_
    np.testing.assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    information = model.information_
    np.testing.assert_allclose(np.diag(information), 1.0)
    assert information[0, 1] > 0.5
    assert information[0, 2] < 0.1
    order, reduction = model.suggest_measurements(X[:2], given=Y[["tin"]][:2])
    assert set(order[0, :2]) == {"zinc", "lead"}
    assert order[0, 2] is None
    np.testing.assert_allclose(np.nansum(reduction, axis=1), 1.0)
    dear = model.suggest_measurements(X[:1], cost={"zinc": 100.0, "lead": 100.0})[0]
    assert dear[0, 0] == "tin"


def test_frames_out(fitted):
    model, X, Y = fitted
    try:
        model.set_output(predict="pandas")
        lower, upper = model.predict_interval(X, given=Y[["tin"]])
        assert list(lower.columns) == NAMES
        assert lower.index.equals(X.index)
        assert (lower["tin"] == upper["tin"]).all()
        model.set_output(predict="polars")
        assert model.predict(X, given=Y[["tin"]]).columns == NAMES
    finally:
        model.set_output(predict="default")


def test_one_target():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    model = EntangledKernelRidge().fit(X, y)
    given = np.where(np.arange(40) % 2, y, np.nan)
    mean, std = model.predict(X, given=given, return_std=True)
    assert mean.shape == std.shape == (40,)
    np.testing.assert_array_equal(mean[1::2], y[1::2])
    np.testing.assert_allclose(mean[::2], model.predict(X)[::2])
    lower, upper = model.predict_interval(X)
    assert lower.shape == (40,)
    assert (lower < upper).all()
