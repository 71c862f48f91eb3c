"""Claims: what holds, fails or stays open in made-up results; all are about something that is run."""

import numpy as np
import pytest

from entangled_kernels.experiments import EXPERIMENTS
from entangled_kernels.experiments.agreement import CLAIMS, FAILS, HOLDS, OPEN, Claim, judge_claim
from entangled_kernels.storage import ExperimentResults


def results(difference, spread=0.01, n_splits=30):
    rng = np.random.default_rng(0)
    records = []
    for split in range(n_splits):
        plain = 1.0 + 0.2 * rng.normal()
        own = plain + difference + spread * rng.normal()
        records += [
            {"method": method, "n": 10, "split": split, "nmse": error}
            for method, error in (("KRR", plain), ("EKL", own), ("ptrEKL", 2 * plain - own))
        ]
    return ExperimentResults("weather", "Weather", records)


@pytest.mark.parametrize(
    ("sign", "difference", "word"),
    [(-1, -0.1, HOLDS), (-1, 0.1, FAILS), (1, 0.1, HOLDS), (0, 0.0, HOLDS), (0, 0.1, FAILS)],
)
def test_clear_differences(sign, difference, word):
    claim = Claim("", "weather", sign, ("EKL",), keys={"n": 10})
    finding = judge_claim(claim, results(difference))
    assert finding.verdict == word
    assert finding.effects["EKL"].mean == pytest.approx(100 * difference, abs=1.0)


def test_what_the_interval_does_not_tell_stays_open():
    for sign in (-1, 0, 1):
        claim = Claim("", "weather", sign, ("EKL",), keys={"n": 10})
        assert judge_claim(claim, results(0.0, spread=1.0)).verdict == OPEN


def test_methods_that_differ_have_a_word_each():
    claim = Claim("", "weather", -1, ("EKL", "ptrEKL"), keys={"n": 10})
    assert judge_claim(claim, results(-0.1)).verdict == "EKL holds, ptrEKL fails"
    assert judge_claim(claim, None) is None
    assert judge_claim(claim, ExperimentResults("weather", "", [])) is None


def test_signs_of_values_themselves():
    records = [{"method": "EKL", "split": split, "x": -0.3 - 0.01 * split} for split in range(5)]
    claim = Claim("", "digits", -1, ("EKL",), None, metric="x")
    finding = judge_claim(claim, ExperimentResults("digits", "", records))
    assert finding.verdict == HOLDS
    assert finding.effects["EKL"].mean == pytest.approx(-0.32)


def test_the_papers_differences_come_from_its_tables():
    published = {claim.text: claim.published() for claim in CLAIMS}
    assert published["weather, n = 10: EKL below KRR"] == pytest.approx(100 * (0.722 - 0.813) / 0.813)
    assert published["uWave class 1, n = 20, lambda 1 for both: EKL below KRR"] == pytest.approx(
        -62.28, abs=0.01
    )
    ranks = "uWave class 2, n = 30: EKL with 20% of the operators as good as with all"
    assert published[ranks] == pytest.approx(100 * (0.941 - 0.943) / 0.943)
    assert all(published[claim.text] is None for claim in CLAIMS if claim.experiment == "simulated")


def test_the_summary_is_short_and_every_claim_has_an_experiment():
    assert len([claim for claim in CLAIMS if claim.summary]) <= 15
    assert {claim.experiment for claim in CLAIMS} <= set(EXPERIMENTS)
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)
