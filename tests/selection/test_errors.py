import itertools

import numpy as np
import pytest
from entangled_kernels.selection.errors import candidate_errors, member_factors
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import KFold

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.learning import SolverOptions
from entangled_kernels.selection import Member, RowFolds
from entangled_kernels.selection import errors as module
from entangled_kernels.selection.candidates import Grid

ALPHAS = np.array([1e-3, 0.5, 30.0])
MEMBERS = [
    Member("closed-form", mix, shrinkage, target_alpha, rank, prediction)
    for mix, shrinkage, target_alpha, rank, prediction in itertools.product(
        (0.0, 0.4, 1.0), (0.0, 0.3, 1.0), (0.0, 0.1), (None, 2, 0.5), ("entangled", "partial_trace")
    )
] + [
    Member(solver, 0.4, shrinkage, 0.0, rank, prediction, n_steps)
    for (solver, n_steps), shrinkage, rank, prediction in itertools.product(
        (("ascent", 1), ("ascent", 5), ("ascent", 12), ("lbfgs", None)),
        (0.0, 0.3),
        (2, None),
        ("entangled", "partial_trace"),
    )
]

GRID = Grid(MEMBERS, ALPHAS)

SHAPES = [(20, 4, 3), (12, 15, 2), (9, 3, 14)]


def brute_force(Phi, Y, weight, split, output_weights, member, alpha, fit_intercept, options):
    """Refit on the training rows, predict the held-out ones."""
    train, test = split
    model = EntangledKernelRidge(
        **member.parameters(),
        alpha=alpha,
        fit_intercept=fit_intercept,
        solver_params={"max_iter": member.n_steps or options.max_iter, "tol": options.tol},
    ).fit(Phi[train], Y[train], None if weight is None else weight[train])
    squares = (Y[test] - model.predict(Phi[test])) ** 2 @ output_weights
    return np.average(squares, weights=None if weight is None else weight[test])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_errors_from_moments_are_those_of_refitting(
    make_rows, rng, monkeypatch, fit_intercept, weighted, shape
):
    Phi, Y = make_rows(*shape)
    weight = rng.uniform(0.5, 2, size=len(Y)) if weighted else None
    output_weights = rng.uniform(0.5, 1.5, size=Y.shape[1])
    splits = list(KFold(3).split(Phi))
    options = SolverOptions(max_iter=30)
    folds = list(RowFolds(Phi, Y, weight, splits, centred=fit_intercept).folds(output_weights))
    for fold, split in zip(folds, splits, strict=True):
        errors = candidate_errors(fold, GRID, options)[..., 0]
        with monkeypatch.context() as patch:
            # Alphas one by one, or all together where the kernel allows it.
            patch.setattr(module, "_ALPHAS_TOGETHER", 0)
            together = candidate_errors(fold, GRID, options)[..., 0]
            targets_together = candidate_errors(fold, GRID, options, by_target=True)
        np.testing.assert_allclose(together, errors, rtol=1e-9)
        of_targets = candidate_errors(fold, GRID, options, by_target=True)
        np.testing.assert_allclose(of_targets @ output_weights, errors, rtol=1e-9)
        np.testing.assert_allclose(targets_together, of_targets, rtol=1e-8)
        # Every candidate on one fold of the first shape; elsewhere as many as time allows.
        every = shape == SHAPES[0] and fold is folds[0]
        some = range(len(MEMBERS)) if every else rng.choice(len(MEMBERS), size=8, replace=False)
        for row in some:
            for place, alpha in enumerate(ALPHAS):
                candidate = (MEMBERS[row], alpha)
                expected = brute_force(
                    Phi, Y, weight, split, output_weights, *candidate, fit_intercept, options
                )
                assert errors[row, place] == pytest.approx(expected, rel=1e-9), candidate


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_errors_of_all_alphas_together(make_rows, fit_intercept):
    """Many outputs, from the default grid's smallest alphas to its largest."""
    Phi, Y = make_rows(30, 40, 50)
    alphas = np.logspace(-8, 3, 34) * np.mean(np.sum((Phi - Phi.mean(axis=0)) ** 2, axis=1))
    members = EntangledKernelRidgeCV()._members()
    splits = list(KFold(3).split(Phi))
    for fold in RowFolds(Phi, Y, None, splits, centred=fit_intercept).folds(np.ones(50)):
        together = 0
        for _, factor in member_factors(fold.problem, members, SolverOptions()):
            form = factor.spectral(alphas)
            if form is not None:
                together += 1
                expected = fold.error(factor.coefficients(alphas))
                np.testing.assert_allclose(fold.spectral_error(form), expected, rtol=1e-9)
                expected = fold.target_errors(factor.coefficients(alphas))
                np.testing.assert_allclose(fold.spectral_target_errors(form), expected, rtol=1e-9)
        assert together == len(members)


def test_no_error_below_rounding(make_rows):
    Phi, _ = make_rows(20, 3, 2)
    Y = Phi @ np.ones((3, 2))
    fold = next(RowFolds(Phi, Y, None, list(KFold(2).split(Phi)), centred=True).folds(np.ones(2)))
    errors = candidate_errors(fold, Grid(MEMBERS[:1], np.array([1e-12])), SolverOptions())
    assert 0 < errors[0, 0, 0] < 1e-10


@pytest.mark.parametrize("width", [1.0, 8.0])
@pytest.mark.parametrize("p", [3, 25])
def test_default_grid_on_a_kernel_that_decays_fast(rng, width, p):
    """The smallest alphas see axes that moments in any other coordinates would lose to rounding."""
    X = rng.normal(size=(40, 3))
    Y = np.sin(X @ rng.normal(size=(3, p))) + 0.1 * rng.normal(size=(40, p))
    Phi = Nystroem(gamma=0.2 / width**2, n_components=40, random_state=0).fit(X).transform(X)
    splits = list(KFold(4).split(Phi))
    table = EntangledKernelRidgeCV(None, cv=splits, scoring="mse", random_state=0).fit(Phi, Y).cv_results_
    names = [name for name in table if name.startswith("param_") and name != "param_feature_map"]
    train, test = splits[0]
    smallest = np.flatnonzero(table["param_alpha"] == table["param_alpha"].min())
    others = rng.choice(len(table["param_alpha"]), size=150, replace=False)
    for place in np.concatenate([smallest, others]):
        model = EntangledKernelRidge(**{name[6:]: table[name][place] for name in names})
        expected = np.mean((Y[test] - model.fit(Phi[train], Y[train]).predict(Phi[test])) ** 2)
        assert table["split0_test_score"][place] == pytest.approx(expected, rel=1e-9), model
