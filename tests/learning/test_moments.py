import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.learning import moments as moments_module
from entangled_kernels.learning.moments import Moments


def direct(Phi, Y, weight=None):
    """Mean and centred co-moments straight from their definition, in extended precision."""
    Z = np.hstack([Phi, Y]).astype(np.longdouble)
    w = np.ones(len(Z), dtype=np.longdouble) if weight is None else weight.astype(np.longdouble)
    mean = w @ Z / w.sum()
    scatter = (Z - mean).T @ (w[:, None] * (Z - mean))
    return mean.astype(float), scatter.astype(float)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("buffer_numbers", [2**20, 100])
def test_definition(make_rows, rng, monkeypatch, weighted, buffer_numbers):
    monkeypatch.setattr(moments_module, "_BUFFER_NUMBERS", buffer_numbers)
    Phi, Y = make_rows(150, 4, 3)
    weight = rng.uniform(0, 2, size=150) if weighted else None
    moments = Moments.from_arrays(Phi, Y, weight)
    mean, scatter = direct(Phi, Y, weight)
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-13)
    np.testing.assert_allclose(moments.scatter, scatter, rtol=1e-11, atol=1e-10)
    np.testing.assert_array_equal(moments.scatter, moments.scatter.T)
    assert moments.n_samples == 150
    assert moments.weight == pytest.approx(150 if weight is None else weight.sum())
    assert (moments.n_features, moments.n_outputs) == (4, 3)


def test_views_cover_the_joint_matrix(make_rows):
    moments = Moments.from_arrays(*make_rows(20, 4, 3))
    rebuilt = np.block([[moments.C, moments.B], [moments.B.T, moments.V]])
    np.testing.assert_array_equal(rebuilt, moments.scatter)
    np.testing.assert_array_equal(np.concatenate([moments.mean_phi, moments.mean_y]), moments.mean)


def test_uncentred(make_rows, rng):
    Phi, Y = make_rows(20, 4, 3)
    weight = rng.uniform(0.5, 2, size=20)
    raw = Moments.from_arrays(Phi, Y, weight).uncentred()
    np.testing.assert_allclose(raw.C, Phi.T @ (weight[:, None] * Phi), rtol=1e-12)
    np.testing.assert_allclose(raw.B, Phi.T @ (weight[:, None] * Y), rtol=1e-12)
    np.testing.assert_allclose(raw.V, Y.T @ (weight[:, None] * Y), rtol=1e-12)
    centred = Moments.from_arrays(Phi, Y, weight).centred()
    np.testing.assert_allclose(raw.C - centred.C, weight.sum() * np.outer(*2 * [weight @ Phi / weight.sum()]))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 40), max_size=6),
    order=st.randoms(use_true_random=False),
    weighted=st.booleans(),
    offset=st.sampled_from([0.0, 1.0, 1e6]),
)
def test_parts_in_any_order_give_the_whole(seed, cuts, order, weighted, offset):
    rng = np.random.default_rng(seed)
    Phi, Y = rng.normal(size=(40, 3)) + offset, rng.normal(size=(40, 2)) - offset
    weight = rng.uniform(0, 3, size=40) if weighted else None
    edges = [0, *sorted(cuts), 40]
    parts = [slice(a, b) for a, b in itertools.pairwise(edges)]
    order.shuffle(parts)
    pieces = [Moments.from_arrays(Phi[s], Y[s], None if weight is None else weight[s]) for s in parts]
    total = pieces[0]
    for piece in pieces[1:]:
        total = total + piece
    assert total.allclose(Moments.from_arrays(Phi, Y, weight), rtol=1e-9)


def test_weights_count_copies(make_rows, rng):
    Phi, Y = make_rows(12, 3, 2)
    copies = rng.integers(0, 4, size=12)
    weighted = Moments.from_arrays(Phi, Y, copies)
    repeated = Moments.from_arrays(np.repeat(Phi, copies, axis=0), np.repeat(Y, copies, axis=0))
    np.testing.assert_allclose(weighted.scatter, repeated.scatter, atol=1e-11)
    np.testing.assert_allclose(weighted.mean, repeated.mean, atol=1e-13)
    assert weighted.weight == repeated.weight == copies.sum()


