"""Verdicts on the paper's tables and claims, by comparison with our results."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from scipy.stats import t as student

from ..io import ExperimentResults, Record
from ..linalg import Array

__all__ = [
    "AGREES",
    "CELLS",
    "CLAIMS",
    "METRICS",
    "NOT_JUDGED",
    "SHARED",
    "TOO_FEW",
    "VARIANTS",
    "Cell",
    "Claim",
    "Finding",
    "Verdict",
    "as_records",
    "judge",
    "judge_cells",
    "judge_claim",
]

# The row of a table that EKL and ptrEKL share.
SHARED = "EKL/ptrEKL"


class Cell(NamedTuple):
    """One mean in a table of the paper.

    Attributes
    ----------
    method : str
        KRR, OKL, EKL, ptrEKL or `SHARED`.
    keys : dict
        The setting: n, and for uWave the class (``task``) and the Kraus rank.
    nmse, deviation : float
        Mean and standard deviation over partitions.
    ni : float or None
        Normalised improvement over kernel ridge, if the table has it.
    partitions : int
    digits : int
        Digits after the point of the mean and of the improvement.
    table : str
        "over n" or "over rank".
    """

    method: str
    keys: dict[str, Any]
    nmse: float
    deviation: float
    ni: float | None
    partitions: int
    digits: int
    table: str = "over n"

    @property
    def ours(self) -> tuple[str, ...]:
        """Methods of ours that are compared with the cell; the first decides the verdict."""
        return (SHARED, "EKL", "ptrEKL") if self.method == SHARED else (self.method,)


def _read_cells() -> dict[str, list[Cell]]:
    cells: dict[str, list[Cell]] = {}
    with files(__package__).joinpath("paper_cells.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            keys = {key: row[key] for key in ("task", "rank") if row[key]} | {"n": int(row["n"])}
            ni = float(row["ni"]) if row["ni"] else None
            means = float(row["nmse"]), float(row["deviation"]), ni
            counts = int(row["partitions"]), int(row["digits"])
            cell = Cell(row["method"], keys, *means, *counts, row["table"])
            cells.setdefault(row["experiment"], []).append(cell)
    return cells


# By the name of the experiment.
CELLS = _read_cells()


def as_records(name: str) -> list[Record]:
    """The cells of an experiment as records, without repeated settings."""
    records = {}
    for cell in CELLS.get(name, []):
        record = {"method": cell.method, **cell.keys, "nmse": cell.nmse}
        records[tuple(cell.keys.values()), cell.method] = (
            record if cell.ni is None else record | {"ni": cell.ni}
        )
    return list(records.values())


AGREES, LOWER, HIGHER = "agrees", "lower than ours", "higher than ours"
# The word for fewer than MIN_PARTITIONS partitions of ours.
TOO_FEW = "too few partitions"
MIN_PARTITIONS = 20
# The word for a method of ours that does not decide the verdict.
NOT_JUDGED = "not judged"
# The central part of our means in which a published mean agrees.
LEVEL = 0.95
N_DRAWS = 4000


class Verdict(NamedTuple):
    """Comparison of a published mean with our partitions.

    Attributes
    ----------
    word : str
        `AGREES`, `LOWER` or `HIGHER`, or `TOO_FEW`.
    percentile : float
        Percentile of the published mean among means of as many partitions of ours; NaN for
        `TOO_FEW`.
    ours, deviation : float
        Mean and standard deviation of our partitions.
    difference : float
        Published mean less ours.
    in_errors : float
        The difference in units of its standard error; NaN if nothing varies.
    """

    word: str
    percentile: float
    ours: float
    deviation: float
    difference: float
    in_errors: float


def judge(
    ours: ArrayLike,
    paper: float,
    count: int,
    rng: np.random.Generator,
    *,
    deviation: float | None = None,
    unit: float = 0.0,
) -> Verdict:
    """Compare a published mean with means of as many partitions of ours.

    Parameters
    ----------
    ours : array-like of shape (N,)
        Our value on every partition.
    paper : float
        The published mean.
    count : int
        Number of partitions of the published mean.
    rng : numpy.random.Generator
    deviation : float, optional
        Published standard deviation over partitions, for the standard error; ours by default.
    unit : float, default=0
        Unit of the last printed digit. Of all means that are rounded to the published one, the
        closest to the median of ours is judged.

    Notes
    -----
    The means are those of `predicted_means`, which include the uncertainty of our mean over N
    partitions: with `count` = 10 and N = 50 it adds a fifth to the variance. In units of the
    standard error the difference is (paper - mean) / sqrt(s^2 / N + deviation^2 / count).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ours = rng.normal(1.0, 0.1, size=60)
    >>> judge(ours, 1.02, 5, rng).word, judge(ours, 1.3, 5, rng).word
    ('agrees', 'higher than ours')
    """
    values = np.asarray(ours, dtype=np.float64)
    mean, std = float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
    difference = paper - mean
    spread = std if deviation is None else deviation
    error = float(np.sqrt(std**2 / len(values) + spread**2 / count))
    in_errors = difference / error if error > 0.0 else float("nan")
    if len(values) < MIN_PARTITIONS:
        return Verdict(TOO_FEW, float("nan"), mean, std, difference, in_errors)
    means = predicted_means(values, count, rng)
    middle = float(np.median(means))
    shift = np.clip(middle - paper, -unit / 2.0, unit / 2.0)
    # Equal means may differ by the rounding of sums.
    slack = 1e-12 * max(1.0, abs(middle))
    below = float(np.mean(means < paper + shift - slack))
    above = float(np.mean(means > paper + shift + slack))
    percentile = 100.0 * (below + (1.0 - below - above) / 2.0)
    tail = 50.0 * (1.0 - LEVEL)
    word = LOWER if percentile < tail else HIGHER if percentile > 100.0 - tail else AGREES
    return Verdict(word, percentile, mean, std, difference, in_errors)


def predicted_means(
    values: Array, count: int, rng: np.random.Generator, n_draws: int = N_DRAWS
) -> Array:
    """Means of ``count`` further partitions, predicted from the values, (n_draws,).

    Notes
    -----
    Draws of a Polya urn (the Bayesian bootstrap): each further value is one of the N values or,
    with the same probability, one of those already drawn. The variance of a mean is
    s^2 (1 / count + (1 - 1 / count) / (N + 1)). Since s comes from N values, distances from the
    centre are multiplied by sqrt(N / (N - 1)) and by the ratio of Student's quantile to the normal
    one, 3.6% for N = 50.

    Time n_draws * count.
    """
    n = len(values)
    picks = rng.integers(n + np.arange(count), size=(n_draws, count))
    for j in range(1, count):
        again = np.flatnonzero(picks[:, j] >= n)
        picks[again, j] = picks[again, picks[again, j] - n]
    tail = (1.0 - LEVEL) / 2.0
    stretch = np.sqrt(n / (n - 1)) * student.ppf(tail, n - 1) / norm.ppf(tail)
    centre = values.mean()
    return np.asarray(centre + stretch * (values[picks].mean(axis=1) - centre))


class Effect(NamedTuple):
    """Mean of paired differences over partitions, its standard error and 95% interval."""

    mean: float
    error: float
    low: float
    high: float

    @classmethod
    def of(cls, differences: ArrayLike) -> Effect:
        """The mean with Student's interval, which is infinite for a single partition."""
        values = np.asarray(differences, dtype=np.float64)
        mean = float(values.mean())
        if len(values) < 2:
            return cls(mean, float("inf"), -float("inf"), float("inf"))
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
        half = float(student.ppf((1.0 + LEVEL) / 2.0, len(values) - 1)) * error
        return cls(mean, error, mean - half, mean + half)

    @property
    def sign(self) -> int:
        """The sign of the interval, 0 if it contains zero."""
        return -1 if self.high < 0.0 else 1 if self.low > 0.0 else 0


