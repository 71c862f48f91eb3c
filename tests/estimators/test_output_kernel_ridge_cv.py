import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
)

from entangled_kernels import OutputKernelRidge, OutputKernelRidgeCV


@pytest.fixture
def rows(make_rows):
    return make_rows(24, 4, 3)


ALPHAS = [100.0, 10.0, 1.0]


class TestOutputKernelRidgeCV:
    @pytest.mark.parametrize(
        ("constraint", "rank", "fit_intercept"),
        [(False, None, True), (True, None, True), (False, 2, True), (False, None, False)],
    )
    def test_penalties_against_refitting(self, rows, constraint, rank, fit_intercept):
        """Every penalty with every alpha, from cold starts; the choice is the best of all."""
        X, Y = rows
        names = ["frobenius", "trace"] + ([] if rank else ["cluster", "entrywise"])
        fixed = {"constraint": constraint, "rank": rank, "fit_intercept": fit_intercept}
        fixed["solver_params"] = {"tol": 1e-4 if rank is None else 1e-8, "max_iter": 20000}
        model = OutputKernelRidgeCV(penalty=names, alphas=[0.01, 1.0, 30.0], cv=3, **fixed)
        results = model.fit(X, Y).cv_results_
        assert list(results["penalty"]) == [name for name in names for _ in range(3)]
        for number, (name, alpha) in enumerate(
            zip(results["penalty"], results["alpha"], strict=True)
        ):
            again = OutputKernelRidge(penalty=name, alpha=alpha, **fixed)
            for i, (train, test) in enumerate(KFold(3).split(X)):
                predicted = again.fit(X[train], Y[train]).predict(X[test])
                error = np.mean((Y[test] - predicted) ** 2, axis=0) / Y.var(axis=0)
                score = results[f"split{i}_test_score"][number]
                assert score == pytest.approx(-error.mean(), rel=1e-2)
        scores = np.column_stack([results[f"split{i}_test_score"] for i in range(3)])
        np.testing.assert_allclose(results["mean_test_score"], scores.mean(axis=1))
        np.testing.assert_allclose(results["std_test_score"], scores.std(axis=1))
        best = int(np.argmax(results["mean_test_score"]))
        assert (model.best_index_, results["rank_test_score"][best]) == (best, 1)
        assert model.best_score_ == results["mean_test_score"][best]
        assert model.best_params_ == {"alpha": model.alpha_, "penalty": model.penalty_}
        again = OutputKernelRidge(**model.best_params_, **fixed).fit(X, Y)
        np.testing.assert_allclose(model.predict(X), again.predict(X), rtol=1e-6)

    def test_folds_without_weight_are_refused(self, rows):
        splits = [(np.arange(24) % 3 != i, np.arange(24) % 3 == i) for i in range(3)]
        with pytest.raises(ValueError, match="sample_weight is zero on all held-out rows"):
            OutputKernelRidgeCV(cv=splits).fit(*rows, splits[1][0].astype(float))

    def test_default_grids_of_penalties(self, rows):
        """The fine grid is for penalties with narrow optima; constraints share the unit of kernel ridge."""
        X, Y = rows
        model = OutputKernelRidgeCV(penalty=["frobenius", "trace"], cv=2).fit(X, Y)
        assert len(model.alphas_) == 13 + 25
        ball = OutputKernelRidgeCV(penalty=["trace", "elastic"], constraint=True, cv=2).fit(X, Y)
        centred = X - X.mean(axis=0)
        expected = np.tile(np.logspace(-4, 4, 17) * np.sum(centred**2) / 24, 2)
        np.testing.assert_allclose(ball.alphas_, expected)

    def test_low_rank_tasks(self, rng):
        """Forty rows, fifty noisy mixtures of two functions: the trace ball against tuned kernel ridge."""
        X = rng.normal(size=(240, 20))
        Y = X @ rng.normal(size=(20, 2)) @ rng.normal(size=(2, 50))
        noisy = Y + 5.0 * rng.normal(size=Y.shape)
        errors = {}
        for bounds, penalty in (((1.0, 1.0), "cluster"), ((0.1, 10.0), "trace")):
            model = OutputKernelRidgeCV(
                penalty=penalty,
                constraint=True,
                cv=3,
                solver_params={"tol": 0.01},
                penalty_params={"level_bounds": bounds},
            )
            errors[penalty] = np.mean((model.fit(X[:40], noisy[:40]).predict(X[40:]) - Y[40:]) ** 2)
        # Clusters whose levels are all one are kernel ridge.
        assert errors["trace"] <= 0.65 * errors["cluster"]

    def test_other_scores(self, rows):
        X, Y = rows
        splits = list(KFold(3).split(X))
        model = OutputKernelRidgeCV(
            alphas=[0.1, 1.0, 10.0], cv=3, scoring="r2", solver_params={"tol": 1e-08}
        ).fit(X, Y)
        expected = [
            np.mean(
                [
                    OutputKernelRidge(alpha=a, solver_params={"tol": 1e-08})
                    .fit(X[i], Y[i])
                    .score(X[j], Y[j])
                    for i, j in splits
                ]
            )
            for a in (0.1, 1.0, 10.0)
        ]
        np.testing.assert_allclose(model.cv_results_["mean_test_score"], expected, rtol=1e-5)
        given = OutputKernelRidgeCV(
            "precomputed", alphas=[0.1, 1.0, 10.0], cv=3, scoring="r2", solver_params={"tol": 1e-08}
        )
        given.fit(X @ X.T, Y)
        np.testing.assert_allclose(given.cv_results_["mean_test_score"], expected, rtol=1e-5)
        flat = OutputKernelRidgeCV(
            alphas=[0.1, 1.0], cv=3, scoring=lambda model, X, y: -float(y.ndim)
        )
        assert flat.fit(X, Y[:, 0]).best_score_ == -1
        with pytest.raises(ValueError, match="accurate"):
            OutputKernelRidgeCV(scoring="accurate").fit(X, Y)

    def test_splitters(self, rows):
        X, Y = rows
        assert OutputKernelRidgeCV(cv=LeaveOneOut()).fit(X, Y).n_splits_ == 24
        assert (
            OutputKernelRidgeCV(cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0))
            .fit(X, Y)
            .n_splits_
            == 6
        )
        splits = [(np.arange(12), np.arange(12, 24)), (np.arange(12, 24), np.arange(12))]
        assert OutputKernelRidgeCV(cv=splits).fit(X, Y).n_splits_ == 2

    def test_groups(self, rows):
        X, Y = rows
        groups = np.repeat(np.arange(6), 4)
        model = OutputKernelRidgeCV(cv=GroupKFold(3)).fit(X, Y, groups=groups)
        splits = list(GroupKFold(3).split(X, groups=groups))
        other = OutputKernelRidgeCV(cv=splits).fit(X, Y)
        np.testing.assert_array_equal(
            model.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"]
        )
        with pytest.raises(ValueError, match="'groups' parameter should not be None"):
            OutputKernelRidgeCV(cv=GroupKFold(3)).fit(X, Y)
        with pytest.raises(ValueError, match="number of splits"):
            OutputKernelRidgeCV(cv=GroupKFold(3)).fit(X, Y, groups=np.repeat([0, 1], 12))

    def test_targets_that_are_constant_in_a_fold(self, rows):
        """Constant where the model learns, constant where it is tested, or constant throughout."""
        X, Y = rows
        Y = np.column_stack([Y, np.r_[np.ones(8), np.zeros(16)], np.full(24, 7.3)])
        for rank in (None, 2):
            model = OutputKernelRidgeCV(cv=3, rank=rank).fit(X, Y)
            assert np.isfinite(model.cv_results_["mean_test_score"]).all()
            np.testing.assert_allclose(model.predict(X)[:, 4], 7.3)
        constant = OutputKernelRidgeCV().fit(X, np.full_like(Y, 0.1))
        np.testing.assert_allclose(constant.predict(X), 0.1)
        assert constant.best_score_ == pytest.approx(0.0, abs=1e-20)
        assert constant.alpha_ == constant.alphas_.max()

    def test_an_end_of_the_grid_is_named(self, rows):
        X, Y = rows
        best = OutputKernelRidgeCV().fit(X, Y).alpha_
        with pytest.warns(
            UserWarning, match=r"is the smallest of alphas, .* pass alphas with smaller values"
        ):
            OutputKernelRidgeCV(alphas=best * np.array([100.0, 10.0, 1000.0])).fit(X, Y)
        with pytest.warns(
            UserWarning, match=r"is the largest of alphas, .* pass alphas with larger values"
        ):
            OutputKernelRidgeCV(alphas=[best / 1000, best / 30]).fit(X, Y)
        assert OutputKernelRidgeCV(alphas=[best]).fit(X, Y).alpha_ == best

    def test_the_default_grid_is_free_of_scale(self, rows):
        X, Y = rows
        for rank in (None, 2):
            plain = OutputKernelRidgeCV(
                rank=rank, solver_params={"tol": 1e-07, "max_iter": 20000}
            ).fit(X, Y)
            scaled = OutputKernelRidgeCV(
                rank=rank, solver_params={"tol": 1e-07, "max_iter": 20000}
            ).fit(1e3 * X, 1e-4 * Y)
            assert scaled.best_index_ == plain.best_index_
            np.testing.assert_allclose(
                scaled.predict(1e3 * X), 1e-4 * plain.predict(X), rtol=1e-4, atol=1e-8
            )


