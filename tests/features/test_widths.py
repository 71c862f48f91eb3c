import numpy as np
import pytest
from scipy.optimize import approx_fprime

from entangled_kernels.features import evidence as module
from entangled_kernels.features.evidence import (
    COMMON,
    SHAPES,
    PenalisedEvidence,
    group_targets,
    likelihood_slopes,
    tune_widths,
)

from reference.evidence import mean_log_density


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(25, 4))
    Y = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 1] ** 2, X[:, 0] + 0.3 * rng.normal(size=25)])
    return X, (Y - Y.mean(axis=0)) / Y.std(axis=0)


@pytest.fixture
def theta(rng):
    return np.append(np.log([0.7, 0.05, 0.1, 0.2, 1.5]), 0.5 * rng.normal(size=4))


def start(d=4):
    return np.append(np.log([0.5, 0.1, 0.1, 0.1, 2.0]), np.zeros(d))


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_likelihood_is_the_density(rows, theta, shape, squares):
    X, Y = rows
    value, _ = PenalisedEvidence(X, Y, None, 2.0, shape, squares=squares).likelihood(theta)
    assert value == pytest.approx(mean_log_density(X, Y, theta, shape, squares), rel=1e-10)


def test_missing_targets_do_not_count(rows, theta):
    X, Y = rows
    Y[:5, 0], Y[20:, 1] = np.nan, np.nan
    evidence = PenalisedEvidence(X, Y, None, 2.0)
    assert evidence.likelihood(theta)[0] == pytest.approx(
        mean_log_density(X, Y, theta, "gaussian"), rel=1e-10
    )


def test_of_many_groups_of_targets_the_fullest_count(rows, theta, rng):
    X, _ = rows
    Y = rng.normal(size=(25, 20))
    for column in range(20):
        Y[: column + 1, column] = np.nan
    fullest = PenalisedEvidence(X, Y[:, :16], None, 2.0).likelihood(theta)[0]
    assert PenalisedEvidence(X, Y, None, 2.0).likelihood(theta)[0] == pytest.approx(fullest)
    empty = np.column_stack([Y[:, 0], np.full(25, np.nan)])
    known = PenalisedEvidence(X, Y[:, :1], None, 2.0).likelihood(theta)[0]
    assert PenalisedEvidence(X, empty, None, 2.0).likelihood(theta)[0] == pytest.approx(known)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_slopes_are_those_of_the_values(rows, theta, rng, shape, squares, missing, weighted):
    X, Y = rows
    # Rows that are alike stay so.
    X[3] = X[4]
    Y[:5, 0] = np.nan if missing else Y[:5, 0]
    weight = rng.uniform(0.5, 3.0, size=25) if weighted else None
    evidence = PenalisedEvidence(X, Y, weight, 2.0, shape, squares=squares)
    slope = approx_fprime(theta, lambda at: evidence.likelihood(at)[0], 1e-6)
    np.testing.assert_allclose(evidence.likelihood(theta)[1], slope, rtol=1e-4, atol=1e-4)
    at = theta + 0.1
    slope = approx_fprime(at, lambda other: evidence.loss(other, 0.5)[0], 1e-6)
    np.testing.assert_allclose(evidence.loss(at, 0.5)[1], slope, rtol=1e-4, atol=1e-4)
    slope = approx_fprime(at[:COMMON], lambda other: evidence.loss(other, 0.0)[0], 1e-6)
    np.testing.assert_allclose(evidence.loss(at[:COMMON], 0.0)[1], slope, rtol=1e-4, atol=1e-4)


def test_weights_are_repeated_rows(rows, theta, rng):
    X, Y = rows
    counts = rng.integers(1, 4, size=25)
    weighted = PenalisedEvidence(X, Y, counts.astype(float), 2.0)
    repeated = PenalisedEvidence(
        np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0), None, 2.0
    )
    assert weighted.n_effective == pytest.approx(repeated.n_effective)
    # They differ by what no parameter changes.
    other = theta + 0.1
    differences = [
        one.likelihood(theta)[0] - one.likelihood(other)[0] for one in (weighted, repeated)
    ]
    assert differences[0] == pytest.approx(differences[1])
    np.testing.assert_allclose(
        weighted.likelihood(theta)[1], repeated.likelihood(theta)[1], atol=1e-7
    )


