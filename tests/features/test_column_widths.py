import numpy as np
import pytest

from entangled_kernels import ColumnWidthFeatures, EvidenceFeatures
from entangled_kernels.features import FeatureMapTraits
from entangled_kernels.features import evidence as module
from entangled_kernels.features.kernel_maps import apply_powers


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(60, 3)) * [1.0, 100.0, 1e-3] + [0.0, 50.0, 7.0]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = np.column_stack([np.sin(2.0 * Z[:, 0]), 30.0 * Z[:, 0] ** 2]) + 5.0
    return X, Y + 0.05 * rng.normal(size=Y.shape)


@pytest.mark.parametrize("shape", ["gaussian", "matern", "exponential"])
def test_features_are_exact_where_all_rows_carry_them(rows, shape):
    X, Y = rows
    features = ColumnWidthFeatures(shape).fit(X, Y)
    Phi, Z = features.transform(X), (X - features.mean_) / features.scale_
    np.testing.assert_allclose(Phi @ Phi.T, features.kernel_(Z), atol=1e-6)
    few = ColumnWidthFeatures(shape, n_components=10, max_rows=20, random_state=0).fit(X, Y)
    assert few.transform(X).shape == (60, 10)


def test_the_column_that_matters_is_narrow(rows):
    X, Y = rows
    features = ColumnWidthFeatures().fit(X, Y)
    assert features.spread_ > 0.0
    assert 3.0 * features.widths_[0] < features.widths_[1:].min()
    np.testing.assert_allclose(np.exp(features.theta_[4] + features.theta_[5:]), features.widths_)
    traits = FeatureMapTraits.of(features)
    assert traits.noise == np.exp(features.theta_[3])
    assert traits.needs_targets
    assert traits.tuned


def test_one_width_without_penalties_is_evidence_features(rows, monkeypatch):
    """But for the part whose slopes vary, which can only add to the likelihood."""
    X, Y = rows
    monkeypatch.setattr(module, "_PRIOR_SPREAD", np.full(5, 1e6))
    monkeypatch.setattr(module, "_WEIGHTS", (*module._WEIGHTS[:2], (1e-12, 1e-12)))
    features, evidence = (
        ColumnWidthFeatures("gaussian", spread=0.0).fit(X, Y),
        EvidenceFeatures().fit(X, Y),
    )
    expected = evidence.log_marginal_likelihood_
    assert features.log_marginal_likelihood_ == pytest.approx(expected, abs=1e-3)
    assert np.ptp(features.widths_) == 0.0
    assert features.noise_ == pytest.approx(evidence.noise_, rel=0.02)


def test_a_part_that_evidence_leaves_out_is_kept_small(rng):
    """Where targets are linear, evidence has no use for the Gaussian part; a weak penalty keeps a little."""
    X = rng.normal(size=(40, 3))
    Y = X @ rng.normal(size=(3, 2)) + 0.5 * rng.normal(size=(40, 2))
    free, penalised = EvidenceFeatures().fit(X, Y), ColumnWidthFeatures("gaussian").fit(X, Y)
    assert np.exp(free.kernel_.theta[0]) < 2e-5
    assert 1e-3 < np.exp(penalised.theta_[0]) < 0.5


def test_warped_features_are_those_of_symmetric_columns(rows):
    X, Y = rows
    X = np.exp(X / np.abs(X).max(axis=0) * 3.0)
    warped = ColumnWidthFeatures(warp=True).fit(X, Y)
    symmetric = apply_powers((X - X.mean(axis=0)) / X.std(axis=0), warped.powers_)
    plain = ColumnWidthFeatures().fit(symmetric, Y)
    np.testing.assert_array_equal(warped.theta_, plain.theta_)
    np.testing.assert_allclose(
        warped.transform(X), plain.transform(symmetric), rtol=1e-9, atol=1e-12
    )


def test_bad_input(rows):
    X, Y = rows
    for settings, message in (
        (
            {"shape": "round"},
            "shape must be one of 'gaussian', 'matern', 'exponential', got 'round'",
        ),
        ({"start": np.full(8, np.nan)}, r"start must be theta_ .* finite numbers of shape \(8,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            ColumnWidthFeatures(**settings).fit(X, Y)
