import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entangled_kernels.kernels import EntanglementReport, entanglement_report
from kernels.draws import random_psd, seeds, sizes
from linalg.states import BELL, horodecki, werner

NUMBERS = ("lowest_eigenvalue", "negativity", "realignment", "schmidt_entropy", "separable_share")
dimensions = st.tuples(st.integers(1, 4), st.integers(1, 4))


def numbers(report):
    return [getattr(report, name) for name in NUMBERS]


@pytest.mark.parametrize("a", [0.1, 0.225, 0.5, 0.8])
def test_bound_entanglement_is_silent_in_ppt_and_found_by_realignment(a):
    report = entanglement_report(horodecki(a), (3, 3))
    assert report.ppt
    assert report.entangled is True
    assert "PPT holds and leaves 3 x 3 undecided" in report.verdict
    assert "realignment" in report.verdict


@settings(max_examples=30)
@given(m=sizes, p=sizes, scale=st.sampled_from([1e-8, 3.0, 1e8]), seed=seeds)
def test_units_and_rotations_of_features_and_outputs_change_nothing(m, p, scale, seed):
    rng = np.random.default_rng(seed)
    D = random_psd(rng, m * p)
    rotation = np.kron(*(np.linalg.qr(rng.normal(size=(size, size)))[0] for size in (m, p)))
    report = entanglement_report(D, (m, p))
    turned = entanglement_report(scale * rotation @ D @ rotation.T, (m, p))
    assert numbers(turned) == pytest.approx(numbers(report), abs=1e-10)
    assert (turned.ppt, turned.schmidt_rank) == (report.ppt, report.schmidt_rank)


@pytest.mark.parametrize(
    ("changed", "entangled", "start"),
    [
        ({"schmidt_rank": 1}, False, "Separable: the kernel is one scalar kernel"),
        ({"ppt": False}, True, "Entangled: PPT fails"),
        ({"realignment": 1.1}, True, "Entangled: PPT holds and leaves 3 x 3 undecided"),
        ({"dims": (3, 2)}, False, "Not entangled: PPT holds"),
        ({}, None, "Undecided: PPT holds"),
    ],
)
def test_the_verdict_says_what_is_proven(changed, entangled, start):
    values = {
        "dims": (3, 3),
        "ppt": True,
        "lowest_eigenvalue": 0.0,
        "negativity": 0.0,
        "realignment": 0.9,
        "schmidt_entropy": 0.5,
        "separable_share": 0.8,
        "schmidt_rank": 4,
    }
    report = EntanglementReport(**(values | changed))
    assert report.entangled is entangled
    assert report.verdict.startswith(start)


@pytest.mark.parametrize(
    "D",
    [
        np.diag([1.0, 1.0, 1.0, -0.1]),
        np.kron(np.diag([1.0, -0.5]), np.eye(2)),
        BELL - 1e-6 * np.eye(4),
        werner(-0.4).astype(complex),
    ],
    ids=["one_negative_eigenvalue", "indefinite_factor", "just_below", "complex"],
)
def test_an_indefinite_matrix_is_refused(D):
    """Some of these have one Schmidt value or a psd partial transpose, and would be called separable."""
    with pytest.raises(
        ValueError, match=r"D must be positive semidefinite.*has eigenvalue -.*prove nothing"
    ):
        entanglement_report(D, (2, 2))


@settings(max_examples=30)
@given(m=sizes, p=sizes, rank=st.integers(1, 4), seed=seeds)
def test_rounding_does_not_make_a_matrix_indefinite(m, p, rank, seed):
    """Noise of a thousand rounding errors, beside a D with zero eigenvalues."""
    rng = np.random.default_rng(seed)
    D = random_psd(rng, m * p, rank)
    noise = 1e-13 * np.abs(D).max() * rng.normal(size=D.shape)
    report, noisy = (entanglement_report(A, (m, p)) for A in (D, D + noise + noise.T))
    assert noisy.entangled is report.entangled
    assert numbers(noisy) == pytest.approx(numbers(report), abs=1e-9)


def test_single_precision_is_taken_for_what_it_is(rng):
    Q = rng.normal(size=(6, 2)).astype(np.float32)
    single, double = (entanglement_report(own @ own.T, (3, 2)) for own in (Q, Q.astype(float)))
    assert single.ppt == double.ppt
    assert single.negativity == pytest.approx(double.negativity, abs=1e-5)
