"""Intervals, deviations and conditioning where the size of the noise depends on the inputs."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.io import ModelFileError, load_model, save_model
from entangled_kernels.model import FIRST_BLOCK
from entangled_kernels.selection.search import size_parts
from entangled_kernels.uncertainty import LogSize


def draw(n, p=3, seed=0):
    """Linear targets with related noise that grows fivefold along the first of three inputs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    noise = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    return X, 20.0 * X @ rng.normal(size=(3, p)) + (1.0 + 4.0 * X[:, :1]) * noise


def quick(**options):
    options = {"param_grid": {"shrinkage": [1.0]}, "random_state": 0} | options
    return EntangledKernelRidgeCV(None, **options)


@pytest.fixture(scope="module")
def rows():
    X, Y = draw(2200)
    return X[:200], Y[:200], X[200:], Y[200:]


@pytest.fixture(scope="module")
def fitted(rows):
    return quick().fit(*rows[:2])


def fifths(X, inside):
    """Shares inside in the quietest and in the noisiest fifth of the rows."""
    order, fifth = np.argsort(X[:, 0]), len(X) // 5
    return inside[order[:fifth]].mean(), inside[order[-fifth:]].mean()


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("half_given", [False, True])
def test_intervals_cover_in_quiet_and_in_noisy_regions(fitted, rows, joint, half_given):
    X, Y = rows[2:]
    given = np.where([True, False, False], Y, np.nan) if half_given else None
    lower, upper = fitted.predict_interval(X, given=given, joint=joint)
    inside = (lower <= Y) & (upper >= Y)
    inside = inside.all(axis=1) if joint else inside[:, int(half_given) :]
    quiet, noisy = fifths(X, inside)
    assert quiet <= 0.97
    assert noisy >= 0.8
    assert 0.85 <= inside.mean() <= 0.95
    constant = replace(fitted.model_, error_size=None)
    lower, upper = constant.predict_interval(X, 0.9, given, joint=joint)
    inside = (lower <= Y) & (upper >= Y)
    inside = inside.all(axis=1) if joint else inside[:, int(half_given) :]
    assert fifths(X, inside)[1] < noisy


def test_deviations_and_covariances_grow_with_the_noise(fitted):
    X = np.column_stack([[0.05, 0.95], [0.5, 0.5], [0.5, 0.5]])
    mean, std = fitted.predict(X, return_std=True)
    assert (std[1] > 2.0 * std[0]).all()
    _, covariance = fitted.predict(X, return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.einsum("nii->ni", covariance)), std)
    given = np.array([[mean[0, 0] + 1.0, np.nan, np.nan]] * 2)
    known, left = fitted.predict(X, return_std=True, given=given)
    np.testing.assert_array_equal(known[:, 0], given[:, 0])
    np.testing.assert_array_equal(left[:, 0], 0.0)
    assert (left[:, 1:] < std[:, 1:]).all()
    none = np.full((2, 3), np.nan)
    np.testing.assert_allclose(fitted.predict(X, return_std=True, given=none)[1], std)


def test_conditional_means_do_not_depend_on_sizes(fitted, rows):
    X, Y = rows[2:]
    given = np.where([True, False, True], Y, np.nan)
    constant = replace(fitted.model_, error_size=None)
    np.testing.assert_array_equal(fitted.predict(X, given=given), constant.predict(X, given)[0])


def test_the_same_to_the_last_bit(fitted, rows, tmp_path):
    X, Y, X_new, _ = rows
    save_model(fitted, tmp_path / "noise.model")
    others = [quick(n_jobs=2).fit(X, Y), load_model(tmp_path / "noise.model")]
    for other in (*others, pickle.loads(pickle.dumps(fitted))):
        for end, expected in zip(
            other.predict_interval(X_new), fitted.predict_interval(X_new), strict=True
        ):
            np.testing.assert_array_equal(end, expected)


