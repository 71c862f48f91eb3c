import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.learning import moments as moments_module
from entangled_kernels.learning.moments import Moments, RowSample, group_equal_weights, sample_size


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
    raw = Moments.from_arrays(Phi, Y, weight).second_moments(centred=False)
    np.testing.assert_allclose(raw.C, Phi.T @ (weight[:, None] * Phi), rtol=1e-12)
    np.testing.assert_allclose(raw.B, Phi.T @ (weight[:, None] * Y), rtol=1e-12)
    np.testing.assert_allclose(raw.V, Y.T @ (weight[:, None] * Y), rtol=1e-12)
    centred = Moments.from_arrays(Phi, Y, weight).second_moments(centred=True)
    np.testing.assert_allclose(
        raw.C - centred.C, weight.sum() * np.outer(*2 * [weight @ Phi / weight.sum()])
    )


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
    pieces = [
        Moments.from_arrays(Phi[s], Y[s], None if weight is None else weight[s]) for s in parts
    ]
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
    Phi, Y = (
        rng.normal(size=(4000, 3)).astype(np.float32),
        rng.normal(size=(4000, 2)).astype(np.float32),
    )
    single, double = (
        Moments.from_arrays(Phi, Y),
        Moments.from_arrays(Phi.astype(float), Y.astype(float)),
    )
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


def draw_missing(seed, n=20, m=3, p=4):
    rng = np.random.default_rng(seed)
    weight = np.where(rng.random((n, p)) < 0.4, 0.0, rng.uniform(0.5, 2.0, size=(n, p)))
    weight[:, 1] = weight[:, 0]
    return rng.normal(size=(n, m)) + 3.0, rng.normal(size=(n, p)), weight


def moments_of(missing, target):
    """Moments of one target."""
    for places, moments in missing.groups:
        if target in places:
            return moments, list(places).index(target)
    raise AssertionError(f"target {target} is in no group")


def test_targets_with_the_same_weights_are_one_group():
    weight = draw_missing(0)[2]
    groups = sorted(group_equal_weights(weight), key=lambda group: group[0][0])
    assert [places.tolist() for places, _ in groups] == [[0, 1], [2], [3]]
    for places, own_weight in groups:
        np.testing.assert_array_equal(weight[:, places[0]], own_weight)


def test_every_target_has_the_moments_of_its_own_rows():
    Phi, Y, weight = draw_missing(0)
    missing = Moments.from_arrays(Phi, Y, weight)
    assert [list(places) for places, _ in missing.groups] == [[0, 1], [2], [3]]
    assert (missing.n_features, missing.n_outputs) == (3, 4)
    for target in range(4):
        rows = weight[:, target] > 0
        expected = Moments.from_arrays(Phi[rows], Y[rows][:, [target]], weight[rows, target])
        moments, place = moments_of(missing, target)
        np.testing.assert_allclose(moments.C, expected.C)
        np.testing.assert_allclose(moments.B[:, place], expected.B[:, 0])
        assert moments.n_samples == rows.sum()
    whole = Moments.from_arrays(Phi, Y[:, :0], weight.max(axis=1))
    np.testing.assert_allclose(missing.rows.C, whole.C)
    assert missing.n_samples == weight.any(axis=1).sum()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 19), min_size=1, max_size=4))
def test_any_cut_gives_the_same(seed, cuts):
    """Batches without missing targets, with some, and with a target that is missing in all of their rows."""
    Phi, Y, weight = draw_missing(seed)
    weight[:5] = 1.0
    weight[5:9, 2] = 0.0
    missing = Moments.from_arrays(Phi, Y, weight)
    parts = []
    for rows in np.split(np.arange(20), sorted(set(cuts))):
        plain = np.all(weight[rows] == 1.0)
        one = (Phi[rows], Y[rows])
        parts.append(
            Moments.from_arrays(*one) if plain else Moments.from_arrays(*one, weight[rows])
        )
    total = sum(parts[1:], parts[0])
    for target in range(4):
        (left, i), (right, j) = moments_of(missing, target), moments_of(total, target)
        np.testing.assert_allclose(left.C, right.C, atol=1e-9)
        np.testing.assert_allclose(left.B[:, i], right.B[:, j], atol=1e-9)
        np.testing.assert_allclose(left.mean_y[i], right.mean_y[j], atol=1e-9)
        assert left.n_samples == right.n_samples


def test_equal_columns_are_complete_moments():
    """One group of targets is no special case, also where whole rows are missing."""
    Phi, Y, weight = draw_missing(1)
    rows = weight[:, 0] > 0
    for Z, own in (
        (Y, np.repeat(weight[:, :1], 4, axis=1)),
        (np.where(rows[:, None], Y, np.nan), weight[:, 0]),
    ):
        moments = Moments.from_arrays(Phi, Z, own)
        assert moments.complete
        assert moments.allclose(Moments.from_arrays(Phi[rows], Y[rows], weight[rows, 0]))
    mixed = Moments.from_arrays(*draw_missing(2))
    assert not mixed.complete
    assert sum([mixed]) is mixed


