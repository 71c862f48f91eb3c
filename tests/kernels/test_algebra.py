import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.kernels import KrausKernel, SeparableKernel, SumKernel
from entangled_kernels.linalg import (
    HadamardOperator,
    KroneckerOperator,
    LowRankKroneckerOperator,
    LowRankOperator,
    SumOfKroneckersOperator,
    SumOperator,
)
from kernels.draws import random_psd, seeds, sizes


@settings(max_examples=30)
@given(p=sizes, terms=st.integers(1, 4), seed=seeds)
def test_sums_of_separable_are_partial_trace_kernels(p, terms, seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    total = SeparableKernel("rbf", random_psd(rng, p), gamma=0.1) * 1.0
    for _ in range(terms - 1):
        total = total + SeparableKernel("rbf", random_psd(rng, p), gamma=float(rng.uniform(0.1, 1)))
    np.testing.assert_allclose(
        total.to_partial_trace().blocks(X, Z), total.blocks(X, Z), atol=1e-11
    )


def test_products_keep_the_structure_of_their_factors():
    X = np.random.default_rng(0).normal(size=(5, 3))
    a, b = SeparableKernel("rbf", np.eye(2)), SeparableKernel("linear", np.ones((2, 2)))
    total = a + b
    assert isinstance((a * b)(X), KroneckerOperator)
    assert len((total * a)(X).Ks) == 2
    assert len((total * total)(X).Ks) == 4
    many = total * (total * total)  # eight pairs of terms
    assert isinstance(many(X), SumOfKroneckersOperator)
    too_many = (total * total) * (total * total)
    assert isinstance(too_many(X), HadamardOperator)
    np.testing.assert_allclose(too_many.blocks(X), total.blocks(X) ** 4)


@pytest.mark.parametrize(
    ("kernel", "weight", "kind"),
    [
        (SeparableKernel("rbf", np.eye(2)), -2.0, KroneckerOperator),
        (SeparableKernel("linear", np.eye(2)), -2.0, LowRankKroneckerOperator),
        (KrausKernel(np.ones((1, 2, 3)), metric=np.eye(3)), 2.0, LowRankOperator),
        (KrausKernel(np.ones((1, 2, 3)), metric=np.eye(3)), -2.0, SumOperator),
    ],
)
def test_multiples_keep_the_structure_where_it_has_room_for_them(rng, kernel, weight, kind):
    X = rng.normal(size=(5, 3))
    multiple = weight * kernel
    assert type(multiple(X)) is kind
    np.testing.assert_allclose(multiple.blocks(X), weight * kernel.blocks(X))
    assert multiple.guaranteed_psd == (weight > 0)


def test_sums_inside_sums_are_flattened():
    a, b, c = (SeparableKernel("rbf", T * np.eye(2)) for T in (1.0, 2.0, 3.0))
    total = SumKernel([2.0 * (a + 3.0 * b), c], [0.5, -1.0])
    assert total.kernels == (a, b, c)
    assert total.weights == (1.0, 3.0, -1.0)
    assert repr(total).count("SeparableKernel") == 3
    assert not total.guaranteed_psd


def test_a_product_of_two_negative_kernels_is_psd_and_not_promised():
    negative = -1.0 * SeparableKernel("rbf", np.eye(2))
    X = np.random.default_rng(0).normal(size=(6, 3))
    assert not negative.is_psd(X)
    assert (negative * negative).is_psd(X)
    assert not (negative * negative).guaranteed_psd
