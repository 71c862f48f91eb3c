import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from entangled_kernels import MultiViewKernelClassifier, MultiViewKernelRidge, OutputKernelRidge

VIEWS = {"first": [0, 1], "second": [2], "third": [3, 4, 5]}


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(50, 6))
    Y = np.column_stack([np.sin(X[:, 0]) + X[:, 2], X[:, 1] ** 2, X[:, 2]]) + 0.1 * rng.normal(
        size=(50, 3)
    )
    return X, Y


def summed_kernel(X, Z, weights=(1.0, 1.0, 1.0)):
    gammas = (1 / 2, 1.0, 1 / 3)
    grams = [
        rbf_kernel(X[:, c], Z[:, c], gamma=g) for c, g in zip(VIEWS.values(), gammas, strict=True)
    ]
    return sum(w * K for w, K in zip(weights, grams, strict=True))


def test_it_is_output_kernel_learning_on_the_sum(rows):
    X, Y = rows
    model = MultiViewKernelRidge(VIEWS, normalize=False, alpha=0.2, eta=2.0).fit(X, Y)
    ridge = np.cbrt(2.0 * 0.2**2)
    peer = OutputKernelRidge("precomputed", alpha=ridge).fit(summed_kernel(X, X), Y)
    Z = X[:7] + 0.1
    np.testing.assert_allclose(model.predict(Z), peer.predict(summed_kernel(Z, X)), atol=1e-8)
    np.testing.assert_allclose(model.output_kernel_, peer.output_kernel_, atol=1e-8)
    assert model.view_names_ == ["first", "second", "third"]
    np.testing.assert_array_equal(model.view_weights_, 1.0)