# What is compared, in words.
METRICS = {
    "nmse": "nMSE",
    "difference": "difference to kernel ridge, paired by partition",
    "ni": "normalised improvement over kernel ridge (nI)",
}
REFERENCE = "KRR"
VARIANTS = ("", ", early", ", lambda 1")


class CellVerdict(NamedTuple):
    """The verdict on a number of the paper for a method of ours.

    Attributes
    ----------
    cell : Cell
    metric : str
        A key of `METRICS`.
    method : str
        Ours.
    paper : float
    deviation : float or None
        Published deviation over partitions, for the nMSE.
    verdict : Verdict
    """

    cell: Cell
    metric: str
    method: str
    paper: float
    deviation: float | None
    verdict: Verdict


def judge_cells(results: ExperimentResults, rng: np.random.Generator) -> list[CellVerdict]:
    """Verdicts on every number that the paper has for an experiment.

    A number is compared with every form of its method in the records: as published, stopped early,
    and with lambda 1. Differences and improvements are to the kernel ridge of the same partitions,
    with lambda 1 if the method has it. For a row that EKL and ptrEKL share, the verdict is on
    whichever cross-validation picks; each of the two is shown without a verdict.
    """
    verdicts = []
    cells = CELLS.get(results.name, [])
    for cell in cells:
        for method in (name + variant for name in cell.ours for variant in VARIANTS):
            for metric, ours, paper, unit in _numbers_to_judge(cell, method, cells, results):
                deviation = cell.deviation if metric == "nmse" else None
                count = cell.partitions
                verdict = judge(ours, paper, count, rng, deviation=deviation, unit=unit)
                if method.partition(",")[0] != cell.method:
                    verdict = verdict._replace(word=NOT_JUDGED)
                verdicts.append(CellVerdict(cell, metric, method, paper, deviation, verdict))
    return verdicts


