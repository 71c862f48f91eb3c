"""The paper beside our runs as tables: claims, and every cell with its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..report.table import PageTable, Table, format_cell
from ..storage import ExperimentResults
from .results import SETTINGS
from .screen import Screen

__all__ = [
    "agreement_in_words",
    "cell_tables",
    "claims_of",
    "claims_table",
    "show_cells",
]

Runs = Mapping[str, Mapping[str, ExperimentResults]]
MINUS = "\N{MINUS SIGN}"
TITLES = {"over n": "", "over rank": ", over Kraus rank"}


def cell_tables(results: ExperimentResults) -> Iterator[PageTable]:
    """One table to a metric and a table of the paper: paper, ours, difference in its errors, verdict."""
    from ..experiments.agreement import METRICS, judge_cells

    found = judge_cells(results, np.random.default_rng(0))
    for table, where in TITLES.items():
        for metric, words in METRICS.items():
            own = [one for one in found if one.cell.table == table and one.metric == metric]
            if not own:
                continue
            keys = [key for key in SETTINGS if key in own[0].cell.keys]
            rows = [
                [
                    *(one.cell.keys[key] for key in keys),
                    one.method,
                    one.paper if one.deviation is None else (one.paper, one.deviation),
                    (one.verdict.ours, one.verdict.deviation),
                    one.verdict.in_errors,
                    one.verdict.percentile,
                    one.verdict.word,
                ]
                for one in own
            ]
            count = own[0].cell.partitions
            yield PageTable(
                [
                    *(SETTINGS[key] for key in keys),
                    "method",
                    "paper",
                    "ours",
                    "difference / error",
                    "percentile",
                    "verdict",
                ],
                rows,
                f"{results.title}{where}: {words}, the paper's and ours",
                f"Mean ± standard deviation over partitions, {count} in the paper. Paper less ours, in units "
                f"of its standard error; where the paper's mean lies among means of {count} of our "
                "partitions; it agrees within the central 95%.",
                dict.fromkeys(("paper", "ours"), own[0].cell.digits)
                | {"difference / error": 1, "percentile": 1},
                len(keys) + 1,
            )


def agreement_in_words(results: ExperimentResults) -> str:
    """How many of the paper's means agree, for every form of the methods; empty without figures."""
    from ..experiments.agreement import VARIANTS, judge_cells
    from ..experiments.verdicts import AGREES, BESIDE, TOO_FEW

    found = judge_cells(results, np.random.default_rng(0))
    judged = [one for one in found if one.metric == "nmse" and one.verdict.word != BESIDE]
    words = []
    plain = "of the fair protocol" if results.meta.get("protocol") == "fair" else "as published"
    names = (plain, "stopped early", "with lambda 1")
    for variant, name in zip(VARIANTS, names, strict=True):
        own = [one for one in judged if one.method.partition(",")[1:] == variant.partition(",")[1:]]
        if own and all(one.verdict.word == TOO_FEW for one in own):
            return "Too few partitions: nothing is said of whether the paper's figures agree with ours."
        if own:
            agreeing = sum(one.verdict.word == AGREES for one in own)
            words.append(f"{agreeing} of {len(own)} with methods {name}")
    return f"Means that agree with the paper's: {', '.join(words)}." if words else ""


def claims_table(runs: Runs, *, experiment: str | None = None) -> PageTable | None:
    """Claims of the summary, or all of one experiment, with what every protocol says; None without any."""
    from ..experiments.claims import CLAIMS, judge_claim

    rows = []
    for claim in CLAIMS:
        if claim.experiment != experiment and not (experiment is None and claim.summary):
            continue
        findings = {
            protocol: judge_claim(claim, done.get(claim.experiment)) for protocol, done in runs.items()
        }
        if not any(findings.values()):
            continue
        percent = claim.other is not None
        row = [claim.text, claim.published()]
        for protocol in runs:
            finding = findings[protocol]
            row += [None, None] if finding is None else [_effects(finding, percent), finding.verdict]
        rows.append(row)
    if not rows:
        return None
    names = [name for protocol in runs for name in (f"ours ({protocol})", f"verdict ({protocol} protocol)")]
    return PageTable(
        ["claim", "paper", *names],
        rows,
        "What the paper claims, and what our runs say",
        "Differences in percent of what the methods are compared with, ± the standard error of the mean over "
        "partitions. A claim holds or fails where the 95% interval of the mean says so.",
        {"paper": 1},
        1,
    )


def _effects(finding: Any, percent: bool) -> str:
    """Effects of all methods in a few words."""
    digits, unit = (1, "%") if percent else (3, "")
    words = {
        method: f"{effect.mean:+.{digits}f} ± {effect.error:.{digits}f}{unit}".replace("-", MINUS)
        for method, effect in finding.effects.items()
    }
    if len(words) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{method} {text}" for method, text in words.items())


def claims_of(runs: Runs) -> list[dict[str, Any]]:
    """For machines: every claim with effects and verdicts by protocol."""
    from ..experiments.claims import CLAIMS, judge_claim

    listed = []
    for claim in CLAIMS:
        findings = {
            protocol: judge_claim(claim, done.get(claim.experiment)) for protocol, done in runs.items()
        }
        own = {
            protocol: {
                "verdict": finding.verdict,
                "effects": {name: effect._asdict() for name, effect in finding.effects.items()},
            }
            for protocol, finding in findings.items()
            if finding is not None
        }
        if own:
            listed.append({"claim": claim.text, "published": claim.published(), "runs": own})
    return listed


def show_cells(screen: Screen, tables: Iterable[PageTable]) -> None:
    """Print tables of cells or claims."""
    for table in tables:
        digits = Table(table.columns, table.rows, table.digits).digits
        cells = [
            [
                format_cell(cell, own) if isinstance(cell, float | tuple) else cell
                for cell, own in zip(row, digits, strict=True)
            ]
            for row in table.rows
        ]
        screen.table(table.columns, cells, title=table.caption)
