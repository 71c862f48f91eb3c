"""A page about a model: what it is, which outputs share what, and pictures of its kernel and its search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...estimators import EntangledKernelRidge, EntangledKernelRidgeCV
from ...report import Report
from ...storage import SavedModel
from ...tables.phrases import counted
from ..held_out import error_in_words
from ..model_words import (
    change_in_words,
    error_columns,
    error_rows,
    measures_in_words,
    strongest_pairs,
    verdict_kind,
)
from ..series import network_frame
from ..shell_command import command_line

__all__ = ["write_model_page"]

LONGEST_TABLE = 30
# Less would be shown as 0.00.
LEAST_CORRELATION = 0.005


def write_model_page(saved: SavedModel, findings: dict[str, Any], path: Path) -> None:
    """Write the page."""
    name = Path(findings["model"]).name
    page = Report(f"The model {name}", lead=_lead(findings))
    page.section("What it is")
    page.facts(
        {
            "Class": findings["class"],
            "Settings": findings["settings"],
            "Inputs": findings["inputs"] or "without names",
            "Targets": findings["targets"],
            "Fitted to": f"{counted(findings['rows'], 'row')} of {findings['table']}"
            if findings["rows"]
            else "not recorded",
            "Software": findings["software"],
        }
    )
    if findings["target_scores"]:
        _add_errors(page, findings)
    page.section("Who shares what")
    page.points(findings["sharing"])
    if pairs := _related_pairs(findings):
        caption = "Correlation of the targets in the learned kernel, the strongest pairs first"
        page.table(["Target", "Target ", "Correlation"], pairs, caption=caption, digits=2, row_headers=2)
    if findings["weights"]:
        page.table(["Kernel", "Weight"], findings["weights"], caption="Weight of every kernel", digits=3)
    if findings["influence"] is not None:
        rows = network_frame(findings["influence"], findings["targets"]).to_numpy(dtype=object).tolist()
        caption = "Influence on the next step: of the column's variable on the row's"
        page.table(["On", *findings["targets"]], rows, caption=caption, digits=3)
    page.section("What tells what")
    if findings["information"]:
        page.text(
            "When a target of a new row has been measured, its error tells about the errors of the others. "
            "Uncertainty is variance that the inputs leave; shares were found on rows held out in fitting."
        )
    page.points(findings["telling"])
    if findings["information"] and len(findings["targets"]) > 1:
        _add_information(page, findings)
    page.section("Entanglement")
    page.verdict(findings["verdict"], verdict_kind(findings["entangled"]))
    if findings["entanglement"]:
        page.facts(measures_in_words(findings["entanglement"]))
    _add_figures(page, saved.model, tested=bool(findings["entanglement"]))
    page.section("How to repeat it")
    page.code(command_line("inspect", findings["model"], options={"--report": path}))
    if "command" in saved.info:
        page.text("The model was made by:")
        page.code(saved.info["command"])
    page.write(path)


def _related_pairs(findings: dict[str, Any]) -> list[tuple[str, str, float]]:
    """Pairs of targets with their correlation in the kernel, the strongest first, without those of 0.00."""
    if not findings["relations"] or len(findings["targets"]) == 1:
        return []
    pairs = strongest_pairs(np.array(findings["relations"]), findings["targets"])[:LONGEST_TABLE]
    return [pair for pair in pairs if abs(pair[2]) >= LEAST_CORRELATION]


def _lead(findings: dict[str, Any]) -> str:
    inputs = counted(len(findings["inputs"]), "input") if findings["inputs"] else "inputs without names"
    return f"Predicts {counted(len(findings['targets']), 'target')} from {inputs}."


def _add_errors(page: Report, findings: dict[str, Any]) -> None:
    page.section("How well it predicts")
    nmse, plain, about = findings["nmse"], findings["kernel_ridge_nmse"], findings.get("held_out")
    page.text(
        f"{error_in_words(about)} (nMSE: 0 is perfect, 1 is predicting the mean) {nmse:.4g}; "
        f"kernel ridge has {plain:.4g} ({change_in_words(nmse, plain)})."
    )
    caption = "Held-out errors of each target; RMSE in the unit of the target"
    errors = [row[name] for row in findings["target_scores"] for name in ("nmse", "kernel_ridge_nmse")]
    digits = _error_digits(min((error for error in errors if error), default=1.0))
    columns = error_columns(findings["target_scores"])
    page.table(columns, error_rows(findings["target_scores"]), caption=caption, digits=digits)


def _add_information(page: Report, findings: dict[str, Any]) -> None:
    from matplotlib import pyplot as plt

    from ...plotting import InformationDisplay

    display = InformationDisplay(findings["information"], findings["targets"]).plot()
    caption = "Share of the uncertainty of a column's target that measuring a row's target removes."
    alt = "Matrix of targets, groups that tell about each other side by side; the list above has the pairs"
    page.figure(display.figure_, caption=caption, alt=alt)
    plt.close(display.figure_)


def _error_digits(least: float) -> int:
    """Digits after the point that show three of the least number, and no fewer than three."""
    return int(np.clip(2 - np.floor(np.log10(least)), 3, 9))


def _add_figures(page: Report, model: Any, *, tested: bool) -> None:
    """Pictures that need no rows: the spectrum of the kernel, the path of its solver, the search."""
    from ...plotting import AlignmentPathDisplay, EntanglementSpectrumDisplay, SelectionDisplay

    inner = getattr(model, "best_estimator_", model)
    if tested:
        alt = "Eigenvalues of the partial transpose, and operator-Schmidt values, of the learned kernel"
        figure = EntanglementSpectrumDisplay.from_estimator(inner).figure_
        page.figure(figure, caption="How far the kernel is from separable.", alt=alt)
    if isinstance(inner, EntangledKernelRidge) and len(inner.alignment_history_) > 1:
        alt = "Alignment of the kernel with the targets after every step of the solver"
        figure = AlignmentPathDisplay.from_estimator(inner).figure_
        page.figure(figure, caption="How the kernel was learned.", alt=alt)
    if isinstance(model, EntangledKernelRidgeCV):
        page.section("How the settings were chosen")
        alt = "Cross-validated error of the candidates over alpha and shrinkage, with the chosen one marked"
        figure = SelectionDisplay.from_estimator(model).figure_
        page.figure(figure, caption="The search: lower is better.", alt=alt)
