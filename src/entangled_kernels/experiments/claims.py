"""What the paper claims, each claim with what our runs say of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..linalg import Array
from ..storage import ExperimentResults
from .agreement import values_by_split
from .paper_cells import CELLS
from .verdicts import Effect

__all__ = ["CLAIMS", "FAILS", "HOLDS", "OPEN", "Claim", "Finding", "judge_claim"]

HOLDS, FAILS, OPEN = "holds", "fails", "not settled"


@dataclass(frozen=True)
class Claim:
    """A difference that the paper reports, in percent of what it is to.

    Attributes
    ----------
    text : str
    experiment : str
    sign : {-1, 0, 1}
        Below, as good as, above.
    methods : tuple of str
        Ours that it is about; each is judged.
    other : str or None
        What they differ from; None where the values themselves have the sign.
    keys : dict
        The setting.
    other_keys : dict
        What is different in the setting of ``other``.
    metric : str
    tolerance : float
        Percent within which methods are as good.
    paper : float or None
        The published difference in percent; taken from the tables where these have it.
    summary : bool
        Whether it belongs to the summary of the whole paper.
    """

    text: str
    experiment: str
    sign: int
    methods: tuple[str, ...]
    other: str | None = "KRR"
    keys: dict[str, Any] = field(default_factory=dict)
    other_keys: dict[str, Any] = field(default_factory=dict)
    metric: str = "nmse"
    tolerance: float = 5.0
    paper: float | None = None
    summary: bool = False

    def published(self) -> float | None:
        """The paper's difference in percent, where it prints one."""
        if self.paper is not None or self.metric != "nmse":
            return self.paper
        means = {
            (name, *sorted(cell.keys.items())): cell.nmse
            for cell in CELLS.get(self.experiment, [])
            for name in cell.ours
        }
        method = self.methods[0].partition(",")[0]
        own = means.get((method, *sorted(self.keys.items())))
        other = str(self.other).partition(",")[0]
        base = means.get((other, *sorted((self.keys | self.other_keys).items())))
        return None if own is None or base is None else 100.0 * (own - base) / base

    def values(self, results: ExperimentResults, method: str) -> Array:
        """Our differences in percent, partition by partition; the values themselves without an ``other``."""
        own = values_by_split(results, method, self.keys, self.metric)
        if self.other is None:
            return np.fromiter(own.values(), dtype=np.float64)
        other = values_by_split(results, self.other, self.keys | self.other_keys, self.metric)
        both = [split for split in own if split in other]
        scale = np.mean([other[split] for split in both]) if both else 1.0
        return np.array([100.0 * (own[split] - other[split]) / scale for split in both])


@dataclass(frozen=True)
class Finding:
    """What one run says of a claim: an effect and a word for each method."""

    effects: dict[str, Effect]
    words: dict[str, str]

    @property
    def verdict(self) -> str:
        """One word where methods agree, else one for each."""
        if len(set(self.words.values())) == 1:
            return next(iter(self.words.values()))
        return ", ".join(f"{method} {word}" for method, word in self.words.items())


def judge_claim(claim: Claim, results: ExperimentResults | None) -> Finding | None:
    """Whether a claim holds in a run, by the 95% interval of the mean difference; None without records.

    A claim of a sign holds where the interval has that sign and fails where it has the other. That methods
    are as good holds where the interval lies within the tolerance, and fails where it lies outside.
    """
    if results is None:
        return None
    effects = {method: claim.values(results, method) for method in claim.methods}
    found = {method: Effect.of(values) for method, values in effects.items() if len(values)}
    return Finding(found, {name: _word(claim, effect) for name, effect in found.items()}) if found else None


def _word(claim: Claim, effect: Effect) -> str:
    if claim.sign:
        return {claim.sign: HOLDS, -claim.sign: FAILS, 0: OPEN}[effect.sign]
    if -claim.tolerance <= effect.low and effect.high <= claim.tolerance:
        return HOLDS
    return FAILS if effect.low > claim.tolerance or effect.high < -claim.tolerance else OPEN


BOTH = ("EKL", "ptrEKL")


def _uwave(number: int, n: int, rank: str = "100%") -> dict[str, Any]:
    return {"task": f"class {number}", "rank": rank, "n": n}


def _simulated(task: str, n: int, p: int, rank: str = "100%") -> dict[str, Any]:
    return {"task": task, "n": n, "p": p, "rank": rank}