@pytest.mark.filterwarnings("ignore:alpha=:UserWarning")
class TestMissingTargets:
    """What all estimators promise of missing targets is in test_missing_targets.py."""

    @pytest.fixture
    def holes(self, rows, rng):
        X, Y = rows
        weights = (rng.random(Y.shape) < 0.7) * rng.uniform(0.5, 2.0, size=Y.shape)
        weights[weights.max(axis=1) == 0.0] = 1.0
        return X, Y, weights

    def test_held_out_errors_are_of_targets_that_are_not_missing(self, holes):
        X, Y, weights = holes
        splits = list(KFold(3).split(X))
        model = OutputKernelRidgeCV(
            "rbf", alphas=[1.0, 0.1], cv=splits, solver_params={"tol": 1e-04}
        ).fit(X, Y, weights)
        mean = np.average(Y, axis=0, weights=weights)
        variance = np.average((Y - mean) ** 2, axis=0, weights=weights)
        for a, alpha in enumerate(model.alphas_):
            for s, (train, test) in enumerate(splits):
                fit = OutputKernelRidge("rbf", alpha=alpha, solver_params={"tol": 1e-04}).fit(
                    X[train], Y[train], weights[train]
                )
                errors = (Y[test] - fit.predict(X[test])) ** 2
                expected = -np.mean(np.average(errors, axis=0, weights=weights[test]) / variance)
                assert model.cv_results_[f"split{s}_test_score"][a] == pytest.approx(
                    expected, rel=1e-3
                )

    def test_splits_that_a_user_gives_are_of_the_whole_table(self, holes):
        X, Y, weights = holes
        splits = list(KFold(3).split(X))
        more, targets = np.vstack([np.zeros((2, 4)), X]), np.vstack([np.zeros((2, 3)), Y])
        cells = np.vstack([np.zeros((2, 3)), weights])
        shifted = [(np.append(train + 2, 0), np.append(test + 2, 1)) for train, test in splits]
        left = OutputKernelRidgeCV(alphas=ALPHAS, cv=splits).fit(X, Y, weights)
        right = OutputKernelRidgeCV(alphas=ALPHAS, cv=shifted).fit(more, targets, cells)
        np.testing.assert_array_equal(left.predict(X), right.predict(X))
        grouped = OutputKernelRidgeCV(alphas=ALPHAS, cv=GroupKFold(3)).fit(
            more, targets, cells, groups=np.r_[7, 7, np.arange(24) % 4]
        )
        alone = OutputKernelRidgeCV(alphas=ALPHAS, cv=GroupKFold(3)).fit(
            X, Y, weights, groups=np.arange(24) % 4
        )
        np.testing.assert_array_equal(grouped.predict(X), alone.predict(X))

    def test_other_scores_leave_out_missing_targets(self, holes):
        X, Y, weights = holes
        spoilt = np.where(weights > 0.0, Y, np.nan)
        model = OutputKernelRidgeCV(
            alphas=[1.0], cv=3, scoring=lambda model, X, y: model.score(X, y)
        ).fit(X, Y, weights)
        train, test = next(KFold(3).split(X))
        fit = OutputKernelRidge(alpha=1.0).fit(X[train], Y[train], weights[train])
        assert model.cv_results_["split0_test_score"][0] == pytest.approx(
            fit.score(X[test], spoilt[test])
        )

    def test_a_target_that_a_fold_never_sees_is_named(self, rows):
        X, Y = rows
        Y = pd.DataFrame(Y, columns=["zinc", "lead", "tin"])
        Y.loc[1:, "lead"] = np.nan
        with pytest.raises(ValueError, match="only missing values of 'lead' in those of one"):
            OutputKernelRidgeCV(cv=3).fit(X, Y)