def test_a_missing_target_is_a_weight_of_zero():
    Phi, Y, weight = draw_missing(3)
    holes = np.where(weight > 0.0, Y, np.nan)
    assert Moments.from_arrays(Phi, holes, weight).allclose(Moments.from_arrays(Phi, Y, weight))
    plain = Moments.from_arrays(Phi, holes)
    assert plain.allclose(Moments.from_arrays(Phi, Y, (weight > 0.0).astype(float)))
    np.testing.assert_allclose(plain.mean_y, np.nanmean(holes, axis=0))
    np.testing.assert_allclose(plain.target_weight, (weight > 0.0).sum(axis=0))
    assert not plain.allclose(Moments.from_arrays(Phi, Y))
    with pytest.raises(ValueError, match="complete_moments"):
        plain.B  # noqa: B018


def test_rotated_features():
    Phi, Y, weight = draw_missing(3)
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 2)))[0]
    turned = Moments.from_arrays(Phi, Y, weight).rotated(basis, np.array([1.0, 2.0]))
    expected = Moments.from_arrays(Phi @ basis + [1.0, 2.0], Y, weight)
    for (_, left), (_, right) in zip(turned.groups, expected.groups, strict=True):
        np.testing.assert_allclose(left.scatter, right.scatter, atol=1e-12)
        np.testing.assert_allclose(left.mean, right.mean)


def test_too_many_groups_are_refused(monkeypatch):
    monkeypatch.setattr("entangled_kernels.learning.moments._MOST_NUMBERS", 20)
    with pytest.raises(ValueError, match="3 groups of targets that are missing in different rows"):
        Moments.from_arrays(*draw_missing(0))
    with pytest.raises(TypeError):
        Moments.from_arrays(*draw_missing(0)[:2]) + "moments"


def test_scaled_weights(make_rows):
    Phi, Y = make_rows(30, 3, 3)
    weight = np.random.default_rng(0).integers(0, 3, size=Y.shape).astype(float)
    scaled = Moments.from_arrays(Phi, Y, weight).scaled(0.3)
    weighted = Moments.from_arrays(Phi, Y, 0.3 * weight)
    assert scaled.rows.allclose(weighted.rows)
    for (places, own), (others, other) in zip(scaled.groups, weighted.groups, strict=True):
        assert list(places) == list(others)
        assert own.allclose(other)


def draw_keyed(n, seed=0):
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**63, size=n).astype(np.uint64)
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), keys, rng.uniform(0.5, 2.0, size=n)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 99), max_size=5))
def test_samples_of_parts_merge_to_that_of_the_whole(seed, cuts):
    Phi, Y, keys, weight = draw_keyed(100, seed)
    part = np.arange(100) % 4
    before = moments_module.MOST_ROWS
    moments_module.MOST_ROWS = 17
    try:
        whole = RowSample.of(Phi, Y, keys, weight, part)
        samples = [
            RowSample.of(Phi[rows], Y[rows], keys[rows], weight[rows], part[rows])
            for rows in np.split(np.random.default_rng(seed).permutation(100), sorted(set(cuts)))
        ]
        merged = samples[0]
        for sample in samples[1:]:
            merged = merged.merge(sample)
    finally:
        moments_module.MOST_ROWS = before
    for name in ("Phi", "Y", "weight", "part", "key"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))
    assert len(whole.Y) == 17
    np.testing.assert_array_equal(whole.key, np.sort(keys)[:17])


def test_rows_of_no_weight_are_not_taken():
    Phi, Y, keys, weight = draw_keyed(30)
    weight[::2] = 0.0
    sample = RowSample.of(Phi, Y, keys, weight)
    assert len(sample.Y) == 15
    assert set(map(tuple, sample.Y)) == set(map(tuple, Y[1::2]))


def test_sizes_are_bounded():
    assert sample_size(10) == moments_module.MOST_ROWS
    assert sample_size(2**14) == 256
    assert sample_size(10**7) == moments_module.FEWEST_ROWS


def test_weights_of_targets_are_kept():
    Phi, Y, keys, weight = draw_keyed(6)
    weights = np.column_stack([weight, 3.0 * weight])
    weights[0, 1] = weights[1] = 0.0
    Y[2, 0] = np.nan
    sample = RowSample.of(Phi, Y, keys, weights)
    order = np.argsort(keys)
    expected = np.where(np.isnan(Y), 0.0, weights)[order[order != 1]]
    np.testing.assert_array_equal(sample.weight, expected)
    np.testing.assert_array_equal(np.isnan(sample.Y), expected == 0.0)
    np.testing.assert_array_equal(sample.row_weight, expected.max(axis=1))


def test_rows_that_hardly_weigh_are_dropped():
    Phi, Y, key = np.arange(6.0)[:, None], np.ones((6, 1)), np.arange(6, dtype=np.uint64)
    sample = RowSample.of(Phi, Y, key, np.array([1.0, 1e-4, 0.5, 1e-2, 0.0, 2.0]))
    faded = sample.scaled(0.5)
    assert list(faded.Phi[:, 0]) == [0.0, 2.0, 3.0, 5.0]
    np.testing.assert_array_equal(faded.weight[:, 0], [0.5, 0.25, 0.005, 1.0])
