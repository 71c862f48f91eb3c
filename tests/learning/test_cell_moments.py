import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.learning import Moments
from entangled_kernels.learning.cell_moments import CellMoments, weight_groups


def draw(seed, n=20, m=3, p=4):
    rng = np.random.default_rng(seed)
    weight = np.where(rng.random((n, p)) < 0.4, 0.0, rng.uniform(0.5, 2.0, size=(n, p)))
    weight[:, 1] = weight[:, 0]
    return rng.normal(size=(n, m)) + 3.0, rng.normal(size=(n, p)), weight


def own(cells, target):
    """Moments of one target."""
    for places, moments in cells.groups:
        if target in places:
            return moments, list(places).index(target)
    raise AssertionError(f"target {target} is in no group")


def test_targets_with_the_same_weights_are_one_group():
    weight = draw(0)[2]
    groups = sorted(weight_groups(weight), key=lambda group: group[0][0])
    assert [places.tolist() for places, _ in groups] == [[0, 1], [2], [3]]
    for places, own_weight in groups:
        np.testing.assert_array_equal(weight[:, places[0]], own_weight)


def test_every_target_has_the_moments_of_its_own_rows():
    Phi, Y, weight = draw(0)
    cells = CellMoments.from_arrays(Phi, Y, weight)
    assert [list(places) for places, _ in cells.groups] == [[0, 1], [2], [3]]
    assert (cells.n_features, cells.n_outputs) == (3, 4)
    for target in range(4):
        rows = weight[:, target] > 0
        expected = Moments.from_arrays(Phi[rows], Y[rows][:, [target]], weight[rows, target])
        moments, place = own(cells, target)
        np.testing.assert_allclose(moments.C, expected.C)
        np.testing.assert_allclose(moments.B[:, place], expected.B[:, 0])
        assert moments.n_samples == rows.sum()
    whole = Moments.from_arrays(Phi, Y[:, :0], weight.max(axis=1))
    np.testing.assert_allclose(cells.rows.C, whole.C)
    assert cells.n_samples == weight.any(axis=1).sum()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 19), min_size=1, max_size=4))
def test_any_cut_gives_the_same(seed, cuts):
    """Batches without blanks, with some, and with a target that is blank in all of their rows."""
    Phi, Y, weight = draw(seed)
    weight[:5] = 1.0
    weight[5:9, 2] = 0.0
    cells = CellMoments.from_arrays(Phi, Y, weight)
    parts = []
    for rows in np.split(np.arange(20), sorted(set(cuts))):
        plain = np.all(weight[rows] == 1.0)
        one = (Phi[rows], Y[rows])
        parts.append(Moments.from_arrays(*one) if plain else CellMoments.from_arrays(*one, weight[rows]))
    total = sum(parts[1:], parts[0])
    for target in range(4):
        (left, i), (right, j) = own(cells, target), own(total, target)
        np.testing.assert_allclose(left.C, right.C, atol=1e-9)
        np.testing.assert_allclose(left.B[:, i], right.B[:, j], atol=1e-9)
        np.testing.assert_allclose(left.mean_y[i], right.mean_y[j], atol=1e-9)
        assert left.n_samples == right.n_samples


def test_equal_columns_are_plain_moments():
    Phi, Y, weight = draw(1)
    cells = CellMoments.from_arrays(Phi, Y, np.repeat(weight[:, :1], 4, axis=1))
    rows = weight[:, 0] > 0
    assert cells.simplest().allclose(Moments.from_arrays(Phi[rows], Y[rows], weight[rows, 0]))
    assert draw(2)[2].shape == (20, 4)
    mixed = CellMoments.from_arrays(*draw(2))
    assert mixed.simplest() is mixed
    assert sum([mixed]) is mixed


def test_rotated_features():
    Phi, Y, weight = draw(3)
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 2)))[0]
    turned = CellMoments.from_arrays(Phi, Y, weight).rotated(basis, np.array([1.0, 2.0]))
    expected = CellMoments.from_arrays(Phi @ basis + [1.0, 2.0], Y, weight)
    for (_, left), (_, right) in zip(turned.groups, expected.groups, strict=True):
        np.testing.assert_allclose(left.scatter, right.scatter, atol=1e-12)
        np.testing.assert_allclose(left.mean, right.mean)


def test_too_many_groups_are_refused(monkeypatch):
    monkeypatch.setattr("entangled_kernels.learning.cell_moments._MOST_NUMBERS", 20)
    with pytest.raises(ValueError, match="3 groups of targets with blanks of their own need 3 x 3 x 3"):
        CellMoments.from_arrays(*draw(0))
    with pytest.raises(TypeError):
        Moments.from_arrays(*draw(0)[:2]) + "moments"


def test_scaled_weights(make_rows):
    Phi, Y = make_rows(30, 3, 3)
    weight = np.random.default_rng(0).integers(0, 3, size=Y.shape).astype(float)
    scaled = CellMoments.from_arrays(Phi, Y, weight).scaled(0.3)
    weighted = CellMoments.from_arrays(Phi, Y, 0.3 * weight)
    assert scaled.rows.allclose(weighted.rows)
    for (places, own), (others, other) in zip(scaled.groups, weighted.groups, strict=True):
        assert list(places) == list(others)
        assert own.allclose(other)
