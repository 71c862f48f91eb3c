"""What the paper claims, as `claims.json` lists it, each claim with what our runs say of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from ..io import ExperimentResults
from ..linalg import Array
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


def _read() -> list[Claim]:
    text = files(__package__).joinpath("claims.json").read_text(encoding="utf-8")
    return [Claim(**claim | {"methods": tuple(claim["methods"])}) for claim in json.loads(text)]


CLAIMS = _read()