def test_precision_under_a_large_offset(rng):
    """Spread 1 on a mean of 1e6: raw sums lose it, these do not."""
    small, offset = rng.normal(size=(5000, 3)), 1e6
    Z = small + offset
    exact = direct(Z[:, :2], Z[:, 2:])[1]
    ours = Moments.from_arrays(Z[:, :2], Z[:, 2:])
    raw_sums = Z.T @ Z - len(Z) * np.outer(Z.mean(axis=0), Z.mean(axis=0))
    error = np.abs(ours.scatter - exact).max() / exact.max()
    assert error < 1e-12
    assert np.abs(raw_sums - exact).max() / exact.max() > 1e3 * error


def test_constant_columns_are_exactly_zero(rng):
    Phi = rng.normal(size=(3000, 3))
    Phi[:, 1] = 0.1
    Y = np.full((3000, 1), 1e5 / 3)
    moments = Moments.from_arrays(Phi, Y)
    assert not moments.scatter[1].any()
    assert not moments.V.any()
    assert moments.mean_y[0] == 1e5 / 3


def test_float32_rows_are_summed_in_float64(rng):
    Phi, Y = rng.normal(size=(4000, 3)).astype(np.float32), rng.normal(size=(4000, 2)).astype(np.float32)
    single, double = Moments.from_arrays(Phi, Y), Moments.from_arrays(Phi.astype(float), Y.astype(float))
    assert single.scatter.dtype == np.float64
    np.testing.assert_allclose(single.scatter, double.scatter, atol=1e-9)


def test_empty_parts_change_nothing(make_rows):
    Phi, Y = make_rows(10, 3, 2)
    whole = Moments.from_arrays(Phi, Y)
    empty = Moments.from_arrays(Phi[:0], Y[:0])
    assert empty.weight == 0
    assert (whole + empty).allclose(whole)
    assert (empty + whole).allclose(whole)
    assert (empty + empty).weight == 0


def test_builtin_sum(make_rows):
    Phi, Y = make_rows(10, 3, 2)
    parts = [Moments.from_arrays(Phi[s], Y[s]) for s in (slice(4), slice(4, 10))]
    assert sum(parts).allclose(Moments.from_arrays(Phi, Y))
    with pytest.raises(TypeError):
        1 + parts[0]


def test_arrays_cannot_be_changed(make_rows):
    with pytest.raises(ValueError, match="read-only"):
        Moments.from_arrays(*make_rows(10, 3, 2)).C[0, 0] = 1.0


def test_outlier_of_no_weight_costs_no_precision(rng):
    Phi, Y = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    plain = Moments.from_arrays(Phi, Y)
    Phi, Y = np.vstack([np.full((1, 3), 1e10), Phi]), np.vstack([np.full((1, 2), 1e10), Y])
    weighted = Moments.from_arrays(Phi, Y, np.concatenate([[1e-40], np.ones(50)]))
    np.testing.assert_allclose(weighted.scatter, plain.scatter, rtol=1e-11, atol=1e-11)


def test_allclose_sees_differences(make_rows):
    Phi, Y = make_rows(10, 3, 2)
    whole = Moments.from_arrays(Phi, Y)
    assert not whole.allclose(Moments.from_arrays(Phi + 1e-6, Y))
    assert not whole.allclose(Moments.from_arrays(Phi[:9], Y[:9]))
    assert not whole.allclose(Moments.from_arrays(Phi[:, :2], Y))
    assert not whole.allclose(Moments.from_arrays(Phi * (1 + 1e-6), Y))


def test_errors_name_the_argument(make_rows):
    Phi, Y = make_rows(10, 3, 2)
    with pytest.raises(ValueError, match="10 and 9 rows"):
        Moments.from_arrays(Phi, Y[:9])
    with pytest.raises(ValueError, match="Y must be two-dimensional"):
        Moments.from_arrays(Phi, Y[:, 0])
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(10,\)"):
        Moments.from_arrays(Phi, Y, np.ones(9))
    with pytest.raises(ValueError, match="sample_weight must be finite and non-negative"):
        Moments.from_arrays(Phi, Y, -np.ones(10))
    with pytest.raises(ValueError, match="same features and outputs"):
        Moments.from_arrays(Phi, Y) + Moments.from_arrays(Phi[:, :2], Y)
    with pytest.raises(TypeError):
        Moments.from_arrays(Phi, Y) + 1
