import numpy as np
import pytest
from scipy.stats import skew
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import PowerTransformer

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidge,
    EvidenceFeatures,
)
from entangled_kernels.features.kernel_maps import (
    POWERS,
    apply_powers,
    choose_powers,
    inverse_root,
    power_slopes,
)


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(40, 3)) * [1.0, 100.0, 1e-3] + [0.0, 50.0, 7.0]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.column_stack([np.sin(Z[:, 0]), Z[:, 1] + 0.1 * Z[:, 2] ** 2])


def test_features_are_exact_where_all_rows_carry_them(rows):
    X, Y = rows
    features = EvidenceFeatures().fit(X, Y)
    Phi, Z = features.transform(X), (X - features.mean_) / features.scale_
    np.testing.assert_allclose(Phi @ Phi.T, features.kernel_(Z), atol=1e-8)
    few = EvidenceFeatures(n_components=10, max_rows=20, random_state=0).fit(X, Y)
    assert few.transform(X).shape == (40, 10)
    assert few.components_.shape == (10, 3)


def test_ridge_on_them_is_the_process_mean(rows):
    """With the noise found as alpha, and no intercept, kernel ridge is the Gaussian process."""
    X, Y = rows
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    features = EvidenceFeatures().fit(X, Y)
    model = EntangledKernelRidge(
        features, shrinkage=1.0, alpha=features.noise_, fit_intercept=False
    )
    Z = (X - features.mean_) / features.scale_
    K = features.kernel_(Z)
    expected = K @ np.linalg.solve(K + features.noise_ * np.eye(40), Y)
    np.testing.assert_allclose(model.fit(X, Y).predict(X), expected, atol=1e-7)


