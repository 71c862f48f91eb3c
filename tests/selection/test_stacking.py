import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import KFold, RepeatedKFold
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidgeCV, EvidenceFeatures
from entangled_kernels.learning import SolverOptions
from entangled_kernels.selection import (
    Member,
    RefittedFolds,
    RowFolds,
    SearchSettings,
    TableSummary,
    run_search,
    settle,
)
from entangled_kernels.selection.stacking import FAR, PULL, HeldOutErrors, draw_in, simplex_shares

MEMBERS = [
    Member("closed-form", 0.0, 1.0, 0.0, None, "entangled"),
    Member("closed-form", 0.5, 0.5, 0.1, None, "entangled"),
]


@given(st.integers(1, 6), st.integers(0, 10**6), st.sampled_from([0.0, 0.1, 1.0]))
def test_shares_are_the_least_of_the_pulled_form_on_the_simplex(K, seed, pull):
    rng = np.random.default_rng(seed)
    A, prior = rng.normal(size=(8, K)), rng.dirichlet(np.ones(K))
    G = A.T @ A

    def loss(w):
        return w @ G @ w + pull * np.diag(G).min() * np.sum((w - prior) ** 2)

    found = simplex_shares(G, pull, prior)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0)
    whole = {"type": "eq", "fun": lambda w: w.sum() - 1.0}
    start = np.full(K, 1.0 / K)
    slow = minimize(loss, start, bounds=[(0, 1)] * K, constraints=[whole], options={"ftol": 1e-12})
    assert loss(found) <= slow.fun * (1.0 + 1e-6) + 1e-12
    away = np.sum((np.eye(K)[np.diag(G).argmin()] - prior) ** 2)
    assert found @ G @ found <= np.diag(G).min() * (1.0 + pull * away) * (1.0 + 1e-6)


def test_models_that_are_alike_share_as_before_and_perfect_ones_take_all():
    prior = np.array([0.2, 0.2, 0.6])
    np.testing.assert_allclose(simplex_shares(np.ones((3, 3)), 0.1, prior), prior)
    np.testing.assert_array_equal(simplex_shares(np.diag([0.0, 1.0, 0.0]), 0.1, prior), [0.5, 0.0, 0.5])


def even(K):
    return np.full(K, 1.0 / K)


def errors_of(rng, K, n, p, shared, copies=2):
    values = rng.normal(size=(K, n * copies, p)) * np.linspace(1.0, 2.0, K)[:, None, None]
    row = np.tile(np.arange(n), copies)
    return HeldOutErrors(
        values, rng.uniform(0.5, 1.0, size=n * copies), row, np.full(p, 1.0 / p), shared, even(K)
    )


@pytest.mark.parametrize("shared", [0.0, 2.0, np.inf])
def test_rows_without_a_say_have_none(rng, shared):
    errors = errors_of(rng, 3, 12, 2, shared)
    without = np.array([1, 5])
    kept = ~np.isin(errors.row, without)
    fewer = HeldOutErrors(
        errors.values[:, kept], errors.weight[kept], errors.row[kept], errors.output_weights, shared, even(3)
    )
    np.testing.assert_allclose(errors.shares(without), fewer.shares(), rtol=1e-9)
    changed = errors.values.copy()
    changed[:, ~kept] *= 100.0
    loud = HeldOutErrors(changed, errors.weight, errors.row, errors.output_weights, shared, even(3))
    np.testing.assert_allclose(loud.shares(without), fewer.shares(), rtol=1e-9)
    assert not np.allclose(loud.shares(), fewer.shares())


def test_blank_cells_have_no_say(rng):
    errors = errors_of(rng, 3, 10, 2, 0.0, copies=1)
    values = errors.values.copy()
    values[:, 3:, 1] = np.nan
    blank = HeldOutErrors(values, errors.weight, errors.row, errors.output_weights, 0.0, even(3))
    own = HeldOutErrors(values[:, :3, 1:], errors.weight[:3], errors.row[:3], np.ones(1), 0.0, even(3))
    # The pull goes with the weight of all rows.
    forms, pull = own._products(np.ones(3, dtype=bool)), PULL / errors.weight.sum()
    np.testing.assert_allclose(blank.shares()[:, 1], simplex_shares(forms[0], pull, even(3)), rtol=1e-9)
    np.testing.assert_allclose(blank.shares()[:, 0], errors.shares()[:, 0], rtol=1e-9)


def test_a_row_that_all_models_miss_does_not_decide(rng):
    """One model is better on every ordinary row, the other by a little on a row that both miss by far."""
    n = 60
    noise = rng.normal(size=n)
    values = np.stack([0.5 * noise, noise])[:, :, None]
    parts = (np.ones(n), np.arange(n), np.ones(1), np.inf, even(2))
    ordinary = HeldOutErrors(values, *parts).shares()[0, 0]
    values[:, 0, 0] = [100.0, 98.0]
    assert HeldOutErrors(values, *parts).shares()[0, 0] > ordinary - 0.1
    G = np.einsum("kno,lno->kl", values, values) / n
    assert simplex_shares(G, PULL / n, even(2))[0] < 0.5 < ordinary


