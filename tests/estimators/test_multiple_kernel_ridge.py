import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel

from entangled_kernels import MultipleKernelRidge, OutputKernelRidge

from reference import multiple_kernels as reference

GROUPS = {"first": [0, 1], "second": [2], "third": [3, 4, 5]}


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(40, 6))
    Y = X[:, :2] @ rng.normal(size=(2, 3)) + np.outer(np.sin(X[:, 2]), [1.0, 0.0, 0.0])
    return X, Y + 0.2 * rng.normal(size=(40, 3)) + 2.0


def centred_grams(X, groups=GROUPS):
    K = np.stack([X[:, columns] @ X[:, columns].T for columns in groups.values()])
    K = K - K.mean(axis=1, keepdims=True)
    K = K - K.mean(axis=2, keepdims=True)
    return K * (len(X) / np.trace(K, axis1=1, axis2=2))[:, None, None]


@pytest.mark.parametrize("kind", ["identity", "diagonal", "shared", "own", "array", "list"])
def test_the_fit_by_definition(rows, kind, rng):
    """Coefficients, predictions and objective from the dense Gram matrix of centred and scaled kernels."""
    X, Y = rows
    B = rng.normal(size=(3, 3, 3))
    stack = list(B @ B.transpose(0, 2, 1))
    given = {"array": stack[0], "list": stack}.get(kind, kind)
    model = MultipleKernelRidge(GROUPS, alpha=0.5, output_kernel=given).fit(X, Y)
    K, T = centred_grams(X), model.output_kernels_
    C, value = reference.ridge(K, T, Y - Y.mean(axis=0), 0.5)
    np.testing.assert_allclose(model.dual_coef_, C, atol=1e-7)
    assert model.objective_ == pytest.approx(value)
    assert 0.0 <= model.duality_gap_ <= 1e-6 * value
    fit = sum(k @ C @ t for k, t in zip(K, T, strict=True)) + Y.mean(axis=0)
    np.testing.assert_allclose(model.predict(X), fit, atol=1e-7)
    assert model.kernel_names_ == ["first", "second", "third"]
    assert model.kernel_weights_.shape == ((3, 3) if kind == "diagonal" else (3,))
    assert model.converged_
    parts = model.contributions(X)
    np.testing.assert_allclose(parts.sum(axis=0) + model.intercept_, fit, atol=1e-7)


def test_the_right_group_is_chosen(rows):
    X, Y = rows
    model = MultipleKernelRidge(GROUPS, alpha=3.0, output_kernel="diagonal").fit(X, Y)
    assert (model.kernel_weights_[0] > 0.7).all()
    assert model.kernel_weights_[1, 0] > model.kernel_weights_[1, 1:].max()
    assert model.kernel_weights_[2].max() < 0.1


def test_one_kernel_is_kernel_ridge(rows):
    X, Y = rows
    model = MultipleKernelRidge(["rbf"], alpha=0.3, normalize=False, fit_intercept=False).fit(X, Y)
    peer = KernelRidge(kernel="rbf", alpha=0.3).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), peer.predict(X))
    np.testing.assert_allclose(model.kernel_weights_, 1.0)
    shared = MultipleKernelRidge(["rbf"], alpha=0.3, normalize=False, output_kernel="shared").fit(
        X, Y
    )
    ball = OutputKernelRidge("rbf", alpha=0.3, penalty="trace", constraint=True).fit(X, Y)
    np.testing.assert_allclose(shared.output_kernels_[0], ball.output_kernel_, atol=5e-3)
    np.testing.assert_allclose(shared.predict(X), ball.predict(X), atol=5e-3)


def test_kernels_of_all_kinds(rows):
    """A name, a kernel object, a function and a transformer, each against its Gram matrix."""
    X, Y = rows

    def function(x, z):
        return float(np.exp(-np.sum((x - z) ** 2) / 6))

    exact = Nystroem("rbf", n_components=40, random_state=0)
    for kernel in ("rbf", RBF(np.sqrt(3.0)), function, exact):
        model = MultipleKernelRidge([kernel], normalize=False, fit_intercept=False).fit(X, Y)
        peer = KernelRidge(kernel="precomputed").fit(rbf_kernel(X), Y)
        Z = X[:5] + 0.1
        np.testing.assert_allclose(model.predict(Z), peer.predict(rbf_kernel(Z, X)), atol=1e-6)


@pytest.mark.parametrize("kind", ["identity", "diagonal", "shared", "own", "given"])
def test_missing_targets_are_left_out(rows, rng, kind):
    """Predictions are those of ridge regression with the learned kernel on the given targets."""
    X, Y = rows
    weights = (rng.random(Y.shape) < 0.7) * rng.uniform(0.5, 2.0, size=Y.shape)
    weights[weights.max(axis=1) == 0.0] = 1.0
    given = kind if kind != "given" else [np.eye(3) + 0.1 * j for j in range(3)]
    model = MultipleKernelRidge(GROUPS, output_kernel=given, alpha=0.7)
    model.fit(X, np.where(weights > 0.0, Y, np.nan), weights)
    kernels = np.stack([A @ A.T for A in (X[:, columns] for columns in GROUPS.values())])
    T = model.output_kernels_ / model.kernel_scales_[:, None, None]
    C, value = reference.measured_ridge(kernels, T, Y, weights, 0.7, True)
    assert model.objective_ == pytest.approx(value, rel=2e-6)
    fit = sum(K @ C @ own for K, own in zip(kernels, T, strict=True))
    intercept = np.average(Y - fit, axis=0, weights=weights)
    np.testing.assert_allclose(model.predict(X), fit + intercept, atol=5e-3 * np.abs(Y).max())


def test_explained_variance_sums_to_r2(rows, rng):
    X, Y = rows
    model = MultipleKernelRidge(GROUPS, norm=2.0).fit(X, Y)
    Z = rng.normal(size=(30, 6))
    target = model.predict(Z) + 0.5 * rng.normal(size=(30, 3)) + 1.0
    shares = model.explained_variance(Z, target)
    assert shares.shape == (3, 3)
    np.testing.assert_allclose(
        shares.sum(axis=0), r2_score(target, model.predict(Z), multioutput="raw_values"), atol=1e-10
    )


def test_explained_variance_with_missing_targets(rows, rng):
    """Of every target over the rows that have it."""
    X, Y = rows
    model = MultipleKernelRidge(GROUPS, norm=2.0).fit(X, Y)
    holes = np.where(rng.random(Y.shape) < 0.3, np.nan, Y + 0.5)
    shares = model.explained_variance(X, holes)
    for o in range(3):
        kept = np.isfinite(holes[:, o])
        target = np.tile(holes[kept, o][:, None], 3)
        np.testing.assert_allclose(
            shares[:, o], model.explained_variance(X[kept], target)[:, o], atol=1e-10
        )


def test_units_of_columns_do_not_matter(rows):
    X, Y = rows
    plain = MultipleKernelRidge(GROUPS).fit(X, Y)
    scaled = MultipleKernelRidge(GROUPS).fit(X * [1e3, 1e3, 1e-3, 7, 7, 7], Y)
    np.testing.assert_allclose(scaled.kernel_weights_, plain.kernel_weights_, atol=1e-3)


def test_kernels_that_are_not_psd(rows):
    with pytest.raises(ValueError, match="kernel must be positive semi-definite"):
        MultipleKernelRidge([lambda x, z: -float(x @ z)], normalize=False).fit(*rows)