def _numbers_to_judge(
    cell: Cell, method: str, cells: list[Cell], results: ExperimentResults
) -> Iterator[tuple[str, list[float], float, float]]:
    """Metrics of a cell, with our values, the paper's number and the unit of its last digit."""
    errors = values_by_split(results, method, cell.keys)
    if not errors:
        return
    unit = 10.0**-cell.digits
    yield "nmse", list(errors.values()), cell.nmse, unit
    if not method.startswith(REFERENCE):
        full = cell.keys | ({"rank": "100%"} if "rank" in cell.keys else {})
        reference = next(c.nmse for c in cells if c.method == REFERENCE and c.keys == full)
        suffix = ", lambda 1" if method.endswith(", lambda 1") else ""
        plain = values_by_split(results, REFERENCE + suffix, full)
        paired = [errors[split] - plain[split] for split in errors if split in plain]
        if paired:
            # The published difference is one of two rounded numbers.
            yield "difference", paired, cell.nmse - reference, 2.0 * unit
    improvements = values_by_split(results, method, cell.keys, "ni")
    if cell.ni is not None and improvements:
        yield "ni", list(improvements.values()), cell.ni, unit


def values_by_split(
    results: ExperimentResults, method: str, keys: dict[str, Any], metric: str = "nmse"
) -> dict[Any, float]:
    """Our value on each partition, from records of a method with these keys."""
    return {
        record["split"]: float(record[metric])
        for record in results.records
        if record["method"] == method
        and record.get(metric) is not None
        and all(record.get(key) == value for key, value in keys.items())
    }


HOLDS, FAILS, OPEN = "holds", "fails", "undecided"


@dataclass(frozen=True)
class Claim:
    """A difference between methods that the paper reports, in percent.

    Attributes
    ----------
    text : str
    experiment : str
    sign : {-1, 0, 1}
        Below, as good as, above.
    methods : tuple of str
        Our methods; each gets a verdict.
    other : str or None
        The method they are compared with; None if the claim is on the values themselves.
    keys : dict
        The setting.
    other_keys : dict
        What is different in the setting of ``other``.
    metric : str
    tolerance : float
        Percent within which methods are as good.
    paper : float or None
        The published difference in percent; by default that of the tables.
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
        """The paper's difference in percent, or None if it prints none."""
        if self.paper is not None or self.metric != "nmse":
            return self.paper
        means = {
            (name, *sorted(cell.keys.items())): cell.nmse
            for cell in CELLS.get(self.experiment, [])
            for name in cell.ours
        }
        method = self.methods[0].partition(",")[0]
        ours = means.get((method, *sorted(self.keys.items())))
        other = str(self.other).partition(",")[0]
        base = means.get((other, *sorted((self.keys | self.other_keys).items())))
        return None if ours is None or base is None else 100.0 * (ours - base) / base

    def values(self, results: ExperimentResults, method: str) -> Array:
        """Our difference in percent on each partition; without ``other`` the values themselves."""
        ours = values_by_split(results, method, self.keys, self.metric)
        if self.other is None:
            return np.fromiter(ours.values(), dtype=np.float64)
        other = values_by_split(results, self.other, self.keys | self.other_keys, self.metric)
        both = [split for split in ours if split in other]
        scale = np.mean([other[split] for split in both]) if both else 1.0
        return np.array([100.0 * (ours[split] - other[split]) / scale for split in both])


@dataclass(frozen=True)
class Finding:
    """An effect and a verdict for each method of a claim."""

    effects: dict[str, Effect]
    words: dict[str, str]

    @property
    def verdict(self) -> str:
        """One verdict if it is the same for all methods, else one for each."""
        if len(set(self.words.values())) == 1:
            return next(iter(self.words.values()))
        return ", ".join(f"{method} {word}" for method, word in self.words.items())


def judge_claim(claim: Claim, results: ExperimentResults | None) -> Finding | None:
    """Whether a claim holds, by the 95% interval of the mean difference; None without records.

    A claim of a sign holds if the interval has that sign, and fails if it has the other. That
    methods are as good holds if the interval is within the tolerance, and fails if it is outside.
    """
    if results is None:
        return None
    values = {method: claim.values(results, method) for method in claim.methods}
    effects = {method: Effect.of(sample) for method, sample in values.items() if len(sample)}
    words = {method: _word(claim, effect) for method, effect in effects.items()}
    return Finding(effects, words) if effects else None


def _word(claim: Claim, effect: Effect) -> str:
    if claim.sign:
        return {claim.sign: HOLDS, -claim.sign: FAILS, 0: OPEN}[effect.sign]
    if -claim.tolerance <= effect.low and effect.high <= claim.tolerance:
        return HOLDS
    return FAILS if effect.low > claim.tolerance or effect.high < -claim.tolerance else OPEN


def _read_claims() -> list[Claim]:
    text = files(__package__).joinpath("claims.json").read_text(encoding="utf-8")
    return [Claim(**claim | {"methods": tuple(claim["methods"])}) for claim in json.loads(text)]


CLAIMS = _read_claims()