@pytest.mark.parametrize("warp", [False, True])
@pytest.mark.parametrize("kind", [EvidenceFeatures, ColumnWidthFeatures])
def test_what_is_out_of_reach_counts_as_the_farthest_within(rows, kind, warp):
    X, Y = rows
    limited, free = kind(warp=warp, reach=0.5).fit(X, Y), kind(warp=warp).fit(X, Y)
    width = np.ptp(X, axis=0)
    near, far = X.max(axis=0) + 0.5 * width, X.max(axis=0) + 50.0 * width
    # Rows within reach, the training rows among them, are mapped as without a limit.
    np.testing.assert_array_equal(limited.transform(X), free.transform(X))
    np.testing.assert_allclose(
        limited.transform([near]), free.transform([near]), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(limited.transform([far]), limited.transform([near]))
    assert np.abs(free.transform([far]) - free.transform([near])).max() > 0.1
    # What was fitted stays; a new reach counts from the next fit on.
    np.testing.assert_array_equal(free.set_params(reach=0.0).transform(X), limited.transform(X))
    assert np.isinf(free.lower_).all()


def test_warped_features_are_those_of_symmetric_columns(rows):
    X, Y = rows
    X = np.exp(X / np.abs(X).max(axis=0) * 3.0)
    warped = EvidenceFeatures(warp=True).fit(X, Y)
    symmetric = apply_powers((X - X.mean(axis=0)) / X.std(axis=0), warped.powers_)
    plain = EvidenceFeatures().fit(symmetric, Y)
    np.testing.assert_allclose(
        warped.transform(X), plain.transform(symmetric), rtol=1e-9, atol=1e-12
    )
    assert warped.noise_ == plain.noise_
    # A column in other units, or far away, is the same column.
    moved = EvidenceFeatures(warp=True).fit(1e3 * X + 7.0, Y)
    np.testing.assert_allclose(
        moved.transform(1e3 * X + 7.0), warped.transform(X), rtol=1e-6, atol=1e-9
    )
    # A row that counts twice is two rows.
    double = EvidenceFeatures(warp=True).fit(X, Y, np.where(np.arange(40) < 5, 2.0, 1.0))
    twice = EvidenceFeatures(warp=True).fit(np.vstack([X, X[:5]]), np.vstack([Y, Y[:5]]))
    np.testing.assert_allclose(double.column_scale_, twice.column_scale_)
    np.testing.assert_array_equal(double.powers_, twice.powers_)
    np.testing.assert_allclose(double.transform(X), twice.transform(X), rtol=1e-6, atol=1e-9)


def test_own_kernel_and_constant_columns(rows):
    X, Y = rows
    X[:, 1] = 4.0
    Y = np.column_stack([Y, np.full(40, 2.0)])
    features = EvidenceFeatures(RBF(1.0), random_state=0).fit(X, Y)
    assert isinstance(features.kernel_, RBF)
    assert np.isfinite(features.transform(X)).all()


def test_noise_must_be_positive(rows):
    with pytest.raises(ValueError, match=r"noise must be a positive number, got 0\.0"):
        EvidenceFeatures(noise=0.0).fit(*rows)


def test_inverse_root_of_full_and_of_low_rank(rng):
    F = rng.normal(size=(6, 6))
    root = inverse_root(F @ F.T)
    np.testing.assert_allclose(root @ (F @ F.T) @ root, np.eye(6), atol=1e-9)
    low = F[:, :2] @ F[:, :2].T
    root = inverse_root(low)
    np.testing.assert_allclose(root @ root, np.linalg.pinv(low), atol=1e-9)
    assert not inverse_root(np.zeros((2, 2))).any()


@pytest.fixture
def columns(rng):
    """A normal column, and three skewed ones, standardised."""
    normal = rng.normal(size=(200, 4))
    X = np.exp(normal)
    X[:, 0], X[:, 2], X[:, 3] = normal[:, 0], 5.0 - X[:, 2], normal[:, 3] ** 2
    return (X - X.mean(axis=0)) / X.std(axis=0)


def powers_of(U, weight=None):
    weight = np.ones(len(U)) if weight is None else weight
    return choose_powers(U, weight, np.random.RandomState(0))


def test_columns_become_symmetric(columns):
    powers = powers_of(columns)
    before, after = np.abs(skew(columns)), np.abs(skew(apply_powers(columns, powers)))
    assert before[1:].min() > 1.5
    assert (after[1:] < 0.4 * before[1:]).all()
    assert powers[0] == pytest.approx(1.0, abs=0.25)


def test_powers_and_values_are_those_of_scikit_learn(columns):
    """The powers agree to the step between those that are tried."""
    powers, reference = powers_of(columns), PowerTransformer(standardize=False).fit(columns)
    expected = np.clip(reference.lambdas_, POWERS[0], POWERS[-1])
    np.testing.assert_allclose(powers, expected, atol=POWERS[1] - POWERS[0])
    reference.lambdas_ = powers
    expected = reference.transform(columns)
    np.testing.assert_allclose(apply_powers(columns, powers), expected, rtol=1e-9, atol=1e-12)


def test_slopes_are_differences(columns):
    powers, step = powers_of(columns), 1e-6
    above, below = (apply_powers(columns + sign * step, powers) for sign in (1.0, -1.0))
    differences = (above - below) / (2.0 * step)
    np.testing.assert_allclose(power_slopes(columns, powers), differences, rtol=1e-6, atol=1e-8)


def test_weights_of_rows_count_in_powers(columns, rng):
    counts = rng.integers(1, 3, size=len(columns))
    repeated = powers_of(np.repeat(columns, counts, axis=0))
    np.testing.assert_array_equal(powers_of(columns, counts * 1.0), repeated)


def test_constant_columns_keep_their_values(columns):
    powers = powers_of(np.column_stack([columns, np.zeros(200)]))
    assert powers[-1] == 1.0
    assert np.isfinite(apply_powers(np.full((1, 5), 1e6), powers)).all()


def test_powers_of_many_rows_are_chosen_on_some_at_random(rng):
    """Every other row is skewed, so that rows in order would mislead."""
    X = np.where(np.arange(8000) % 2, np.exp(rng.normal(size=8000)), rng.normal(size=8000))[:, None]
    U = (X - X.mean()) / X.std()
    power, again = powers_of(U)[0], powers_of(rng.permutation(U))[0]
    assert power == pytest.approx(again, abs=0.25)
    assert power < 0.9