def test_an_edited_file_is_refused(fitted, rows, tmp_path):
    size = fitted.model_.error_size
    by_inputs = size.by_inputs if size.by_inputs is not None else size.by_predictions
    assert isinstance(by_inputs, LogSize)
    short = replace(by_inputs, coef=by_inputs.coef[:-1])
    edited = quick().fit(*rows[:2])
    edited._model = replace(edited.model_, error_size=replace(size, by_inputs=short))
    save_model(edited, tmp_path / "edited.model")
    with pytest.raises(ModelFileError, match="coefficients of sizes must have shape"):
        load_model(tmp_path / "edited.model")


def test_blocks_of_rows_give_the_same_as_all_rows(fitted):
    X, _ = draw(FIRST_BLOCK + 100)
    _, std = fitted.predict(X, return_std=True)
    parts = [fitted.predict(part, return_std=True)[1] for part in (X[:50], X[50:])]
    np.testing.assert_allclose(np.concatenate(parts), std, rtol=1e-12)


def test_held_out_predictions_have_intervals_of_their_size(fitted, rows):
    X, Y = rows[:2]
    held_out = fitted.held_out_predictions(0.9)
    np.testing.assert_array_equal(held_out.measured, Y)
    inside = (held_out.lower <= Y) & (held_out.upper >= Y)
    assert 0.87 <= inside.mean() <= 0.93
    assert fifths(X, inside)[1] >= 0.8
    middle = (held_out.lower + held_out.upper) / 2.0
    np.testing.assert_allclose(middle, held_out.predicted)


def test_repeated_folds_weights_missing_targets_and_columns_of_text():
    rng = np.random.default_rng(1)
    X, Y = draw(400, seed=2)
    Y[rng.random(Y.shape) < 0.3] = np.nan
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=np.where(X[:, 1] > 0.5, "yes", "no"))
    features = make_column_transformer(
        (StandardScaler(), list("abc")), (OneHotEncoder(sparse_output=False), ["d"])
    )
    model = EntangledKernelRidgeCV(features, param_grid={"shrinkage": [1.0]}, random_state=0)
    weight = rng.uniform(0.5, 2.0, size=Y.shape)
    model.fit(frame, Y, weight)
    again = [model.predict_interval(frame)]
    again.append(model.fit(frame, Y, 4.0 * weight).predict_interval(frame))
    np.testing.assert_array_equal(*again)
    assert model.model_.error_size is not None
    # Folds of few rows are repeated.
    few = quick().fit(*draw(55, seed=3))
    assert len(few.model_.residuals.row) == 110
    assert np.isfinite(few.predict(X, return_std=True)[1]).all()


def test_transformed_targets(rows):
    X, Y, X_new, Y_new = rows
    model = quick(target_transform="log").fit(X, np.exp(0.05 * Y))
    lower, upper = model.predict_interval(X_new)
    assert (lower > 0.0).all()
    quiet, noisy = fifths(X_new, (lower <= np.exp(0.05 * Y_new)) & (np.exp(0.05 * Y_new) <= upper))
    assert quiet <= 0.97
    assert noisy >= 0.8


def test_parts_hold_whole_folds():
    splits = [(np.zeros(0, dtype=int), np.arange(start, start + 3)) for start in range(0, 21, 3)]
    part = size_parts([*splits, (np.zeros(0, dtype=int), np.arange(21))], 21)
    np.testing.assert_array_equal(part, np.repeat([0, 1, 2, 3, 4, 0, 1], 3))


def test_streams_and_single_models_have_one_size(rows):
    X, Y, X_new, _ = rows
    stream = quick().partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:]).solve()
    assert stream.model_.error_size is None
    assert EntangledKernelRidge().fit(X, Y).model_.error_size is None
    lower, upper = stream.predict_interval(X_new)
    np.testing.assert_allclose((upper - lower).std(axis=0), 0.0, atol=1e-9)