def test_sparse_drops_views_of_no_use(rows):
    X, Y = rows
    model = MultiViewKernelRidge(VIEWS, sparse=True, alpha=1.0, eta=2.0).fit(X, Y[:, [0, 2]])
    assert model.view_weights_[2] < 0.05 * model.view_weights_[1]
    assert model.duality_gap_ <= 1e-6 * model.objective_
    C = model.dual_coef_
    np.testing.assert_allclose(Y[:, [0, 2]] - model.predict(X), np.sqrt(2.0) * C, atol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_missing_view_has_a_zero_kernel(rows, kernel, rng):
    """Fit and predict by the Gram matrix with zeros where either row lacks a view."""
    X, Y = rows
    views = [(name, kernel, columns) for name, columns in VIEWS.items()]
    gammas = (1 / 2, 1.0, 1 / 3)
    Z = rng.normal(size=(9, 6))
    X, Z = X.copy(), Z.copy()
    X[:8, :2], X[5:12, 3:], Z[:3, :2], Z[4, 2] = np.nan, np.nan, np.nan, np.nan
    Z[8] = np.nan
    model = MultiViewKernelRidge(views, normalize=False, fit_intercept=False).fit(X, Y)

    def gram(A, B):
        total = 0.0
        for columns, gamma in zip(VIEWS.values(), gammas, strict=True):
            a, b = np.nan_to_num(A[:, columns]), np.nan_to_num(B[:, columns])
            K = rbf_kernel(a, b, gamma=gamma) if kernel == "rbf" else a @ b.T
            total = total + K * np.outer(~np.isnan(A[:, columns[0]]), ~np.isnan(B[:, columns[0]]))
        return total

    ridge = np.cbrt(0.1**2)
    peer = OutputKernelRidge("precomputed", alpha=ridge, fit_intercept=False).fit(gram(X, X), Y)
    np.testing.assert_allclose(model.predict(Z), peer.predict(gram(Z, X)), atol=1e-7)
    np.testing.assert_allclose(model.predict(Z)[8], 0.0)


def test_with_an_intercept_a_missing_view_says_what_its_mean_says(rows):
    """Kernels centred over the rows that have the view, and zero elsewhere, by their definition."""
    X, Y = rows
    X = X.copy()
    X[:8, :2], X[5:12, 3:] = np.nan, np.nan
    model = MultiViewKernelRidge(VIEWS, normalize=False).fit(X, Y)
    K = np.zeros((50, 50))
    for columns, gamma in zip(VIEWS.values(), (1 / 2, 1.0, 1 / 3), strict=True):
        there = np.flatnonzero(~np.isnan(X[:, columns[0]]))
        H = np.eye(len(there)) - 1 / len(there)
        K[np.ix_(there, there)] += H @ rbf_kernel(X[np.ix_(there, columns)], gamma=gamma) @ H
    peer = OutputKernelRidge("precomputed", alpha=np.cbrt(0.1**2)).fit(K, Y)
    np.testing.assert_allclose(model.predict(X), peer.predict(K), atol=1e-7)
    np.testing.assert_allclose(model.predict(np.full((1, 6), np.nan))[0], Y.mean(axis=0))
    features = [(name, "linear", columns) for name, columns in VIEWS.items()]
    linear = MultiViewKernelRidge(features, sparse=True).fit(X, Y)
    np.testing.assert_allclose(Y - linear.predict(X), np.sqrt(0.1) * linear.dual_coef_, atol=1e-8)


def test_three_views_are_better_than_one(rng):
    X = rng.normal(size=(300, 6))
    y = (X[:, 0] + X[:, 2] + X[:, 3] > 0).astype(int)
    train, test = slice(150), slice(150, None)
    accuracy = {
        names: MultiViewKernelClassifier({name: VIEWS[name] for name in names})
        .fit(X[train], y[train])
        .score(X[test], y[test])
        for names in (("first",), ("second",), ("third",), tuple(VIEWS))
    }
    assert (
        accuracy[tuple(VIEWS)]
        > max(value for names, value in accuracy.items() if len(names) == 1) + 0.1
    )
    holes = X.copy()
    for columns in VIEWS.values():
        holes[np.ix_(rng.random(300) < 0.2, columns)] = np.nan
    model = MultiViewKernelClassifier(VIEWS).fit(holes[train], y[train])
    assert model.score(holes[test], y[test]) > 0.65


def test_classes_and_decisions(rows):
    X, Y = rows
    y = np.array(["a", "b", "c"])[np.digitize(Y[:, 0], [-0.5, 0.5])]
    model = MultiViewKernelClassifier(VIEWS).fit(X, y)
    assert model.decision_function(X).shape == (50, 3)
    assert list(model.classes_) == ["a", "b", "c"]
    indicator = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    peer = MultiViewKernelRidge(VIEWS).fit(X, indicator)
    np.testing.assert_allclose(model.decision_function(X), peer.predict(X))
    two = MultiViewKernelClassifier(VIEWS).fit(X, y == "a")
    assert two.decision_function(X).shape == (50,)
    np.testing.assert_array_equal(two.predict(X), two.decision_function(X) > 0)


def test_errors(rows):
    X, Y = rows
    X = X.copy()
    X[3, 0] = np.nan
    with pytest.raises(
        ValueError, match="NaN in some columns of view 'first' only, first in row 3; a row has all"
    ):
        MultiViewKernelRidge(VIEWS).fit(X, Y)
    X[:, :2] = np.nan
    with pytest.raises(ValueError, match="view 'first' is missing in every row of X; leave it out"):
        MultiViewKernelRidge(VIEWS).fit(X, Y)
    X = rows[0]
    with pytest.raises(ValueError, match="views: group 'none' must have at least one column"):
        MultiViewKernelRidge({"none": []}).fit(X, Y)
    with pytest.raises(ValueError, match="eta must be a positive number"):
        MultiViewKernelRidge(VIEWS, eta=0).fit(X, Y)
    with pytest.raises(TypeError, match="sparse must be True or False"):
        MultiViewKernelRidge(VIEWS, sparse=1).fit(X, Y)
    with pytest.raises(
        ValueError, match="at least two classes in rows of positive weight, got one class"
    ):
        MultiViewKernelClassifier(VIEWS).fit(X, np.ones(50, dtype=int))
