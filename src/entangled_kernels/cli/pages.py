"""HTML pages: a model, a comparison, experiments of the paper, the demonstration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators import EntangledKernelRidge, EntangledKernelRidgeCV
from ..io import ExperimentResults, SavedModel, atomic_write
from ..io.tables import counted
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
    Runs,
    agreement_in_words,
    cell_tables,
    claims_table,
    far_off_splits,
    finding,
    measured_in_words,
    method_table,
    metric_table,
    metrics_of,
    pivot,
    summary_of_ours,
    sure_leads,
    winner_in_words,
)
from .tables import TrainingTable
from .words import (
    baselines_in_words,
    change_in_words,
    error_in_words,
    error_table,
    explanation_in_words,
    input_table,
    listed,
    measures_in_words,
)

__all__ = [
    "add_results",
    "write_comparison_page",
    "write_demo_page",
    "write_experiment_page",
    "write_model_page",
]

# The largest number of targets with a figure, and the share of rows that intervals contain.
MOST_PANELS, COVERAGE = 12, 0.9
# Pairs of targets in the table of a demonstration.
PAIRS = 8
# Signs of a verdict.
SIGNS = {True: "entangled", False: "separable", None: "plain"}
ABOUT = {
    "breast-cancer": "Images of cells from 569 tumours gave thirty measurements: of ten "
    "properties, such as radius and texture, the mean over the cells of an image, its standard "
    "error, and the worst of all cells. The ten worst values are predicted from the other twenty.",
    "wine": "178 wines from one region of Italy, thirteen constituents. Four kinds of phenols, the "
    "OD280/OD315 ratio and proline are predicted from the other seven: alcohol, malic acid, ash "
    "and its alkalinity, magnesium, colour intensity and hue.",
}
# Captions by the last word of a figure's name.
CAPTIONS = {
    "zooms": "Three samples of every class: blocks within classes and between each two",
    "separable": "The matrix of inputs, the matrix of outputs, and their block Gram matrix",
    "blocks": "Block Gram matrices of a separable kernel and of one that is not",
    "classes": "Classes of kernels with one kernel in each, and what its tests find",
    "lambda": "Error over training rows with lambda 1",
    "kernel": "Block Gram matrix of the learned kernel, rows by class, three blocks enlarged",
    "projections": "Rows in the plane of each task: circles training, triangles test",
    "entanglement": "Eigenvalues of the partial transpose, of which a negative one proves "
    "entanglement, and operator-Schmidt values, of which a separable kernel has one",
    "nmse": "Error over training rows, means with intervals",
    "ni": "Normalised improvement over kernel ridge; above zero is better than kernel ridge",
    "times": "Seconds to choose the settings and fit, both axes logarithmic",
    "p": "Over the number of outputs",
    "n": "Over the number of training rows",
    "rank": "Over the Kraus rank",
}


def _add_table(page: Report, table: PageTable, **more: Any) -> None:
    settings = {name: value for name, value in table._asdict().items() if name != "replaces"}
    page.table(**(settings | more))


def _end(page: Report, command: str, versions: dict[str, Any]) -> None:
    """Add the glossary, and the command that makes the page again."""
    page.glossary()
    page.section("How to repeat it")
    page.code(command)
    page.facts(versions)


# A model.


def write_model_page(saved: SavedModel, findings: dict[str, Any], command: str, path: Path) -> None:
    """Write what `inspect` found, with figures."""
    inputs, targets, model = findings["inputs"], findings["targets"], saved.model
    known = counted(len(inputs), "input") if inputs else "inputs without names"
    lead = f"Predicts {counted(len(targets), 'target')} from {known}."
    page = Report(f"The model {Path(findings['model']).name}", lead=lead)
    if findings["target_scores"]:
        page.section("How well it predicts")
        _add_errors(page, model, findings)
    _add_inputs(page, findings)
    page.section("What targets tell about each other")
    if findings["information"]:
        page.text(
            "Once a target of a new row is measured, its error tells about the errors of the others. "
            "Uncertainty is the variance that is left when the inputs are known, estimated from "
            "held-out rows."
        )
    page.points(findings["telling"])
    if findings["information"] and len(targets) > 1:
        page.figure(
            InformationDisplay(findings["information"], targets).plot().figure_,
            caption="Share of the uncertainty of the column's target that measuring the row's "
            "target removes.",
            alt="Matrix of targets, related ones side by side; the list above has the pairs",
        )
    page.section("What it is")
    rows = findings["rows"]
    page.facts(
        {
            "Class": findings["class"],
            "Settings": findings["settings"],
            "Inputs": listed(inputs),
            "Targets": listed(targets),
            "Fitted to": f"{counted(rows, 'row')} of {findings['table']}"
            if rows
            else "not recorded",
            "Software": findings["software"],
        }
    )
    if isinstance(model, EntangledKernelRidgeCV):
        page.section("How the settings were chosen")
        page.figure(
            SelectionDisplay.from_estimator(model).figure_,
            caption="Cross-validated error of the candidates: lower is better.",
            alt="Cross-validated error of the candidates over alpha and shrinkage, with the chosen "
            "one marked",
        )
    with page.folded("For theorists: is the kernel entangled?"):
        _add_theory(page, model, findings)
    _end(page, command, {})
    if "command" in saved.info:
        page.text("The model was made by:")
        page.code(saved.info["command"])
    page.write(path)


def _verdict(findings: dict[str, Any]) -> str:
    """A sentence on how well the model predicts."""
    nmse, plain = findings["nmse"], findings["kernel_ridge_nmse"]
    words = "No better than the mean on held-out rows"
    if nmse < 1.0:
        words = f"Explains {100.0 * (1.0 - nmse):.0f}% of the variance of held-out rows"
    scores = {row["target"]: row["nmse"] for row in findings["target_scores"]}
    known = {target: error for target, error in scores.items() if error is not None}
    if len(known) > 1:
        worst, best = (
            f"{100.0 * (1.0 - known[name]):.0f}% ({name})"
            for name in (max(known, key=known.__getitem__), min(known, key=known.__getitem__))
        )
        words += f", from {worst} to {best}"
    if plain is None:
        return f"{words}."
    return f"{words}. Kernel ridge on the same features: {change_in_words(plain, nmse)}."


def _add_errors(page: Report, model: Any, findings: dict[str, Any]) -> None:
    """The verdict, errors of every target, and held-out predictions over measurements."""
    page.verdict(_verdict(findings))
    about = error_in_words(findings.get("held_out"))
    error = findings["nmse"]
    page.text(f"{about} (nMSE: 0 is perfect, 1 is predicting the mean) {error:.4g}.")
    baselines = findings.get("baselines", {})
    page.text(baselines_in_words(error, findings["kernel_ridge_nmse"], baselines))
    table = error_table(findings["target_scores"])
    errors = [cell for row in table.rows for cell in (row[1], row[-2]) if cell]
    # Three significant digits of the smallest error, and at least three after the point.
    digits = int(np.clip(2 - np.floor(np.log10(min(errors, default=1.0))), 3, 9))
    # Targets have different units, so each RMSE has digits of its own after the point.
    rows = [list(row) for row in table.rows]
    place = table.columns.index("RMSE")
    for row in rows:
        row[place] = None if row[place] is None else f"{row[place]:.3g}"
    _add_table(page, table, rows=rows, digits=digits)
    try:
        held_out = model.held_out_predictions(COVERAGE)
    except (AttributeError, ValueError):
        return
    targets = findings["targets"]
    pictures = [
        (
            HeldOutDisplay(held_out, place, name).plot().figure_,
            f"Predictions of {name} over measurements",
        )
        for place, name in enumerate(targets[:MOST_PANELS])
    ]
    some = f"; the first {MOST_PANELS} targets" if len(targets) > MOST_PANELS else ""
    page.figures(
        pictures,
        caption=f"Predicted, out of fold, over measured{some}. Bars are {COVERAGE:.0%} intervals; "
        "crosses are rows outside of their interval.",
    )


def _add_inputs(page: Report, findings: dict[str, Any]) -> None:
    """Which inputs matter, if the model file has an explanation."""
    explanation = explanation_of(findings.get("explanation"))
    if explanation is None:
        return
    page.section("Which inputs matter")
    page.points(explanation_in_words(explanation))
    table = input_table(explanation)
    how = "gradients" if explanation.method == "gradient" else "permutations"
    note = f"Found by {how}."
    if np.isfinite(explanation.importance_noise).any():
        note += " An input without any effect exceeds the importance by chance one time in twenty."
    columns = [name.capitalize() for name in table.columns]
    caption = f"The most important inputs: {table.caption[0].lower()}{table.caption[1:]}"
    _add_table(page, table, columns=columns, caption=caption, digits=2, note=note)
    page.figure(
        ExplanationDisplay(explanation).plot().figure_,
        caption="Importance of inputs and by chance, and the effects of inputs on targets.",
        alt="Bars of the importance of inputs and by chance, and a matrix of effects on targets",
    )


def _add_theory(page: Report, model: Any, findings: dict[str, Any]) -> None:
    """Whether the kernel is entangled, and figures that need no rows."""
    measures, inner = findings["entanglement"], getattr(model, "best_estimator_", model)
    page.verdict(findings["verdict"], SIGNS[findings["entangled"]])
    if measures:
        page.facts(measures_in_words(measures))
    if findings["entangled"] and measures:
        page.figure(
            EntanglementSpectrumDisplay.from_estimator(inner).figure_,
            caption="How far the kernel is from a separable one.",
            alt="Eigenvalues of the partial transpose, and operator-Schmidt values, of the learned "
            "kernel",
        )
    if isinstance(inner, EntangledKernelRidge) and len(inner.alignment_history_) > 1:
        page.figure(
            AlignmentPathDisplay.from_estimator(inner).figure_,
            caption="How the kernel was learned.",
            alt="Alignment of the kernel with the targets after every step of the solver",
        )


# Comparisons and experiments.


def _add_methods(page: Report, results: ExperimentResults) -> None:
    """Add what the methods are."""
    page.points(f"{name}: {words}" for name, words in results.meta.get("methods", {}).items())


def _add_figures(page: Report, results: ExperimentResults, figures: dict[str, Any]) -> None:
    for name, figure in figures.items():
        kind = name.rpartition("-")[2]
        words = CAPTIONS.get(kind, name)
        if kind == "nmse" and results.paper:
            words += "; open marks are the paper's"
        page.figure(figure, caption=f"{words}.", alt=f"{results.title}: {words}")


def add_results(
    page: Report,
    results: ExperimentResults,
    figures: dict[str, Any],
    *,
    without: Iterable[str] = (),
) -> None:
    """Add a table of each metric, but those left out, and the figures."""
    left_out = set(without)
    for metric in metrics_of(results):
        if metric not in left_out:
            table = metric_table(results, metric)
            others = [name for name in table.columns[table.row_headers :] if "(paper)" not in name]
            best = "min" if metric == "nmse" else None if metric.endswith("seconds") else "max"
            leads = sure_leads(results, metric)
            _add_table(page, table, best=best, best_among=others, sure=leads)
    _add_figures(page, results, figures)


def write_comparison_page(
    results: ExperimentResults, table: Path, data: TrainingTable, command: str, path: Path
) -> None:
    """Write the results of `compare` on a table, and the command that repeats it."""
    from ..experiments.compare import time_figures

    lead = f"{counted(len(data.targets), 'target')} from {counted(len(data.inputs), 'input')}"
    page = Report(results.title, lead=f"{lead}, {counted(len(data.Y), 'row')}.")
    page.section("Results")
    if winner_in_words(results):
        page.verdict(winner_in_words(results))
    methods, leads = method_table(results)
    _add_table(page, methods, marked=leads)
    if far := far_off_splits(results):
        page.text("Partitions with an error far from the others, which may decide the means above:")
        page.points(far)
    _add_figures(page, results, time_figures(results))
    page.section("What was run")
    page.text(
        "Every method chose its settings by cross-validation on the same training rows of each "
        "partition."
    )
    names = {"targets": listed(data.targets), "inputs": listed(data.inputs)}
    kept = ("rows", "train_sizes", "repeats", "held_out", "seed")
    meta = {name: value for name, value in results.meta.items() if name in kept}
    page.facts({"table": table, **names, **meta})
    _add_methods(page, results)
    _end(page, command, results.meta.get("versions", {}))
    page.write(path)


def write_experiment_page(runs: Runs, missing: dict[str, str], command: str, out: Path) -> None:
    """Write all experiments that were run: claims first, then every experiment.

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
    one, single = len(names) == 1, len(runs) == 1
    title = EXPERIMENTS[names[0]].title if one else "The paper's experiments, run again"
    lead = " ".join(f"Protocol {protocol}: {PROTOCOLS[protocol]}." for protocol in runs)
    page = Report(title, lead=lead)
    # A page of several experiments begins with the claims of the paper's summary.
    claims = claims_table(runs, experiment=names[0] if one else None)
    if claims is not None:
        page.section("Claims")
        _add_table(page, claims)
    for name in names:
        for protocol, done in runs.items():
            if name in done:
                results, folder = done[name], out if single else out / protocol
                heading = "Results" if one else results.title
                page.section(heading if single else f"{heading}, protocol {protocol}")
                _add_experiment(page, name, results, folder, with_claims=not one)
    if missing:
        page.section("Left out")
        page.points(f"{name}: {reason}" for name, reason in missing.items())
    last = next(results for done in runs.values() for results in done.values())
    _end(page, command, last.meta.get("versions", {}))
    page.write(out / "index.html")


