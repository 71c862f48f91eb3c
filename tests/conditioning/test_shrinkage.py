import numpy as np
import pytest

from entangled_kernels.uncertainty import choose_shrinkage, estimate_correlation, row_parts
from entangled_kernels.uncertainty import shrinkage as module


def draw(n, p, rho, seed=0):
    rng = np.random.default_rng(seed)
    R = np.full((p, p), rho) + (1.0 - rho) * np.eye(p)
    return rng.multivariate_normal(np.zeros(p), R, size=n), rng


@pytest.mark.parametrize("shape", [(40, 5), (6, 12)])
@pytest.mark.parametrize("weighted", [False, True])
def test_estimate_is_a_shrunk_correlation_about_zero(shape, weighted):
    Z, rng = draw(*shape, 0.6)
    weight = rng.uniform(0.5, 2.0, size=shape[0]) if weighted else np.ones(shape[0])
    second = (Z * weight[:, None]).T @ Z
    unit = np.sqrt(np.diag(second))
    expected = 0.7 * second / np.outer(unit, unit) + 0.3 * np.eye(shape[1])
    found = estimate_correlation(Z, weight, 0.3)
    np.testing.assert_allclose(found.dense(), expected, atol=1e-12)
    assert len(found.factor) <= min(shape)


def test_blanks_count_pairs_that_have_both():
    Z, rng = draw(4000, 3, 0.8)
    holes = np.where(rng.random(Z.shape) < 0.5, np.nan, Z)
    found = estimate_correlation(holes, np.ones(4000), 0.0).dense()
    np.testing.assert_allclose(found, np.corrcoef(Z.T), atol=0.05)
    np.testing.assert_allclose(np.diag(found), 1.0)
    # Targets that were never measured together are taken as unrelated, and the matrix stays psd.
    apart = np.where(np.arange(100)[:, None] % 2 == np.array([0, 1, 1]), draw(100, 3, 0.9)[0], np.nan)
    found = estimate_correlation(apart, np.ones(100), 0.1).dense()
    assert abs(found[0, 1]) < 1e-9
    assert np.linalg.eigvalsh(found).min() > 0.0


def test_a_target_without_errors():
    Z, _ = draw(20, 3, 0.5)
    Z[:, 1] = 0.0
    found = estimate_correlation(Z, np.ones(20), 0.2).dense()
    np.testing.assert_allclose(np.diag(found), 1.0)
    assert not found[1, [0, 2]].any()


def test_related_targets_are_shrunk_little_and_unrelated_ones_wholly():
    chosen = {}
    for rho in (0.0, 0.9):
        values = []
        for seed in range(12):
            Z, rng = draw(60, 4, rho, seed)
            values.append(choose_shrinkage(Z, np.ones(60), np.arange(60), rng))
        chosen[rho] = np.array(values)
    assert np.median(chosen[0.0]) >= 0.8
    assert chosen[0.9].max() <= 0.3


def test_what_leaves_nothing_to_choose():
    Z, rng = draw(30, 1, 0.0)
    assert choose_shrinkage(Z, np.ones(30), np.arange(30), rng) == 1.0
    Z, rng = draw(3, 4, 0.9)
    assert choose_shrinkage(Z, np.ones(3), np.arange(3), rng) == 1.0
    assert not estimate_correlation(Z, np.ones(3), 1.0).factor.size


def test_of_many_targets_and_rows_some_are_compared(monkeypatch):
    monkeypatch.setattr(module, "MOST_TARGETS", 5)
    monkeypatch.setattr(module, "MOST_ROWS", 25)
    shapes = []
    estimate = module.estimate_correlation
    monkeypatch.setattr(
        module, "estimate_correlation", lambda Z, *rest: (shapes.append(Z.shape), estimate(Z, *rest))[1]
    )
    Z, rng = draw(80, 9, 0.8)
    choose_shrinkage(Z, np.ones(80), np.arange(80), rng)
    assert set(shapes) == {(20, 5)}


def test_residuals_of_a_row_stay_together():
    row = np.array([7, 3, 7, 9, 3, 1, 1, 12])
    part = row_parts(row, 3)
    assert all(len(set(part[row == one])) == 1 for one in row)
    assert set(part) == {0, 1, 2}
    assert set(row_parts(np.array([5, 5]), 3)) == {0}
