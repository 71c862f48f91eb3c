from dataclasses import replace

import numpy as np
import pytest

from entangled_kernels.uncertainty import Residuals, estimate_error_size
from entangled_kernels.uncertainty.error_size import (
    LEVELS,
    LogSize,
    _LogSizeRidge,
    interval_scores,
)

from ..reference import error_size as reference


def draw(n, p=2, q=3, seed=0, growth=5.0):
    """Residuals whose size grows exponentially with the first of q inputs; predictions are noise."""
    rng = np.random.default_rng(seed)
    inputs, predicted = rng.uniform(size=(n, q)), rng.normal(size=(n, p))
    values = rng.normal(size=(n, p)) * growth ** inputs[:, :1] * np.arange(1.0, p + 1.0)
    return (
        Residuals(values, np.ones(n), np.arange(n), np.ones(n)),
        inputs,
        predicted,
        np.arange(n) % 5,
    )


def test_interval_scores_by_definition():
    rng = np.random.default_rng(0)
    Z, sizes = np.abs(rng.normal(size=(40, 3))), rng.uniform(0.5, 2.0, size=(40, 3))
    mass = rng.uniform(0.5, 2.0, size=(40, 1)) * (rng.random((40, 3)) < 0.8)
    expected = reference.interval_scores(Z, mass, sizes, LEVELS)
    np.testing.assert_allclose(interval_scores(Z, mass, sizes), expected, rtol=1e-12)
    # Equal weights reach levels exactly.
    ones = np.ones((40, 3))
    np.testing.assert_allclose(
        interval_scores(Z, ones, sizes), reference.interval_scores(Z, ones, sizes, LEVELS)
    )


@pytest.mark.parametrize("penalty", [1.0, 30.0, 1e4])
def test_the_ridge_minimises_the_penalised_likelihood(penalty):
    rng = np.random.default_rng(1)
    basis, weight = rng.normal(size=(60, 4)), rng.uniform(0.5, 1.5, size=60)
    A = np.abs(rng.normal(size=60)) * np.exp(0.4 * basis[:, 0])
    A, offset = np.clip(A, 0.1, 2.0), 0.2 * basis[:, 1]
    ridge = _LogSizeRidge(basis, weight)
    coef, intercept, found = ridge.fit(A[:, None], offset[:, None], np.array([penalty, np.inf]))
    expected = reference.log_sizes(basis, A, weight, offset, penalty)
    np.testing.assert_allclose(found[0, :, 0], expected, atol=1e-3)
    np.testing.assert_allclose(found[0, :, 0], offset + basis @ coef[0, :, 0] + intercept[0, 0])
    np.testing.assert_allclose(coef[1], 0.0)
    np.testing.assert_allclose(
        np.exp(intercept[1, 0]), np.average(A / np.exp(offset), weights=weight)
    )


def test_the_basis_is_piecewise_linear():
    rng = np.random.default_rng(2)
    table = rng.normal(size=(50, 3))
    table[:, 2] = 7.0
    knots = np.quantile(table, [0.0, 0.25, 0.5, 0.75, 1.0], axis=0)
    model = LogSize(knots, np.zeros(12), np.ones(12), rng.normal(size=(12, 2)), np.ones(2))
    new = 3.0 * rng.normal(size=(20, 3))
    new[3, 0] = np.nan
    expected = [reference.basis_row(row, knots) @ model.coef + 1.0 for row in new]
    np.testing.assert_allclose(model(new), expected)
    far = np.array([[1e9, -1e9, 0.0], [np.inf, np.nan, 1.0]])
    assert np.isfinite(model(far)).all()


def test_noise_that_grows_is_followed():
    residuals, inputs, predicted, part = draw(300)
    size = estimate_error_size(residuals, inputs, predicted, part)
    ends = size(np.array([[0.05, 0.5, 0.5], [0.95, 0.5, 0.5]]), np.zeros((2, 2)))
    assert ((ends[1] / ends[0] > 2.0) & (ends[1] / ends[0] < 6.0)).all()
    relative = residuals.values / size.of(residuals)
    divided = replace(residuals, values=relative)
    np.testing.assert_allclose(divided.deviation(), residuals.deviation())
    order = np.argsort(inputs[:, 0])
    quiet, noisy = (np.abs(relative[rows]).mean() for rows in (order[:60], order[-60:]))
    assert noisy < 1.8 * quiet


