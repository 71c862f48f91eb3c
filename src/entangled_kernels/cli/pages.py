"""Pages that commands write: about a model, a comparison, the experiments of the paper, the demonstration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators import EntangledKernelRidge, EntangledKernelRidgeCV
from ..io import ExperimentResults, SavedModel, atomic_write
from ..io.tables import counted
from ..model import Explanation
from ..plotting import (
    AlignmentPathDisplay,
    ComparisonDisplay,
    EntanglementSpectrumDisplay,
    ExplanationDisplay,
    HeldOutDisplay,
    InformationDisplay,
    Report,
    SelectionDisplay,
)
from ..plotting.cells import PageTable
from .models import explanation_of
from .results import (
    DIGITS,
    METRICS,
    PAPER_DIGITS,
    SETTINGS,
    agreement_in_words,
    cell_tables,
    claims_table,
    far_off_splits,
    finding,
    method_table,
    metrics_of,
    pivot,
    sure_leads,
    winner_in_words,
)
from .tables import TrainingTable
from .words import (
    INPUT_COLUMNS,
    change_in_words,
    error_columns,
    error_in_words,
    error_rows,
    explanation_in_words,
    input_rows,
    listed,
    measures_in_words,
    strongest_pairs,
    verdict_kind,
)

__all__ = [
    "add_experiment",
    "add_results",
    "add_run",
    "measured_in_words",
    "write_comparison_page",
    "write_demo_page",
    "write_experiment_page",
    "write_model_page",
    "write_with_command",
]

LONGEST_TABLE = 30
# Targets with a picture, and the share of rows that intervals hold.
MOST_PANELS, COVERAGE = 12, 0.9
# Less would be shown as 0.00.
LEAST_CORRELATION = 0.005
PAIRS = 8
ABOUT = {
    "breast-cancer": "Images of cells from 569 tumours gave thirty measurements: of ten properties, such as "
    "radius and texture, the mean over the cells of an image, its standard error, and the worst of all "
    "cells. The ten worst values are predicted from the other twenty.",
    "wine": "178 wines from one region of Italy, thirteen constituents. Four kinds of phenols, the "
    "OD280/OD315 ratio and proline are predicted from the other seven: alcohol, malic acid, ash and its "
    "alkalinity, magnesium, colour intensity and hue.",
}
# By the last word of a figure's name.
CAPTIONS = {
    "zooms": "Three samples of every class: blocks within classes and between each two",
    "separable": "The matrix of inputs, the matrix of outputs, and their block Gram matrix",
    "blocks": "Block Gram matrices of a separable kernel and of one that is not",
    "classes": "Classes of kernels with one kernel in each, and what its tests find",
    "lambda": "Error over training rows with lambda 1",
    "kernel": "Block Gram matrix of the learned kernel, rows in order of class, three blocks enlarged",
    "projections": "Rows in the plane of each task: circles training, triangles test",
    "entanglement": "Eigenvalues of the partial transpose, of which a negative one proves entanglement, and "
    "operator-Schmidt values, of which a separable kernel has one",
    "nmse": "Error over training rows, means with intervals",
    "ni": "Normalised improvement over kernel ridge; above zero is better than kernel ridge",
    "times": "Seconds to choose the settings and fit, both axes logarithmic",
    "p": "Over the number of outputs",
    "n": "Over the number of training rows",
    "rank": "Over the Kraus rank",
}


def write_model_page(saved: SavedModel, findings: dict[str, Any], command: str, path: Path) -> None:
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
        _add_kernel_figures(
            page, saved.model, entangled=bool(findings["entangled"] and findings["entanglement"])
        )
    page.glossary()
    page.section("How to repeat it")
    page.code(command)
    if "command" in saved.info:
        page.text("The model was made by:")
        page.code(saved.info["command"])
    page.write(path)


def _lead(findings: dict[str, Any]) -> str:
    inputs = (
        counted(len(findings["inputs"]), "input") if findings["inputs"] else "inputs without names"
    )
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
    return (
        f"{words}. Kernel ridge with the same choice of features: {change_in_words(plain, nmse)}."
    )


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
        (
            HeldOutDisplay(held_out, place, name).plot().figure_,
            f"Predictions of {name} over measurements",
        )
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
        [name.capitalize() for name in INPUT_COLUMNS],
        input_rows(explanation),
        caption="The most important inputs: change of the predictions, in standard deviations of the "
        "targets, for one of the input",
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
    pairs = [
        pair[:2]
        for pair in strongest_pairs(np.abs(np.stack(list(shown.values()))).max(axis=0), names)
    ]
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


def _add_kernel_figures(page: Report, model: Any, *, entangled: bool) -> None:
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


def add_run(page: Report, results: ExperimentResults, **more: Any) -> None:
    """Add how the results were made, and what the methods are."""
    hidden = ("methods", "versions", "verdict")
    page.facts({name: value for name, value in results.meta.items() if name not in hidden} | more)
    page.points(f"{name}: {words}" for name, words in results.meta.get("methods", {}).items())


def write_with_command(page: Report, command: str, results: ExperimentResults, path: Path) -> Path:
    """End a page with its words and the command that makes it again, and write it; its path."""
    page.glossary()
    page.section("How to repeat it")
    page.code(command)
    page.facts(results.meta.get("versions", {}))
    return page.write(path)


def add_results(
    page: Report,
    results: ExperimentResults,
    figures: dict[str, Any],
    *,
    without: Iterable[str] = (),
) -> None:
    """Add tables of all metrics but some, with the paper's or the baseline's figures, and the figures."""
    for metric in metrics_of(results):
        if metric in without:
            continue
        columns, rows, paper = pivot(results, metric)
        settings = sum(column in SETTINGS.values() for column in columns)
        own = [column for column in columns[settings:] if not column.endswith("(paper)")]
        note = "Mean ± standard deviation over partitions."
        note += " Columns marked (paper) quote the published figures." if paper else ""
        page.table(
            columns,
            rows,
            caption=f"{results.title}: {METRICS[metric]}",
            digits=PAPER_DIGITS if paper else DIGITS,
            best={"nmse": "min"}.get(metric, None if metric.endswith("seconds") else "max"),
            best_among=own,
            sure=sure_leads(results, metric),
            row_headers=max(1, settings),
            note=note,
        )
    _add_figures(page, results, figures)


def _add_figures(page: Report, results: ExperimentResults, figures: dict[str, Any]) -> None:
    for name, figure in figures.items():
        kind = name.rpartition("-")[2]
        words = CAPTIONS.get(kind, name)
        if kind == "nmse" and results.paper:
            words += "; open marks are the paper's"
        page.figure(figure, caption=f"{words}.", alt=f"{results.title}: {words}")


def write_comparison_page(
    found: ExperimentResults,
    table: Path,
    data: TrainingTable,
    command: str,
    path: Path,
) -> None:
    """Write the page.

    Parameters
    ----------
    found : ExperimentResults
    table : path
    data : TrainingTable
    command : str
        What to type to get the same again.
    path : path
        Of the page.
    """
    from ..experiments.compare import time_figures

    lead = f"{counted(len(data.targets), 'target')} from {counted(len(data.inputs), 'input')}"
    page = Report(found.title, lead=f"{lead}, {counted(len(data.Y), 'row')}.")
    page.section("Results")
    if winner_in_words(found):
        page.verdict(winner_in_words(found))
    columns, rows, sure, digits = method_table(found)
    note = "Mean ± standard deviation over partitions; the method with the least error first."
    star = " ★ least error of its column, by more than chance would give." if sure else ""
    page.table(columns, rows, caption="Methods", digits=digits, note=f"{note}{star}", marked=sure)
    if far := far_off_splits(found):
        page.text("Partitions that are far off, and that may decide the means above:")
        page.points(far)
    _add_figures(page, found, time_figures(found))
    page.section("What was run")
    page.text(
        "Every method chose its settings by cross-validation on the same training rows of each partition."
    )
    add_run(page, found, table=table, targets=listed(data.targets), inputs=listed(data.inputs))
    write_with_command(page, command, found, path)


def write_experiment_page(
    runs: dict[str, dict[str, ExperimentResults]], missing: dict[str, str], command: str, out: Path
) -> None:
    """The page of all experiments that were run: claims first, then one experiment after the other.

    Parameters
    ----------
    runs : dict
        Results by protocol and experiment.
    missing : dict of str
        Why experiments were left out.
    command : str
    out : path
        Folder of the page; figures are written into it too, by protocol where there are several.
    """
    from ..experiments import EXPERIMENTS, PROTOCOLS

    names = [name for name in EXPERIMENTS if any(name in done for done in runs.values())]
    single = (
        EXPERIMENTS[names[0]].title if len(names) == 1 else "The paper's experiments, run again"
    )
    lead = " ".join(f"Protocol {protocol}: {PROTOCOLS[protocol]}." for protocol in runs)
    page = Report(single, lead=lead)
    claims = claims_table(runs)
    if claims is not None:
        page.section("Claims")
        _add_table(page, claims)
    for name in names:
        for protocol, done in runs.items():
            if name not in done:
                continue
            heading = "Results" if len(names) == 1 else done[name].title
            folder = out if len(runs) == 1 else out / protocol
            add_experiment(
                page,
                heading if len(runs) == 1 else f"{heading}, protocol {protocol}",
                name,
                done[name],
                folder,
            )
    if missing:
        page.section("Left out")
        page.points(f"{name}: {reason}" for name, reason in missing.items())
    last = next(results for done in runs.values() for results in done.values())
    write_with_command(page, command, last, out / "index.html")


def add_experiment(
    page: Report, heading: str, name: str, results: ExperimentResults, out: Path
) -> None:
    """A section on one experiment; its figures are written into the folder as well."""
    from ..experiments import EXPERIMENTS

    experiment = EXPERIMENTS[name]
    page.section(heading)
    page.text(experiment.about)
    add_run(page, results)
    claims = claims_table({str(results.meta.get("protocol", "")): {name: results}}, experiment=name)
    if claims is not None:
        _add_table(page, claims._replace(caption=f"{results.title}: claims"))
    cells = list(cell_tables(results))
    for table in cells:
        _add_table(page, table)
    agreement = agreement_in_words(results)
    if agreement:
        page.verdict(agreement)
    tables = experiment.tables(results)
    for made in tables:
        _add_table(page, made)
    figures = experiment.figures(results)
    # Errors of the paper's tables are in the tables of cells already.
    without = {metric for made in tables for metric in made.replaces} | (
        {"nmse", "ni"} if cells else set()
    )
    add_results(page, results, figures, without=without)
    for stem, figure in figures.items():
        with atomic_write(out / f"{stem}.svg", "wb") as file:
            figure.savefig(file, format="svg", bbox_inches="tight")
    if "verdict" in results.meta:
        page.verdict(str(results.meta["verdict"]), verdict_kind(results.meta.get("entangled")))
    elif finding(results):
        page.verdict(finding(results))


def _add_table(page: Report, table: PageTable) -> None:
    page.table(
        table.columns,
        table.rows,
        caption=table.caption,
        digits=table.digits,
        row_headers=table.row_headers,
        note=table.note,
    )


def write_demo_page(found: list[ExperimentResults], command: str, out: Path) -> Path:
    """The page, from results of `compare_partly_measured`."""
    page = Report(
        "Measure some, predict the rest",
        lead="Several numbers are wanted of every sample. Some are measured, and the others predicted: from "
        "the inputs, and from the measured ones.",
    )
    meta = found[0].meta
    draws = meta["repeats"]
    page.section("What was done")
    page.text(
        f"From two tables that come with scikit-learn {meta['train_rows']} training rows were drawn, {draws} "
        f"times. All errors are those of the other rows: means ± standard deviations over the {draws} draws. "
        "Error is nMSE: 0 is perfect, 1 is predicting the mean.\n\n"
        "Then one, two and three targets of the new rows are measured, and the error is that of the targets "
        "that are not. Every target is measured as often as any other, so that errors with more and with "
        "fewer measured ones are of the same targets."
    )
    page.points(f"{name}: {words}." for name, words in meta["methods"].items())
    for results in found:
        _add_demo_table(page, results)
    return write_with_command(page, command, found[0], out / "index.html")


def measured_in_words(results: ExperimentResults) -> list[str]:
    """What a run has shown, whoever did best."""
    ours = {row["known"]: row["mean"] for row in _summary(results, "nmse", ours=True)}
    others = _summary(results, "nmse", ours=False)
    last, p = max(ours), len(results.meta["targets"])
    errors = ", ".join(f"{error:.3f}" for error in ours.values())
    sentences = [
        f"Error with 0 to {last} of {p} targets measured: {errors}. Measuring {last} takes "
        f"{1.0 - ours[last] / ours[0]:.0%} off the error of the rest."
    ]
    for known in (0, last):
        best = min((row for row in others if row["known"] == known), key=lambda row: row["mean"])
        other = f"the best of the other methods, {best['method']} ({best['mean']:.3f})"
        sentences.append(
            f"With {known} measured: {change_in_words(ours[known], best['mean'], other)}."
        )
    inside = [row["mean"] for row in _summary(results, "coverage", ours=True)]
    jointly = [row["mean"] for row in _summary(results, "joint_coverage", ours=True)]
    sentences.append(
        f"Of the {results.meta['coverage']:.0%} intervals {_range(inside)} hold the true value; joint ones "
        f"hold all targets of a row at once in {_range(jointly)} of rows."
    )
    return sentences


def _add_demo_table(page: Report, results: ExperimentResults) -> None:
    """The sections of one table."""
    title, meta = results.title.partition(":")[0], results.meta
    draws, over = meta["repeats"], "Mean ± standard deviation over draws."
    page.section(results.title)
    page.text(ABOUT.get(results.name, ""))
    page.figure(
        ComparisonDisplay.from_results(results, x="known").figure_,
        caption="Error of the targets that are not measured, on unseen rows.",
        alt=f"{results.title}: error over the number of measured targets, a curve for each method",
    )
    columns, rows, _ = pivot(results, "nmse")
    page.table(
        columns, rows, caption=f"{title}: nMSE of the targets that are not measured", best="min"
    )
    sentences = measured_in_words(results)
    page.verdict(" ".join(sentences[:-1]))
    page.text(sentences[-1])
    names = ["inside intervals", "rows inside joint intervals", "width (deviations of the target)"]
    page.table(
        ["targets measured", *names],
        _by_known(results, ["coverage", "joint_coverage", "width"]),
        caption=f"{title}: {meta['coverage']:.0%} intervals of the targets that are not measured",
        note=over,
    )
    work: dict[str, tuple[int, float]] = {}
    for record in results.records:
        fits, seconds = work.get(record["method"], (0, 0.0))
        work[record["method"]] = (fits + record["fits"], seconds + record["fit_seconds"])
    page.table(
        ["Method", "fits for one draw", "seconds for one draw"],
        [[method, fits // draws, seconds / draws] for method, (fits, seconds) in work.items()],
        caption=f"{title}: work for all sets of measured targets",
        digits={"fits for one draw": 0, "seconds for one draw": 2},
        note="Processor time. One fit of EntangledKernelRidgeCV serves all sets.",
    )
    page.section(f"{title}: what tells what")
    page.text(
        "Beyond what the inputs say, how much of the uncertainty of a target does measuring another remove? "
        f"The model estimates it from held-out errors of its {meta['train_rows']} training rows. The table "
        "compares the estimate with the reduction on unseen rows."
    )
    page.figure(
        InformationDisplay(results.array("information"), meta["targets"]).plot().figure_,
        caption=f"{title}: what tells what, mean of {counted(draws, 'model')}.",
        alt="Matrix of targets, groups that tell about each other side by side; the table below has the "
        "pairs",
    )
    page.table(
        ["Measuring", "removes of", "the model says, %", "unseen rows, %"],
        _strongest_pairs(results),
        caption=f"{title}: share of the uncertainty removed, the {PAIRS} strongest pairs by the model",
        digits=0,
        row_headers=2,
        note="With few rows the model shrinks its estimates towards zero.",
    )
    page.text(
        "The model also says what to measure first (suggest_measurements, or the command plan). Here the "
        "error is that of all targets, where a measured one has none."
    )
    page.table(
        ["targets measured", "any of them", "those the model suggests"],
        _by_known(results, ["left", "left_suggested"]),
        caption=f"{title}: nMSE left in all targets",
        best="min",
        note=over,
    )


def _by_known(results: ExperimentResults, metrics: list[str]) -> list[list[Any]]:
    """A row for each number of measured targets: mean and spread of some metrics."""
    columns = [_summary(results, metric, ours=True) for metric in metrics]
    return [
        [rows[0]["known"], *((row["mean"], row["std"]) for row in rows)]
        for rows in zip(*columns, strict=True)
    ]


def _strongest_pairs(results: ExperimentResults) -> list[list[Any]]:
    """Pairs of targets with percent removed, by the model and on unseen rows, each pair one way."""
    information, removed = results.array("information"), results.array("removed")
    names = results.meta["targets"]
    rows, columns = np.triu_indices(len(names), 1)
    order = np.argsort(-information[rows, columns], kind="stable")[:PAIRS]
    return [
        [names[a], names[b], 100.0 * information[a, b], 100.0 * removed[a, b]]
        for a, b in zip(rows[order], columns[order], strict=True)
    ]


def _summary(results: ExperimentResults, metric: str, *, ours: bool) -> list[dict[str, Any]]:
    from ..experiments.partly_measured import OURS

    return [
        row
        for row in results.summary(metric, ("known", "method"))
        if (row["method"] == OURS) == ours
    ]


def _range(shares: list[float]) -> str:
    """One share, or from which to which several go, in percent."""
    least, largest = f"{min(shares):.0%}", f"{max(shares):.0%}"
    return least if least == largest else f"{least} to {largest}"
