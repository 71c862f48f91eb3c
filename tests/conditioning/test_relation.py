"""A relation that depends on the input: the definition, the shrinkage, and when it is taken."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.conditioning import relation as module
from entangled_kernels.conditioning.relation import Relation, fit_relation, relation_of_strength
from entangled_kernels.conditioning.row_likelihood import RowsWithBlanks, row_likelihood

from reference import relation as dense


def a_table(seed, n=40, p=4, q=3, blanks=0.0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, p))
    Z[rng.random(size=(n, p)) < blanks] = np.nan
    return Z, rng.normal(size=(n, q)), rng.uniform(0.2, 1.0, size=n)


def a_correlation(seed, p):
    B = np.random.default_rng(seed).normal(size=(p, p + 2))
    S = B @ B.T
    return S / np.sqrt(np.outer(np.diag(S), np.diag(S)))


def shrunk_correlation(Z, weight):
    Z = np.nan_to_num(Z)
    S = (weight[:, None] * Z).T @ Z / weight.sum()
    S = S / np.sqrt(np.outer(np.diag(S), np.diag(S)))
    return 0.95 * S + 0.05 * np.eye(len(S))


def constant_draw(rng, n, p, q):
    return rng.normal(size=(n, p)) @ np.linalg.cholesky(a_correlation(p, p)).T, rng.normal(size=(n, q))


def turning_draw(rng, n, p, q):
    """The correlation of the first two targets goes from -0.8 to 0.8 along the first feature."""
    U = rng.uniform(-np.sqrt(3), np.sqrt(3), size=(n, q))
    Z = rng.normal(size=(n, p))
    rho = 0.8 * U[:, 0] / np.sqrt(3)
    Z[:, 1] = rho * Z[:, 0] + np.sqrt(1 - rho**2) * Z[:, 1]
    return Z, U


def scaled_draw(rng, n, p, q):
    """A constant relation, and a scale that depends on the input."""
    Z, U = constant_draw(rng, n, p, q)
    return Z * np.exp(0.4 * U[:, :1]), U


def fit(Z, U, rule, seed=0, **changed):
    n = len(Z)
    arguments = {"group": np.arange(n), "weight": np.ones(n), "constant": shrunk_correlation(Z, np.ones(n))}
    arguments |= {"estimate": shrunk_correlation, "rng": np.random.default_rng(seed)} | changed
    return fit_relation(Z, U, rule=rule, **arguments)


def training(Z, U, weight, constant):
    return module._Training.of(Z, np.column_stack([np.ones(len(U)), U]), weight, constant)


tables = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(0, 4), st.integers(1, 3))


@settings(max_examples=25, deadline=None)
@given(tables, st.sampled_from([0.0, 0.3]))
def test_likelihood_is_that_of_one_gaussian_per_row(sizes, blanks):
    seed, p, q, r = sizes
    Z, U, _ = a_table(seed, 12, p, q, blanks)
    fitted = Relation(a_correlation(seed, p), np.random.default_rng(seed).normal(size=(r, p, q + 1)))
    expected = dense.log_likelihood(fitted.psi, fitted.operators, Z, U)
    np.testing.assert_allclose(fitted.log_likelihood(Z, U), expected, rtol=1e-8, atol=1e-8)
    spread = fitted.spread(U)
    for v, u in zip(spread, U, strict=True):
        np.testing.assert_allclose(
            fitted.psi + v @ v.T, dense.covariance(fitted.psi, fitted.operators, u), atol=1e-10
        )


def test_a_row_without_residuals_has_likelihood_one():
    fitted = Relation(np.eye(2), np.ones((1, 2, 2)))
    assert fitted.log_likelihood(np.full((1, 2), np.nan), np.ones((1, 1))) == pytest.approx([0.0])


@pytest.mark.parametrize("blanks", [0.0, 0.3])
def test_left_out_errors_are_those_of_the_definition(blanks):
    Z, U, weight = a_table(1, blanks=blanks)
    fitted = Relation(a_correlation(1, 4), np.random.default_rng(1).normal(size=(2, 4, 4)))
    rows = RowsWithBlanks.of(Z, U, weight)
    errors = module._left_out_errors(rows, row_likelihood(rows, fitted.psi, fitted.spread(U)))
    expected = [dense.left_out_error(fitted.psi, fitted.operators, z, u) for z, u in zip(Z, U, strict=True)]
    np.testing.assert_allclose(errors, expected, rtol=1e-8, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(tables, st.sampled_from([0.0, 0.3]))
def test_objective_is_the_penalised_likelihood_and_its_mean_covariance_the_constant_one(sizes, blanks):
    seed, p, q, r = sizes
    Z, U, weight = a_table(seed, 30, p, q, blanks)
    constant = a_correlation(seed, p)
    it = training(Z, U, weight, constant)
    A = np.random.default_rng(seed).normal(size=(r, p, q + 1))
    L, operators, _ = module._unfold(A, it.root)
    psi, operators = L @ L.T, operators @ it.whitening.T
    value, _ = module._objective(A, it.rows, it.root, 0.3)
    assert value == pytest.approx(dense.penalised(psi, operators, Z, U, weight, 0.3), rel=1e-8)
    mean = sum(w * dense.covariance(psi, operators, u) for w, u in zip(weight, U, strict=True)) / weight.sum()
    np.testing.assert_allclose(mean, constant, atol=1e-9)


@pytest.mark.parametrize("blanks", [0.0, 0.3])
def test_gradient_is_the_slope_of_the_objective(blanks):
    Z, U, weight = a_table(2, blanks=blanks)
    it = training(Z, U, weight, a_correlation(2, 4))
    rng = np.random.default_rng(3)
    A, direction = rng.normal(size=(2, 2, 4, 4))
    value = [module._objective(A + step * direction, it.rows, it.root, 0.3)[0] for step in (-1e-5, 1e-5)]
    slope = np.sum(module._objective(A, it.rows, it.root, 0.3)[1] * direction)
    assert slope == pytest.approx((value[1] - value[0]) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("blanks", [0.0, 0.3])
def test_curvature_is_the_second_difference_at_the_constant_relation(blanks):
    Z, U, weight = a_table(4, blanks=blanks)
    constant = a_correlation(4, 4)
    it = training(Z, U, weight, constant)
    H = module._curvature(it.rows, it.root)
    A = np.random.default_rng(5).normal(size=(1, 4, 4))
    at = [module._objective(step * A, it.rows, it.root, 0.0)[0] for step in (0.0, 1e-3)]
    assert A.reshape(-1) @ H @ A.reshape(-1) == pytest.approx(2 * (at[0] - at[1]) / 1e-6, rel=1e-3)
    assert it.curvatures[0] == pytest.approx(np.linalg.eigvalsh(H)[-1])


def test_above_the_largest_curvature_the_relation_is_the_constant_one_and_below_it_is_not():
    Z, U, weight = a_table(6)
    constant = a_correlation(6, 4)
    it = training(Z, U, weight, constant)
    above, below = it.path(2, it.curvatures[0] * np.array([1.01, 0.5]))
    np.testing.assert_allclose(above.psi, constant, atol=1e-12)
    assert not above.operators.any()
    assert np.abs(below.operators).max() > 0.01


@pytest.mark.parametrize("rank", [1, 2])
def test_a_path_ends_where_no_deviation_nearby_is_better(rank):
    """Against the definition in other coordinates, psi = root (I - sum N N^T) root^T."""
    Z, U = turning_draw(np.random.default_rng(0), 60, 3, 2)
    weight = np.ones(60)
    constant = shrunk_correlation(Z, weight)
    it = training(Z, U, weight, constant)
    alpha = 0.1 * it.curvatures[0]
    end = it.path(rank, it.curvatures[0] * np.array([0.5, 0.1]))[-1]
    C = np.linalg.inv(
        dense.inverse_root(np.column_stack([np.ones(60), U]).T @ np.column_stack([np.ones(60), U]) / 60)
    )
    N = np.linalg.solve(it.root, end.operators @ C)
    best = dense.penalised(end.psi, end.operators, Z, U, weight, alpha)
    assert dense.penalised(*dense.held_mean(N, constant, U, weight), Z, U, weight, alpha) == pytest.approx(
        best
    )
    rng = np.random.default_rng(1)
    for _ in range(20):
        other = N + 0.05 * rng.normal(size=N.shape) / np.sqrt(N.size)
        moved = dense.penalised(*dense.held_mean(other, constant, U, weight), Z, U, weight, alpha)
        assert moved > best - 1e-5


def test_copies_of_rows_that_share_their_weight_change_no_relation():
    Z, U = turning_draw(np.random.default_rng(0), 80, 2, 1)
    once, first = fit(Z, U, "entangled")
    twice, second = fit(
        np.tile(Z, (2, 1)),
        np.tile(U, (2, 1)),
        "entangled",
        group=np.tile(np.arange(80), 2),
        weight=np.full(160, 0.5),
        constant=shrunk_correlation(Z, np.ones(80)),
    )
    np.testing.assert_allclose(twice.psi, once.psi, atol=1e-6)
    np.testing.assert_allclose(twice.spread(U), once.spread(U), atol=1e-5)
    assert second == pytest.approx(first, rel=1e-4)


def test_rows_without_residuals_change_nothing():
    Z, U = turning_draw(np.random.default_rng(0), 80, 2, 1)
    expected, _ = fit(Z, U, "entangled")
    found, _ = fit(
        np.vstack([Z, np.full((3, 2), np.nan)]),
        np.vstack([U, np.full((3, 1), 9.0)]),
        "entangled",
        constant=shrunk_correlation(Z, np.ones(80)),
    )
    np.testing.assert_array_equal(found.psi, expected.psi)
    np.testing.assert_array_equal(found.operators, expected.operators)


def test_features_in_other_units_tell_the_same():
    Z, U = turning_draw(np.random.default_rng(0), 80, 2, 2)
    once, _ = fit(Z, U, "entangled")
    other, _ = fit(Z, U @ np.array([[2.0, 1.0], [0.0, 0.1]]) + 3.0, "entangled")
    expected = once.log_likelihood(Z, U)
    moved = other.log_likelihood(Z, U @ np.array([[2.0, 1.0], [0.0, 0.1]]) + 3.0)
    np.testing.assert_allclose(moved, expected, atol=1e-3)


def test_a_feature_that_repeats_another_is_no_error():
    Z, U = turning_draw(np.random.default_rng(0), 80, 2, 1)
    once, _ = fit(Z, U, "entangled")
    doubled, _ = fit(Z, np.column_stack([U, U]), "entangled")
    moved = doubled.log_likelihood(Z, np.column_stack([U, U]))
    np.testing.assert_allclose(moved, once.log_likelihood(Z, U), atol=1e-3)


def share_taken(draw, n, p, q, draws=8):
    taken = []
    for seed in range(draws):
        Z, U = draw(np.random.default_rng([seed, n, p]), n, p, q)
        taken.append(fit(Z / np.sqrt(np.mean(Z**2, axis=0)), U, "auto", seed)[1]["taken"])
    return np.mean(taken)


@pytest.mark.parametrize(("n", "p", "q"), [(50, 3, 3), (100, 5, 5)])
def test_auto_keeps_a_constant_relation(n, p, q):
    assert share_taken(constant_draw, n, p, q) <= 0.25


def test_auto_keeps_a_constant_relation_whose_scale_depends_on_the_input():
    assert share_taken(scaled_draw, 100, 4, 3) <= 0.25


def test_auto_takes_a_relation_that_turns_and_predicts_one_target_from_the_other_better():
    assert share_taken(turning_draw, 150, 2, 1) >= 0.75
    rng = np.random.default_rng(0)
    Z, U = turning_draw(rng, 200, 2, 1)
    found, diagnostics = fit(Z, U, "auto")
    new, at = turning_draw(rng, 4000, 2, 1)
    v = found.spread(at)
    S = found.psi + v @ v.transpose(0, 2, 1)
    constant = shrunk_correlation(Z, np.ones(200))
    error = np.mean((new[:, 1] - S[:, 0, 1] / S[:, 0, 0] * new[:, 0]) ** 2)
    # The truth removes the mean of rho^2, 0.21, of what the constant relation leaves.
    assert error < 0.85 * np.mean((new[:, 1] - constant[0, 1] * new[:, 0]) ** 2)
    assert diagnostics["error"] > 1.5 * diagnostics["error_se"] > 0.0
    assert diagnostics["log_likelihood"] > diagnostics["log_likelihood_se"] > 0.0


def test_blank_cells_leave_a_turning_relation_to_be_found():
    rng = np.random.default_rng(0)
    Z, U = turning_draw(rng, 300, 3, 1)
    Z[rng.random(size=Z.shape) < 0.2] = np.nan
    found, _ = fit(Z, U, "auto")
    v = found.spread(np.array([[-1.5], [1.5]]))
    low, high = (found.psi + v @ v.transpose(0, 2, 1))[:, 0, 1]
    assert low < -0.3
    assert high > 0.3


def test_one_target_has_no_relation_to_take():
    Z, U = scaled_draw(np.random.default_rng(0), 100, 1, 1)
    for rule in ("auto", "entangled"):
        assert fit(Z, U, rule) == (None, {"taken": False})


def test_same_generator_same_relation():
    Z, U = turning_draw(np.random.default_rng(0), 60, 2, 1)
    first, second = (fit(Z, U, "entangled", seed=5)[0] for _ in range(2))
    np.testing.assert_array_equal(first.operators, second.operators)


@pytest.mark.parametrize("shape", [(30, 65), (9, 3)])
def test_too_many_targets_or_too_few_rows(shape):
    Z = np.random.default_rng(0).normal(size=shape)
    assert fit(Z, np.ones((len(Z), 1)), "auto") == (None, {"taken": False})
    with pytest.raises(ValueError, match="at most 64 targets and at least 10 rows, got"):
        fit(Z, np.ones((len(Z), 1)), "entangled")


def test_bad_arguments():
    Z, U = turning_draw(np.random.default_rng(0), 30, 2, 1)
    with pytest.raises(ValueError, match="rule must be 'entangled' or 'auto', got 'constant'"):
        fit(Z, U, "constant")
    with pytest.raises(ValueError, match="U must have a row for each of the 30 rows of Z, got 29"):
        fit(Z, U[1:], "auto")
    with pytest.raises(ValueError, match="weight must have a row"):
        fit(Z, U, "auto", weight=np.ones(3))
    with pytest.raises(ValueError, match=r"constant must have shape \(2, 2\)"):
        fit(Z, U, "auto", constant=np.eye(3))
    with pytest.raises(ValueError, match="must be positive definite; shrink it"):
        fit(Z, U, "auto", constant=np.ones((2, 2)))


def test_a_relation_of_known_strength_is_the_one_chosen():
    rng = np.random.default_rng(0)
    U = rng.uniform(-1.7, 1.7, size=(150, 1))
    Z = rng.normal(size=(150, 2))
    Z[:, 1] = 0.5 * U[:, 0] * Z[:, 0] + np.sqrt(1 - 0.25 * U[:, 0] ** 2) * Z[:, 1]
    found, facts = fit_relation(
        Z, U, np.arange(150), np.ones(150), np.eye(2), "entangled", lambda Z, weight: np.eye(2), rng
    )
    again = relation_of_strength(Z, U, np.ones(150), np.eye(2), facts["rank"], facts["strength"])
    np.testing.assert_allclose(again.psi, found.psi, atol=1e-4)