def _add_experiment(
    page: Report, name: str, results: ExperimentResults, out: Path, *, with_claims: bool
) -> None:
    """Add an experiment, and write its figures into the folder as well."""
    from ..experiments import EXPERIMENTS

    experiment, meta = EXPERIMENTS[name], results.meta
    page.text(experiment.about)
    hidden = ("methods", "versions", "verdict")
    page.facts({name: value for name, value in meta.items() if name not in hidden})
    _add_methods(page, results)
    runs = {str(meta.get("protocol", "")): {name: results}}
    if with_claims and (claims := claims_table(runs, experiment=name)) is not None:
        _add_table(page, claims, caption=f"{results.title}: claims")
    cells = list(cell_tables(results))
    for table in cells:
        _add_table(page, table)
    if agreement := agreement_in_words(results):
        page.verdict(agreement)
    tables = experiment.tables(results)
    for table in tables:
        _add_table(page, table)
    figures = experiment.figures(results)
    # The tables of cells have these errors already.
    without = [metric for table in tables for metric in table.replaces] + ["nmse", "ni"] * bool(
        cells
    )
    add_results(page, results, figures, without=without)
    for stem, figure in figures.items():
        with atomic_write(out / f"{stem}.svg", "wb") as file:
            figure.savefig(file, format="svg", bbox_inches="tight")
    if "verdict" in meta:
        page.verdict(str(meta["verdict"]), SIGNS[meta.get("entangled")])
    elif words := finding(results):
        page.verdict(words)