def _claims() -> list[Claim]:
    real = [
        Claim("SARCOS, n = 50: EKL below KRR", "sarcos", -1, BOTH, keys={"n": 50}, summary=True),
        Claim(
            "SARCOS, n = 1000: EKL as good as KRR",
            "sarcos",
            0,
            BOTH,
            keys={"n": 1000},
            tolerance=1.0,
            summary=True,
        ),
        *(
            Claim(f"weather, n = {n}: EKL below KRR", "weather", -1, BOTH, keys={"n": n}, summary=True)
            for n in (5, 10, 15)
        ),
        Claim("weather, n = 10: OKL above KRR", "weather", 1, ("OKL",), keys={"n": 10}, summary=True),
        Claim("concrete, n = 12: EKL below KRR", "concrete", -1, ("EKL",), keys={"n": 12}, summary=True),
        Claim("concrete, n = 20: EKL below KRR", "concrete", -1, ("EKL",), keys={"n": 20}),
        Claim("concrete, n = 40: ptrEKL above KRR", "concrete", 1, ("ptrEKL",), keys={"n": 40}, summary=True),
    ]
    uwave = [
        Claim(
            f"uWave class {number}, n = {n}: EKL below KRR",
            "uwave",
            -1,
            ("EKL",),
            keys=_uwave(number, n),
            summary=(number, n) in ((1, 20), (3, 40)),
        )
        for number in (1, 2, 3)
        for n in (20, 30, 40)
    ]
    uwave += [
        Claim(
            f"uWave class {number}, n = {n}, lambda 1 for both: EKL below KRR",
            "uwave",
            -1,
            ("EKL, lambda 1",),
            "KRR, lambda 1",
            _uwave(number, n),
        )
        for number in (1, 2, 3)
        for n in (20, 40)
    ]
    uwave += [
        Claim(
            f"uWave class {number}, n = 30: EKL with 20% of the operators as good as with all",
            "uwave",
            0,
            ("EKL",),
            "EKL",
            _uwave(number, 30, "20%"),
            {"rank": "100%"},
            summary=number == 2,
        )
        for number in (1, 2, 3)
    ]
    return [*real, *uwave, *_simulated_claims(), *_other_claims()]


def _simulated_claims() -> list[Claim]:
    below = [
        Claim(
            f"simulated, n = 20, p = {p}: EKL and ptrEKL below KRR",
            "simulated",
            -1,
            BOTH,
            keys=_simulated("over p", 20, p),
            summary=p == 100,
        )
        for p in (20, 50, 100)
    ]
    ranks = [
        Claim(
            f"simulated, n = 20, p = 100: ptrEKL with {share} of the operators as good as with all",
            "simulated",
            0,
            ("ptrEKL",),
            "ptrEKL",
            _simulated("over rank", 20, 100, share),
            {"rank": "100%"},
            tolerance=2.0,
        )
        for share in ("60%", "20%")
    ]
    worse = Claim(
        "simulated, n = 20, p = 100: EKL with 20% of the operators above EKL with all",
        "simulated",
        1,
        ("EKL",),
        "EKL",
        _simulated("over rank", 20, 100, "20%"),
        {"rank": "100%"},
    )
    best = Claim(
        "simulated, n = 20, p = 100: ptrEKL below EKL",
        "simulated",
        -1,
        ("ptrEKL",),
        "EKL",
        _simulated("over p", 20, 100),
        summary=True,
    )
    than_okl = Claim(
        "simulated, n = 20, p = 100: ptrEKL below OKL",
        "simulated",
        -1,
        ("ptrEKL",),
        "OKL",
        _simulated("over p", 20, 100),
    )
    return [*below, best, than_okl, *ranks, worse]


def _other_claims() -> list[Claim]:
    entangled = Claim(
        "digits, r = 2: the kernel is entangled (lowest eigenvalue of the partial transpose below 0)",
        "digits",
        -1,
        ("EKL",),
        None,
        {"task": "all", "rank": "2"},
        metric="lowest eigenvalue",
        summary=True,
    )
    largest = {"task": "over p", "n": 40, "p": 40}

    def faster(text: str, sign: int, method: str, other: str, metric: str, **more: Any) -> Claim:
        words = f"running times, n = 40, p = 40: {text}"
        return Claim(words, "running-times", sign, (method,), other, largest, metric=metric, **more)

    return [
        entangled,
        faster(
            "entangled 100% predicts faster than unstructured",
            -1,
            "entangled 100%",
            "unstructured",
            "predict_seconds",
            summary=True,
        ),
        faster(
            "entangled 100% trains as slowly as unstructured (within a factor of 2)",
            0,
            "entangled 100%",
            "unstructured",
            "fit_seconds",
            tolerance=100.0,
        ),
        faster(
            "entangled 75% trains like separable (within a factor of 2)",
            0,
            "entangled 75%",
            "separable",
            "fit_seconds",
            tolerance=100.0,
        ),
        faster("entangled 50% trains faster than separable", -1, "entangled 50%", "separable", "fit_seconds"),
        faster(
            "partial trace 100% trains faster than entangled 50%",
            -1,
            "partial trace 100%",
            "entangled 50%",
            "fit_seconds",
        ),
    ]


CLAIMS = _claims()
