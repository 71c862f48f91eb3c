import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.learning.alignment import Alignment
from entangled_kernels.learning.moments import Moments

from reference import dense

SIZES = [(12, 4, 3, 2), (12, 4, 3, 12), (8, 6, 2, 1), (6, 3, 9, 5)]


def stacked(Q):
    return Q.reshape(Q.shape[0] * Q.shape[1], -1)


def psd(rng, m):
    L = rng.normal(size=(m, m))
    return L @ L.T


@pytest.mark.parametrize(("n", "m", "p", "r"), SIZES)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("with_metric", [True, False])
def test_value_is_the_dense_definition(make_rows, rng, n, m, p, r, centred, weighted, with_metric):
    Phi, Y = make_rows(n, m, p)
    weight = rng.uniform(0.2, 2, size=n) if weighted else None
    Q = rng.normal(size=(m, p, r))
    metric = psd(rng, m) if with_metric else None
    objective = Alignment.from_moments(Moments.from_arrays(Phi, Y, weight), centred=centred)
    D = stacked(Q) @ stacked(Q).T
    if with_metric:
        D = D + np.kron(metric, np.eye(p))
    expected = dense.alignment(Phi, Y, D, weight, fit_intercept=centred)
    np.testing.assert_allclose(objective.terms(Q, metric), expected, atol=1e-12)
    if not with_metric:
        at = objective.evaluate(Q, 0.3)
        np.testing.assert_allclose(at.terms, expected, atol=1e-12)
        assert at.value == pytest.approx(0.7 * expected[0] + 0.3 * expected[1], abs=1e-12)


def test_centrings_coincide_on_centred_rows(make_rows, rng):
    Phi, Y = make_rows(12, 4, 3)
    moments = Moments.from_arrays(Phi - Phi.mean(axis=0), Y - Y.mean(axis=0))
    Q = rng.normal(size=(4, 3, 2))
    one, other = (
        Alignment.from_moments(moments, centred=centred).terms(Q) for centred in (True, False)
    )
    np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(("n", "m", "p", "r"), SIZES)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("mix", [0.0, 0.4, 1.0])
def test_gradient_by_the_slope_of_the_remainder(make_rows, rng, n, m, p, r, centred, mix):
    """f(Q + t V) - f(Q) - t <gradient, V> falls like t^2, which it does for no other gradient."""
    objective = Alignment.from_moments(Moments.from_arrays(*make_rows(n, m, p)), centred=centred)
    Q, V = rng.normal(size=(2, m, p, r))
    V /= np.linalg.norm(V)
    at = objective.evaluate(Q, mix)
    steps = np.array([1e-2, 1e-3])
    change = np.array([objective.evaluate(Q + t * V, mix).value for t in steps]) - at.value
    remainder = np.abs(change - steps * np.vdot(at.gradient, V))
    slope = np.diff(np.log(remainder)) / np.diff(np.log(steps))
    assert slope == pytest.approx(2.0, abs=0.15)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(1e-3, 1e3), centred=st.booleans())
def test_invariants(seed, scale, centred):
    """Scaling and rotating Q change nothing, terms are cosines, and the gradient is tangent to the sphere."""
    rng = np.random.default_rng(seed)
    Phi, Y = rng.normal(size=(9, 3)) + 1, rng.normal(size=(9, 2))
    objective = Alignment.from_moments(Moments.from_arrays(Phi, Y), centred=centred)
    Q = rng.normal(size=(3, 2, 4))
    at = objective.evaluate(Q, 0.5)
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    assert objective.evaluate(scale * Q, 0.5).value == pytest.approx(at.value, rel=1e-9)
    assert objective.evaluate(Q @ rotation, 0.5).value == pytest.approx(at.value, rel=1e-9)
    assert all(-1e-12 <= term <= 1 + 1e-12 for term in at.terms)
    assert abs(np.vdot(at.gradient, Q)) < 1e-9


@pytest.mark.parametrize(("n", "m", "p", "r"), SIZES)
@pytest.mark.parametrize("centred", [True, False])
def test_line_is_the_objective_along_it(make_rows, rng, n, m, p, r, centred):
    objective = Alignment.from_moments(Moments.from_arrays(*make_rows(n, m, p)), centred=centred)
    Q, V = rng.normal(size=(2, m, p, r))
    along = objective.line(Q, V, 0.4, objective.evaluate(Q, 0.4))
    for t in (0.0, 1e-3, 0.7, 5.0):
        assert along(t) == pytest.approx(objective.evaluate(Q + t * V, 0.4).value, abs=1e-11)


def test_transformed_coordinates(make_rows, rng):
    Phi, Y = make_rows(12, 4, 3)
    outputs = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    features = rng.normal(size=(4, 4))
    for centred in (True, False):
        objective = Alignment.from_moments(Moments.from_arrays(Phi, Y), centred=centred)
        other = objective.transformed(features, outputs, whitened=False)
        Q = rng.normal(size=(4, 3, 2))
        original = np.einsum("mf,pk,fkr->mpr", features, outputs, Q)
        np.testing.assert_allclose(other.terms(Q), objective.terms(original), atol=1e-12)
        np.testing.assert_allclose(
            other.evaluate(Q, 0.4).terms, objective.terms(original), atol=1e-12
        )


def test_nothing_to_align_with_gives_zero(make_rows, rng):
    Phi, Y = make_rows(10, 3, 2)
    objective = Alignment.from_moments(Moments.from_arrays(Phi, np.ones_like(Y)))
    Q = rng.normal(size=(3, 2, 2))
    at = objective.evaluate(Q, 0.5)
    assert at.value == 0
    assert not at.gradient.any()
    assert objective.line(Q, Q, 0.5, at)(1.0) == 0