def test_far_rows_are_drawn_in_to_so_many_deviations(rng):
    typical = np.abs(rng.normal(size=(2, 2001)))
    typical[0, 7] = 1e6
    factors = draw_in(typical, np.ones_like(typical))
    assert factors[0, 7] * 1e6 == pytest.approx(FAR, rel=0.1)
    np.testing.assert_array_equal(factors[typical < 4.0], 1.0)
    np.testing.assert_array_equal(draw_in(np.array([[0.0, 0.0, 0.0, 5.0]]), np.ones((1, 4))), 1.0)


def test_a_weight_counts_as_so_many_rows(rng):
    typical, weight = rng.exponential(size=(1, 15)) ** 4, rng.integers(0, 4, size=(1, 15)).astype(float)
    repeated = np.repeat(typical, weight[0].astype(int), axis=1)
    factors = draw_in(repeated, np.ones_like(repeated))
    assert factors.min() < 1.0
    np.testing.assert_array_equal(np.repeat(draw_in(typical, weight), weight[0].astype(int), axis=1), factors)


def test_targets_lean_on_the_error_of_all(rng):
    """With nothing shared a target follows its own best model, with all shared targets agree."""
    values = 0.01 * rng.normal(size=(2, 400, 2))
    values[0, :, 0] += 1.0
    values[1, :, 1] += 1.0
    parts = {
        "weight": np.ones(400),
        "row": np.arange(400),
        "output_weights": np.full(2, 0.5),
        "prior": even(2),
    }
    apart = HeldOutErrors(values, **parts, shared=0.0).shares()
    assert apart[1, 0] > 0.95
    assert apart[0, 1] > 0.95
    together = HeldOutErrors(values, **parts, shared=np.inf).shares()
    np.testing.assert_allclose(together[:, 0], 0.5, atol=0.02)


def searches_of(X, Y, maps, splits, **options):
    found = []
    for feature_map, noise in maps:
        table = TableSummary.from_rows(X, Y, None, noise, centred=True)
        settings = SearchSettings(MEMBERS, None, SolverOptions(), **options)
        source = RowFolds(X, Y, None, splits)
        if feature_map is not None:
            source = RefittedFolds(X, Y, None, splits, feature_map=feature_map)
        found.append(run_search(table, source, settings))
    return found


def gaussian(gamma):
    return Nystroem(gamma=gamma, n_components=40, random_state=0)


def test_an_average_of_all_rows_is_no_worse_than_its_members_on_held_out_rows(make_rows):
    """But for the pull, which goes with the number of rows: no more than 9 / 60 here."""
    X, Y = make_rows(60, 4, 3)
    splits = list(RepeatedKFold(n_splits=5, n_repeats=2, random_state=0).split(X))
    searches = searches_of(X, Y, [(None, 0.1), (gaussian(0.1), None), (gaussian(3.0), None)], splits)
    decision, held_out = settle(searches, "average", Y, None, SolverOptions())
    assert decision.shares.shape == (4, 3)
    np.testing.assert_allclose(decision.shares.sum(axis=0), 1.0)
    error = np.mean((held_out.values - Y[held_out.index]) ** 2)
    for search in searches:
        alone = settle([search], "average", Y, None, SolverOptions())[1]
        assert error <= (1.0 + PULL / 60) * np.mean((alone.values - Y[alone.index]) ** 2)


def test_held_out_rows_are_predicted_with_shares_found_without_them(make_rows):
    X, Y = make_rows(20, 3, 2)
    splits = list(KFold(4).split(X))
    searches = searches_of(X, Y, [(None, None), (StandardScaler(), 0.3)], splits)
    whole = settle(searches, "average", Y, None, SolverOptions())[1]
    other = Y.copy()
    other[splits[0][1]] += 1.0
    shifted = settle(searches, "average", other, None, SolverOptions())[1]
    same = np.isin(whole.index, splits[0][1])
    np.testing.assert_array_equal(whole.values[same], shifted.values[same])
    assert not np.array_equal(whole.values[~same], shifted.values[~same])


@pytest.mark.parametrize("rule", ["best", "one_se"])
def test_one_candidate_needs_no_shares(make_rows, rule):
    X, Y = make_rows(20, 3, 2)
    searches = searches_of(
        X, Y, [(None, None), (StandardScaler(), 0.3)], list(KFold(4).split(X)), averaging=False
    )
    decision, held_out = settle(searches, rule, Y, None, SolverOptions())
    assert decision.weights is None
    assert held_out.values.shape == Y.shape


def test_the_process_by_evidence_is_within_an_average(make_rows):
    X, Y = make_rows(24, 3, 2)
    model = EntangledKernelRidgeCV(EvidenceFeatures(random_state=0), random_state=0).fit(X, Y)
    noise = model.feature_map_.noise_
    results = model.cv_results_
    process = (results["param_shrinkage"] == 1.0) & (results["param_alpha"] == noise)
    assert process.sum() == 1
    assert (model.average_weights_[process] > 0.0).all()