def test_outputs_count_through_their_gram_matrix(rows, theta, rng):
    X, Y = rows
    rotation = np.linalg.qr(rng.normal(size=(50, 3)))[0]
    few, many = (
        PenalisedEvidence(X, own, None, 2.0) for own in (Y, Y @ rotation.T * np.sqrt(50 / 3))
    )
    assert many.groups[0][2].shape == (25, 25)
    assert many.n_effective == pytest.approx(few.n_effective)
    assert many.likelihood(theta)[0] == pytest.approx(few.likelihood(theta)[0])
    np.testing.assert_allclose(many.likelihood(theta)[1], few.likelihood(theta)[1], atol=1e-8)


def test_correlated_outputs_count_less(rows, rng):
    X, Y = rows
    alike = np.repeat(Y[:, :1], 5, axis=1)
    assert PenalisedEvidence(X, alike, None, 2.0).n_effective == pytest.approx(1.0)
    axes = np.linalg.qr(rng.normal(size=(25, 5)))[0]
    assert PenalisedEvidence(X, axes, None, 2.0).n_effective == pytest.approx(5.0)
    assert PenalisedEvidence(X, np.zeros((25, 2)), None, 2.0).n_effective == 1.0


def test_curvature_of_a_quadratic_gives_its_evidence(rows, monkeypatch):
    """Where the loss is quadratic in the log widths, Laplace's approximation is no approximation."""
    evidence = PenalisedEvidence(*rows, None, 2.0)
    H = np.diag([4.0, 3.0, 2.0, 1.0])

    def loss(theta, spread):
        u = theta[COMMON:]
        penalty = u / spread**2
        return 0.5 * u @ (H @ u + penalty), np.append(np.zeros(COMMON), H @ u + penalty)

    monkeypatch.setattr(evidence, "loss", loss)
    # The integral of N(u; 0, spread^2) exp(-u^T H u / 2) is |I + spread^2 H|^-1/2.
    expected = -0.5 * np.log(1.0 + 0.25 * np.diag(H)).sum()
    assert evidence.log_evidence(np.zeros(9), 0.5) == pytest.approx(expected)


def test_the_evidence_of_a_small_spread_is_that_of_one_width(rows):
    evidence = PenalisedEvidence(*rows, None, 2.0)
    at = evidence.optimum(start(), 0.0)
    assert evidence.log_evidence(at, 1e-4) == pytest.approx(
        evidence.log_evidence(at, 0.0), abs=1e-4
    )


def test_columns_that_do_not_matter_fade_out(rng):
    X = rng.normal(size=(80, 6))
    y = np.sin(2.0 * X[:, :1]) + 0.05 * rng.normal(size=(80, 1))
    theta, spread, likelihood = tune_widths(PenalisedEvidence(X, y, None, 2.0), start(6))
    assert spread > 0.5
    assert theta[COMMON] < theta[COMMON + 1 :].min() - 1.0
    one_width = tune_widths(PenalisedEvidence(X, y, None, 2.0), start(6), 0.0)
    assert likelihood > one_width[2] + 5.0


def test_few_rows_with_many_columns_keep_one_width(rng):
    X = rng.normal(size=(30, 60))
    Y = X @ rng.normal(size=(60, 3)) + rng.normal(size=(30, 3))
    found = tune_widths(PenalisedEvidence(X, Y / Y.std(axis=0), None, 2.0), start(60))
    assert found[1] == min(module.SPREADS)


def test_a_matrix_without_a_factor_is_no_optimum(rows):
    _, Y = rows
    assert likelihood_slopes(group_targets(Y, np.ones(25)), -np.eye(25), 0.0) is None


def test_wide_tables_have_one_width_and_are_reduced_exactly(rng):
    X = rng.normal(size=(20, 300))
    Y = X[:, :2] + 0.1 * rng.normal(size=(20, 2))
    theta = np.append(np.log([0.7, 0.05, 0.1, 0.2, 25.0]), np.zeros(300))
    evidence = PenalisedEvidence(X, Y, None, 24.0)
    assert evidence.X.shape == (20, 20)
    assert evidence.likelihood(theta)[0] == pytest.approx(
        mean_log_density(X, Y, theta, "gaussian"), rel=1e-9
    )
    theta, spread, _ = tune_widths(evidence)
    assert spread == 0.0
    assert theta.shape == (305,)
    assert not theta[5:].any()