# The demonstration.


def write_demo_page(runs: list[ExperimentResults], command: str, out: Path) -> Path:
    """Write results of `compare_partly_measured` and return the path of the page."""
    page = Report(
        "Measure some, predict the rest",
        lead="Several numbers of every sample are wanted. Some are measured. The others are "
        "predicted from the inputs and from the measured ones.",
    )
    meta = runs[0].meta
    draws = meta["repeats"]
    page.section("What was done")
    page.text(
        f"{meta['train_rows']} training rows were drawn from each of two tables of scikit-learn, "
        f"{draws} times. Errors are those of all other rows, mean ± standard deviation over the "
        f"{draws} draws. Error is nMSE: 0 is perfect, 1 is predicting the mean.\n\n"
        "Then one, two and three targets of these rows are measured, and the error is that of the "
        "targets that are not measured. Each target is measured equally often, so that errors with "
        "more and with fewer measured targets can be compared."
    )
    page.points(f"{name}: {words}." for name, words in meta["methods"].items())
    for results in runs:
        _add_demo_table(page, results)
    _end(page, command, meta.get("versions", {}))
    return page.write(out / "index.html")


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
    caption = f"{title}: nMSE of the targets that are not measured"
    page.table(columns, rows, caption=caption, best="min")
    *sentences, last = measured_in_words(results)
    page.verdict(" ".join(sentences))
    page.text(last)
    names = ["inside intervals", "rows inside joint intervals", "width (deviations of the target)"]
    page.table(
        ["targets measured", *names],
        _by_known(results, ["coverage", "joint_coverage", "width"]),
        caption=f"{title}: {meta['coverage']:.0%} intervals of the targets that are not measured",
        note=over,
    )
    work: dict[str, Any] = {}
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
    page.section(f"{title}: what targets tell about each other")
    page.text(
        "How much of the uncertainty that the inputs leave in a target is removed by measuring "
        f"another target? The model estimates it from held-out errors of its {meta['train_rows']} "
        "training rows. The table compares the estimate with the reduction on unseen rows."
    )
    information, removed = results.array("information"), results.array("removed")
    page.figure(
        InformationDisplay(information, meta["targets"]).plot().figure_,
        caption=f"{title}: share of the uncertainty removed, mean of {counted(draws, 'model')}.",
        alt="Matrix of targets, related ones side by side; the table below has the pairs",
    )
    names = meta["targets"]
    pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
    pairs.sort(key=lambda pair: -information[pair])
    page.table(
        ["Measuring", "removes of", "the model says, %", "unseen rows, %"],
        [
            [names[a], names[b], 100.0 * information[a, b], 100.0 * removed[a, b]]
            for a, b in pairs[:PAIRS]
        ],
        caption=f"{title}: share of the uncertainty removed, {PAIRS} strongest pairs by the model",
        digits=0,
        row_headers=2,
        note="With few rows the model shrinks its estimates towards zero.",
    )
    page.text(
        "The model also suggests what to measure first (suggest_measurements, or the command "
        "plan). Here the error is that of all targets; it is zero for measured ones."
    )
    page.table(
        ["targets measured", "at random", "as the model suggests"],
        _by_known(results, ["left", "left_suggested"]),
        caption=f"{title}: nMSE left in all targets",
        best="min",
        note=over,
    )


def _by_known(results: ExperimentResults, metrics: list[str]) -> list[list[Any]]:
    """A row for each number of measured targets: mean and deviation of some metrics."""
    columns = [summary_of_ours(results, metric) for metric in metrics]
    return [
        [rows[0]["known"], *((row["mean"], row["std"]) for row in rows)]
        for rows in zip(*columns, strict=True)
    ]
