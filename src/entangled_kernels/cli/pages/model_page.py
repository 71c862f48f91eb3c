"""A page about a model: what it is, which outputs share what, and pictures of its kernel and its search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...estimators import EntangledKernelRidge, EntangledKernelRidgeCV
from ...explanation import Explanation
from ...plotting import (
    AlignmentPathDisplay,
    EntanglementSpectrumDisplay,
    ExplanationDisplay,
    HeldOutDisplay,
    InformationDisplay,
    SelectionDisplay,
)
from ...report import Report
from ...storage import SavedModel
from ...tables.phrases import counted
from ..explanations import COLUMNS, explanation_in_words, explanation_of, input_rows
from ..held_out import error_in_words
from ..model_words import (
    change_in_words,
    error_columns,
    error_rows,
    listed,
    measures_in_words,
    strongest_pairs,
    verdict_kind,
)
from ..series import network_frame
from ..shell_command import command_line

__all__ = ["write_model_page"]

LONGEST_TABLE = 30
# Targets with a picture, and the share of rows that intervals hold.
MOST_PANELS, COVERAGE = 12, 0.9
# Less would be shown as 0.00.
LEAST_CORRELATION = 0.005


def write_model_page(saved: SavedModel, findings: dict[str, Any], path: Path) -> None:
    """Write the page."""
    page = Report(f"The model {Path(findings['model']).name}", lead=_lead(findings))
    if findings["target_scores"]:
        page.section("How well it predicts")
        _add_errors(page, saved.model, findings)
    explanation = explanation_of(findings.get("explanation"))
    if explanation is not None:
        _add_inputs(page, explanation)
    page.section("Who shares what")
    page.points(findings["sharing"])
    _add_correlations(page, findings)
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
    page.section("What it is")
    page.facts(
        {
            "Class": findings["class"],
            "Settings": findings["settings"],
            "Inputs": listed(findings["inputs"]),
            "Targets": listed(findings["targets"]),
            "Fitted to": f"{counted(findings['rows'], 'row')} of {findings['table']}"
            if findings["rows"]
            else "not recorded",
            "Software": findings["software"],
        }
    )
    _add_search(page, saved.model)
    with page.folded("For theorists: is the kernel entangled?"):
        page.verdict(findings["verdict"], verdict_kind(findings["entangled"]))
        if findings["entanglement"]:
            page.facts(measures_in_words(findings["entanglement"]))
        _add_figures(page, saved.model, entangled=bool(findings["entangled"] and findings["entanglement"]))
    page.glossary()
    page.section("How to repeat it")
    page.code(command_line("inspect", findings["model"], options={"--report": path}))
    if "command" in saved.info:
        page.text("The model was made by:")
        page.code(saved.info["command"])
    page.write(path)


def _lead(findings: dict[str, Any]) -> str:
    inputs = counted(len(findings["inputs"]), "input") if findings["inputs"] else "inputs without names"
    return f"Predicts {counted(len(findings['targets']), 'target')} from {inputs}."


def _verdict(findings: dict[str, Any]) -> str:
    """What the model is worth, in a sentence."""
    nmse, plain = findings["nmse"], findings["kernel_ridge_nmse"]
    words = (
        f"Explains {100.0 * (1.0 - nmse):.0f}% of the variance of held-out rows"
        if nmse < 1.0
        else ("No better than the mean on held-out rows")
    )
    known = [row for row in findings["target_scores"] if row["nmse"] is not None]
    if len(known) > 1:
        best, worst = (pick(known, key=lambda row: float(row["nmse"])) for pick in (min, max))
        words += f", from {_share(worst)} to {_share(best)}"
    if plain is None:
        return f"{words}."
    return f"{words}. Kernel ridge with the same choice of features: {change_in_words(plain, nmse)}."


def _share(row: dict[str, Any]) -> str:
    return f"{100.0 * (1.0 - row['nmse']):.0f}% ({row['target']})"


def _add_errors(page: Report, model: Any, findings: dict[str, Any]) -> None:
    """The verdict, errors of every target, and what was predicted over what was measured."""
    scores = findings["target_scores"]
    page.verdict(_verdict(findings))
    about = error_in_words(findings.get("held_out"))
    page.text(f"{about} (nMSE: 0 is perfect, 1 is predicting the mean) {findings['nmse']:.4g}.")
    errors = [row[name] for row in scores for name in ("nmse", "kernel_ridge_nmse")]
    digits = _error_digits(min((error for error in errors if error), default=1.0))
    columns, rows = error_columns(scores), error_rows(scores)
    if "RMSE" in columns:
        # Units differ by target, and so do digits after the point.
        place = columns.index("RMSE")
        rows = [[*row[:place], f"{row[place]:.3g}", *row[place + 1 :]] for row in rows]
    caption = "Held-out errors of each target; RMSE in the unit of the target"
    page.table(columns, rows, caption=caption, digits=digits)
    try:
        held_out = model.held_out_predictions(COVERAGE)
    except (AttributeError, ValueError):
        return
    shown = findings["targets"][:MOST_PANELS]
    pictures = [
        (HeldOutDisplay(held_out, place, name).plot().figure_, f"Predictions of {name} over measurements")
        for place, name in enumerate(shown)
    ]
    some = f"; the first {len(shown)} targets" if len(shown) < len(findings["targets"]) else ""
    page.figures(
        pictures,
        caption=f"Predicted, out of fold, over measured{some}. Bars are {COVERAGE:.0%} intervals; rows "
        "outside of theirs are crosses.",
    )


def _add_inputs(page: Report, explanation: Explanation) -> None:
    """Which inputs matter."""
    page.section("Which inputs matter")
    page.points(explanation_in_words(explanation))
    how = "gradients" if explanation.method == "gradient" else "permutations"
    page.table(
        [name.capitalize() for name in COLUMNS],
        input_rows(explanation),
        caption="The most important inputs: change of the predictions, in standard deviations of the "
        "targets, as the input grows by one of its own",
        digits=2,
        note=f"Found by {how}. Noise is exceeded by chance one time in twenty.",
    )
    page.figure(
        ExplanationDisplay(explanation).plot().figure_,
        caption="Importance of inputs, noise marked, and their effects on targets.",
        alt="Bars of the importance of inputs with that of noise, and a matrix of effects on targets",
    )


def _add_correlations(page: Report, findings: dict[str, Any]) -> None:
    """Correlations of the targets in the table beside those in the kernel, the strongest pairs first."""
    names = findings["targets"]
    keys = {"In the table": "target_correlations", "In the kernel": "relations"}
    shown = {title: np.array(findings[key]) for title, key in keys.items() if findings.get(key)}
    if not shown or len(names) < 2:
        return
    first = next(iter(shown.values()))
    pairs = [pair[:2] for pair in strongest_pairs(np.abs(np.stack(list(shown.values()))).max(axis=0), names)]
    rows = []
    for one, other in pairs[:LONGEST_TABLE]:
        values = [float(matrix[names.index(one), names.index(other)]) for matrix in shown.values()]
        if max(map(abs, values)) >= LEAST_CORRELATION:
            rows.append([one, other, *values])
    if rows and first.shape == (len(names), len(names)):
        caption = "Correlation of targets, the strongest pairs first"
        page.table(["Target", "Target ", *shown], rows, caption=caption, digits=2, row_headers=2)


def _add_information(page: Report, findings: dict[str, Any]) -> None:
    page.figure(
        InformationDisplay(findings["information"], findings["targets"]).plot().figure_,
        caption="Share of the uncertainty of a column's target that measuring a row's target removes.",
        alt="Matrix of targets, groups that tell about each other side by side; the list above has the pairs",
    )


def _error_digits(least: float) -> int:
    """Digits after the point that show three of the least number, and no fewer than three."""
    return int(np.clip(2 - np.floor(np.log10(least)), 3, 9))


def _add_figures(page: Report, model: Any, *, entangled: bool) -> None:
    """Pictures that need no rows: the spectrum of an entangled kernel, and the path of its solver."""
    inner = getattr(model, "best_estimator_", model)
    if entangled:
        page.figure(
            EntanglementSpectrumDisplay.from_estimator(inner).figure_,
            caption="How far the kernel is from separable.",
            alt="Eigenvalues of the partial transpose, and operator-Schmidt values, of the learned kernel",
        )
    if isinstance(inner, EntangledKernelRidge) and len(inner.alignment_history_) > 1:
        page.figure(
            AlignmentPathDisplay.from_estimator(inner).figure_,
            caption="How the kernel was learned.",
            alt="Alignment of the kernel with the targets after every step of the solver",
        )


def _add_search(page: Report, model: Any) -> None:
    """How the settings of a search were chosen."""
    if isinstance(model, EntangledKernelRidgeCV):
        page.section("How the settings were chosen")
        page.figure(
            SelectionDisplay.from_estimator(model).figure_,
            caption="The search: lower is better.",
            alt="Cross-validated error of the candidates over alpha and shrinkage, with the chosen one "
            "marked",
        )