def test_noise_by_the_predictions_is_followed_too():
    residuals, inputs, _, part = draw(300)
    predicted = np.column_stack([inputs[:, 0], -inputs[:, 0]])
    size = estimate_error_size(residuals, np.zeros((300, 0)), predicted, part)
    assert size.by_inputs is None
    ends = size(np.zeros((2, 0)), np.array([[0.05, -0.05], [0.95, -0.95]]))
    assert (ends[1] > 2.0 * ends[0]).all()


def test_one_target_may_differ():
    residuals, inputs, predicted, part = draw(400)
    values = residuals.values.copy()
    values[:, 1] = np.random.default_rng(9).normal(size=400)
    size = estimate_error_size(replace(residuals, values=values), inputs, predicted, part)
    spread = np.log(size.held_out).std(axis=0)
    assert spread[1] < 0.6 * spread[0]


@pytest.mark.parametrize("q", [1, 40])
def test_constant_noise_is_seldom_said_to_vary(q):
    """Sizes of rows that are left out do not gain by chance, however many columns there are."""
    taken = 0
    for seed in range(20):
        taken += estimate_error_size(*draw(80, q=q, seed=seed, growth=1.0)) is not None
    assert taken <= 6


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 15},
        {"part": np.zeros(100, dtype=int)},
        {"scale": 0.0},
        {"columns": 70},
    ],
)
def test_no_sizes_without_enough_to_estimate_them(change):
    residuals, inputs, predicted, part = draw(change.get("rows", 100))
    residuals = replace(residuals, values=change.get("scale", 1.0) * residuals.values)
    part = change.get("part", part)
    if "columns" in change:
        inputs, predicted = np.zeros((100, 70)), np.zeros((100, 0))
    assert estimate_error_size(residuals, inputs, predicted, part) is None


def test_units_of_inputs_and_of_weights_do_not_matter():
    residuals, inputs, predicted, part = draw(200)
    expected = estimate_error_size(residuals, inputs, predicted, part)
    doubled = replace(residuals, weight=2.0 * residuals.weight)
    other = estimate_error_size(doubled, inputs, predicted, part)
    np.testing.assert_array_equal(other.held_out, expected.held_out)
    moved = 1e3 * inputs - 50.0
    other = estimate_error_size(residuals, moved, predicted, part)
    np.testing.assert_allclose(other.held_out, expected.held_out, rtol=1e-6)
    np.testing.assert_allclose(other(moved, predicted), expected(inputs, predicted), rtol=1e-6)


def test_copies_of_a_row_are_one_row():
    residuals, inputs, predicted, part = draw(200)
    order = np.random.default_rng(3).permutation(400)
    values, row = (np.tile(x, (2, 1))[order] for x in (residuals.values, residuals.row[:, None]))
    copies = Residuals(values, np.full(400, 0.5), row[:, 0], np.ones(400))
    found = estimate_error_size(copies, inputs, predicted, part)
    expected = estimate_error_size(residuals, inputs, predicted, part)
    np.testing.assert_allclose(found.held_out, expected.held_out, rtol=1e-6)
    np.testing.assert_allclose(found.of(copies), expected.held_out[copies.row], rtol=1e-6)


def test_missing_targets_and_inputs():
    residuals, inputs, predicted, part = draw(300, p=3)
    rng = np.random.default_rng(4)
    values = np.where(rng.random((300, 3)) < 0.5, np.nan, residuals.values)
    values[np.isnan(values).all(axis=1), 0] = 1.0
    inputs[::7, 1] = np.nan
    inputs[:, 2] = np.nan
    predicted = np.where(np.isnan(values), np.nan, predicted)
    size = estimate_error_size(replace(residuals, values=values), inputs, predicted, part)
    assert np.isfinite(size.held_out).all()
    ends = size(np.array([[0.05, np.nan, 1.0], [0.95, 0.5, np.nan]]), np.zeros((2, 3)))
    assert (ends[1] > 1.8 * ends[0]).all()


def test_outliers_do_not_decide():
    residuals, inputs, predicted, part = draw(200, growth=1.0, seed=5)
    values = residuals.values.copy()
    values[:3] *= 1e6
    size = estimate_error_size(replace(residuals, values=values), inputs, predicted, part)
    assert size is None or (np.abs(np.log(size.held_out)) < 1.0).all()
