import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import get_tags

from entangled_kernels import OperatorValuedKernelRidge, OutputKernelRidge
from entangled_kernels.convex import PENALTIES, graph_output_kernel
from entangled_kernels.kernels import SeparableKernel

from reference import convex
from reference import output_kernel as reference


@pytest.fixture
def rows(make_rows):
    return make_rows(24, 4, 3)


class TestOutputKernelRidge:
    @pytest.mark.parametrize("rank", [None, 2])
    @pytest.mark.parametrize("alpha", [0.1, 3.0, 50.0])
    def test_equations_of_the_fit(self, rows, alpha, rank):
        """K C L + alpha C = Y, without an intercept, and predictions K C L."""
        X, Y = rows
        model = OutputKernelRidge(
            "rbf", gamma=0.2, alpha=alpha, rank=rank, fit_intercept=False
        ).fit(X, Y)
        K, C, L = rbf_kernel(X, gamma=0.2), model.dual_coef_, model.output_kernel_
        assert np.abs(K @ C @ L + alpha * C - Y).max() < 1e-8
        np.testing.assert_allclose(
            C, reference.sylvester(K, Y, L, alpha), atol=1e-9 * np.abs(C).max()
        )
        Z = X[:5] + 0.1
        np.testing.assert_allclose(model.predict(Z), rbf_kernel(Z, X, gamma=0.2) @ C @ L, atol=1e-9)
        value = reference.objective(K, Y, C, L, alpha, rank)
        assert model.objective_history_[-1] == pytest.approx(value)
        assert (np.diff(model.objective_history_) <= 0).all()
        assert len(model.objective_history_) == model.n_iter_ + 1
        assert model.converged_
        assert not model.intercept_.any()

    def test_intercept_is_the_fit_to_centred_kernel_and_targets(self, rows):
        X, Y = rows
        model = OutputKernelRidge(alpha=2.0, solver_params={"tol": 1e-09}).fit(X, Y)
        centred = OutputKernelRidge(
            alpha=2.0, fit_intercept=False, solver_params={"tol": 1e-09}
        ).fit(X - X.mean(0), Y - Y.mean(0))
        np.testing.assert_allclose(model.output_kernel_, centred.output_kernel_, rtol=1e-7)
        np.testing.assert_allclose(
            model.predict(X), centred.predict(X - X.mean(0)) + Y.mean(0), rtol=1e-7
        )
        np.testing.assert_allclose(model.predict(X).mean(axis=0), Y.mean(axis=0))

    def test_without_an_intercept_the_means_take_over(self, rows):
        """The reason for the default."""
        X, Y = rows
        Y = Y + 100 * np.array([1.0, -1.0, 1.0])
        means = np.outer([1, -1, 1], [1, -1, 1]) / 3
        share = {
            intercept: np.vdot(means, L) / np.trace(L)
            for intercept in (True, False)
            for L in [OutputKernelRidge("rbf", fit_intercept=intercept).fit(X, Y).output_kernel_]
        }
        assert share[False] > 0.8
        assert share[True] < 0.5

    @pytest.mark.parametrize("rank", [None, 1])
    def test_one_target_is_kernel_ridge(self, rows, rank):
        """With p = 1 the output kernel is a number l, and the model kernel ridge with alpha / l."""
        X, Y = rows
        model = OutputKernelRidge("rbf", alpha=0.5, rank=rank, fit_intercept=False).fit(X, Y[:, 0])
        peer = KernelRidge(kernel="rbf", alpha=0.5 / model.output_kernel_.item()).fit(X, Y[:, 0])
        np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-7)
        assert model.predict(X).shape == model.dual_coef_.shape == (24,)
        column = OutputKernelRidge("rbf", alpha=0.5, rank=rank, fit_intercept=False).fit(
            X, Y[:, :1]
        )
        assert column.predict(X).shape == column.dual_coef_.shape == (24, 1)
        np.testing.assert_array_equal(column.predict(X)[:, 0], model.predict(X))

    @pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "laplacian"])
    def test_kernels_by_name_by_function_and_precomputed(self, rows, kernel):
        from sklearn.metrics.pairwise import pairwise_kernels

        X, Y = rows
        settings = {"gamma": 0.3, "kernel_params": {"degree": 2, "coef0": 0.5}}
        named = OutputKernelRidge(kernel, alpha=3.0, **settings).fit(X, Y)
        used = {} if kernel == "linear" else {"gamma": 0.3}
        used |= {"degree": 2, "coef0": 0.5} if kernel == "poly" else {}

        def gram(A, B):
            return pairwise_kernels(A, B, metric=kernel, **used)

        def function(x, z, **params):
            return gram(x[None], z[None])[0, 0] * params["scale"]

        by_function = OutputKernelRidge(function, alpha=3.0, kernel_params={"scale": 1.0}).fit(X, Y)
        given = OutputKernelRidge("precomputed", alpha=3.0).fit(gram(X, X), Y)
        Z = X[:6] + 0.1
        for other in (by_function.predict(Z), given.predict(gram(Z, X))):
            np.testing.assert_allclose(other, named.predict(Z), rtol=1e-6, atol=1e-6)
        assert get_tags(given).input_tags.pairwise
        assert not get_tags(named).input_tags.pairwise

    def test_sparse_rows(self, rows):
        X, Y = rows
        dense, sparse = OutputKernelRidge().fit(X, Y), OutputKernelRidge().fit(csr_matrix(X), Y)
        np.testing.assert_allclose(sparse.predict(csr_matrix(X)), dense.predict(X), rtol=1e-9)

    def test_constant_targets(self, rows):
        X, Y = rows
        model = OutputKernelRidge().fit(X, np.full_like(Y, 0.1))
        np.testing.assert_allclose(model.predict(X), 0.1)
        assert not model.output_kernel_.any()
        assert model.stop_reason_ == "zero"
        some = OutputKernelRidge().fit(X, np.column_stack([Y, np.full(24, 7.3)]))
        np.testing.assert_allclose(some.predict(X)[:, 3], 7.3)
        np.testing.assert_allclose(
            some.predict(X)[:, :3], OutputKernelRidge().fit(X, Y).predict(X), rtol=1e-6
        )

    def test_odd_tables(self, rows, make_rows):
        X, Y = rows
        np.testing.assert_allclose(
            OutputKernelRidge().fit(X[:1], Y[:1]).predict(X), np.tile(Y[0], (24, 1))
        )
        assert np.isfinite(OutputKernelRidge().fit(X[:2], Y[:2]).predict(X)).all()
        assert OutputKernelRidge().fit(*make_rows(5, 3, 30)).output_kernel_.shape == (30, 30)
        flat = OutputKernelRidge().fit(np.full_like(X, 0.7), Y)
        np.testing.assert_allclose(flat.predict(X[:1]), Y.mean(axis=0)[None])

    @pytest.mark.parametrize("constraint", [False, True])
    @pytest.mark.parametrize("penalty", PENALTIES)
    def test_every_penalty_has_a_certificate(self, rows, penalty, constraint):
        """Objective and gap of the fit to the centred kernel and targets, by definition."""
        X, Y = rows
        model = OutputKernelRidge(penalty=penalty, constraint=constraint, alpha=0.5).fit(X, Y)
        A, B = X - X.mean(axis=0), Y - Y.mean(axis=0)
        settings = {
            "schatten": {"exponent": 4 / 3},
            "entrywise": {"exponent": 4 / 3},
            "elastic": {"l1_ratio": 0.5},
            "cluster": {"level_bounds": (0.1, 10.0)},
        }.get(penalty, {})
        L, K = model.output_kernel_, A @ A.T
        value, gap = convex.output_kernel_gap(K, B, L, 0.5, penalty, constraint, **settings)
        assert model.objective_history_[-1] == pytest.approx(value)
        assert gap <= 1e-5 * value
        assert 0.0 <= model.duality_gap_ <= 1e-6 * value
        C = model.dual_coef_
        np.testing.assert_allclose(K @ C @ L + 0.5 * C, B, atol=1e-7)
        weighted = clone(model).fit(X, Y, np.arange(24) % 3)
        copies = np.repeat(np.arange(24), np.arange(24) % 3)
        repeated = clone(model).fit(X[copies], Y[copies])
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=2e-3)

    @pytest.mark.parametrize("penalty", PENALTIES)
    def test_one_target_in_a_ball_is_kernel_ridge(self, rows, penalty):
        """With p = 1 the identity is the largest kernel, and alpha that of kernel ridge."""
        X, Y = rows
        model = OutputKernelRidge("rbf", penalty=penalty, constraint=True, fit_intercept=False).fit(
            X, Y[:, 0]
        )
        peer = KernelRidge(kernel="rbf").fit(X, Y[:, 0])
        np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-6)

    def test_a_given_output_kernel(self, rows):
        X, Y = rows
        graph = graph_output_kernel([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        model = OutputKernelRidge("rbf", output_kernel=graph, alpha=0.3, fit_intercept=False).fit(
            X, Y
        )
        C = reference.sylvester(rbf_kernel(X), Y, graph, 0.3)
        np.testing.assert_allclose(model.predict(X), rbf_kernel(X) @ C @ graph)
        assert (model.stop_reason_, model.duality_gap_, model.n_iter_) == ("fixed", 0.0, 1)
        identity = OutputKernelRidge("rbf", output_kernel=np.eye(3), alpha=0.3, fit_intercept=False)
        peer = KernelRidge(kernel="rbf", alpha=0.3).fit(X, Y)
        np.testing.assert_allclose(identity.fit(X, Y).predict(X), peer.predict(X))


class TestMissingTargets:
    """test_missing_targets.py has what all estimators promise."""

    @pytest.fixture
    def holes(self, rows, rng):
        X, Y = rows
        missing = rng.random(Y.shape) < 0.35
        missing[missing.all(axis=1)] = False
        return X, np.where(missing, np.nan, Y)

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_a_given_output_kernel_is_ridge_with_a_separable_kernel(
        self, holes, rng, fit_intercept, weighted
    ):
        X, Y = holes
        L = np.cov(rng.normal(size=(3, 8)))
        weight = rng.uniform(0.5, 2.0, size=Y.shape) if weighted else None
        model = OutputKernelRidge(
            "rbf",
            gamma=0.3,
            alpha=0.2,
            output_kernel=L,
            fit_intercept=fit_intercept,
            solver_params={"tol": 1e-07},
        ).fit(X, Y, weight)
        peer = OperatorValuedKernelRidge(
            SeparableKernel("rbf", L, gamma=0.3),
            alpha=0.2,
            solver="dense",
            fit_intercept=fit_intercept,
        ).fit(X, Y, weight)
        np.testing.assert_allclose(model.predict(X + 0.1), peer.predict(X + 0.1), atol=1e-6)
        assert model.stop_reason_ == "fixed"

    def test_a_precomputed_kernel_has_a_column_for_every_row(self, holes):
        X, Y = holes
        Y[[5, 9]] = np.nan
        K = rbf_kernel(X, gamma=0.2)
        left = OutputKernelRidge("precomputed").fit(K, Y)
        right = OutputKernelRidge("rbf", gamma=0.2).fit(X, Y)
        np.testing.assert_allclose(left.predict(K), right.predict(X), atol=1e-10)
        assert left.X_fit_.shape == (22, 22)
        assert left.n_features_in_ == 24
