"""Effects by gradients and by permutations, beside plain loops over rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from entangled_kernels import EvidenceFeatures
from entangled_kernels.explanation import gradient_effects, mixtures, permutation_effects
from entangled_kernels.explanation.effects import with_column

from reference.differences import central_differences

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1.0, 3.0, 0.5]
UNIT = X.std(axis=0)


def test_gradient_effects_are_means_of_differences():
    features = EvidenceFeatures(random_state=0).fit(X, np.sin(X))
    coefs = RNG.normal(size=(2, 2, features.transform(X).shape[1]))
    effect, size = gradient_effects(features, X, coefs, mixtures(None, None, (40, 2)), UNIT)
    slopes = central_differences(lambda rows: features.transform(rows) @ coefs[1].T, X)  # (n, p, d)
    np.testing.assert_allclose(effect[1], (slopes.mean(axis=0) * UNIT).T, atol=1e-6)
    np.testing.assert_allclose(size[1], (np.sqrt((slopes**2).mean(axis=0)) * UNIT).T, atol=1e-6)


def test_both_ways_agree_on_linear_functions():
    coefs = RNG.normal(size=(1, 4, 3))
    found = mixtures(None, None, (40, 4))
    exact = gradient_effects(None, X, coefs, found, UNIT)
    np.testing.assert_allclose(exact[0][0], coefs[0].T * UNIT[:, None])
    np.testing.assert_allclose(exact[1], np.abs(exact[0]))
    permuted = permutation_effects(np.asarray, X, coefs, found, UNIT, 20, np.random.default_rng(0))
    # The slope of a linear function is exact, its size is a mean over permutations.
    np.testing.assert_allclose(permuted[0], exact[0], rtol=1e-9)
    np.testing.assert_allclose(permuted[1], exact[1], rtol=0.1)


def test_an_input_that_is_not_used_has_no_effect_and_one_without_spread_is_not_tried():
    rows = np.column_stack([X[:, 0], np.ones(40), X[:, 1]])
    calls = []

    def features(table):
        calls.append(1)
        return table[:, :1] ** 2

    unit = rows.std(axis=0)
    found = mixtures(None, None, (40, 1))
    effect, size = permutation_effects(
        features, rows, np.ones((1, 1, 1)), found, unit, 3, np.random.default_rng(0)
    )
    assert len(calls) == 1 + 2 * 3
    assert size[0, 0, 0] > 0.0
    assert not size[0, 1:].any()
    assert not effect[0, 1:].any()


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "sparse"])
def test_a_column_takes_the_values_of_other_rows(kind):
    values, order = np.arange(6.0).reshape(3, 2), np.array([2, 0, 1])
    table = values
    if kind in ("pandas", "polars"):
        table = pytest.importorskip(kind).DataFrame(values, ["a", "b"] if kind == "polars" else None)
    elif kind == "sparse":
        table = csr_array(values)
    moved = with_column(table, 1, order)
    moved = moved.toarray() if kind == "sparse" else np.asarray(moved)
    np.testing.assert_array_equal(moved, [[0.0, 5.0], [2.0, 1.0], [4.0, 3.0]])
    np.testing.assert_array_equal(table.toarray() if kind == "sparse" else np.asarray(table), values)
