"""``inspect``: what a model file holds, how well it predicts, and which targets share what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...io.tables import counted
from ..files import check_input, check_output
from ..options import Force, Json, Model, Options
from ..process import import_learning
from ..screen import Screen

if TYPE_CHECKING:
    from ...io import SavedModel

__all__ = ["InspectOptions", "inspect"]

SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class InspectOptions(Options):
    """Options of ``inspect``."""

    model: Model
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="PAGE.html", help="Also write a page with figures."),
    ] = None
    theory: Annotated[
        bool,
        typer.Option(
            "--theory", help="Also tell whether the kernel is proven entangled, and by how much."
        ),
    ] = False
    force: Force = False
    json: Json = False


def inspect(options: InspectOptions) -> None:
    """Tell what a model is and what it found.

    Its settings, its held-out errors, which inputs matter, which targets share what, and which tell
    what about each other once they are measured.
    """
    screen, model, report = Screen(as_json=options.json), options.model, options.report
    check_input(model)
    if report is not None:
        check_output(report, force=options.force, inputs=[model])
    import_learning()
    from ..models import open_saved_model

    saved = open_saved_model(model)
    with screen.working("looking at the kernel"):
        findings = find_out(saved, model)
    show(screen, findings, theory=options.theory)
    if report is not None:
        from ..pages import write_model_page

        write_model_page(saved, findings, options.command(), report)
        screen.say(f"Wrote {report}.")
    screen.result({**findings, "report": report})


def find_out(saved: SavedModel, path: Path) -> dict[str, Any]:
    """Everything there is to tell, as plain values."""
    from ..models import entanglement_of, information_of, learner_of, relations_of, targets_of
    from ..words import information_in_words, sharing_in_words

    names, learner = targets_of(saved), learner_of(saved.model)
    correlations, information = relations_of(saved, learner), information_of(saved.model)
    return {
        "model": str(path),
        "class": type(saved.model).__name__,
        "software": saved.software,
        "inputs": [str(name) for name in getattr(saved.model, "feature_names_in_", [])],
        "targets": names,
        "rows": saved.info.get("rows"),
        "table": saved.info.get("table"),
        "settings": _settings_in_words(saved, learner, names),
        "nmse": saved.info.get("nmse"),
        "held_out": saved.info.get("held_out"),
        "kernel_ridge_nmse": saved.info.get("kernel_ridge_nmse"),
        "target_scores": saved.info.get("target_scores", []),
        "sharing": sharing_in_words(learner.get_params(deep=False), correlations, names),
        "relations": [] if correlations is None else correlations.tolist(),
        "target_correlations": saved.info.get("target_correlations", []),
        "explanation": saved.info.get("explanation"),
        "telling": information_in_words(information, names),
        "information": [] if information is None else information.round(6).tolist(),
        **entanglement_of(learner),
    }


def _settings_in_words(saved: SavedModel, learner: Any, names: list[str]) -> str:
    """What was chosen or set."""
    from ...estimators import EntangledKernelRidge
    from ..models import settings_of
    from ..words import scales_in_words, settings_in_words

    if not isinstance(learner, EntangledKernelRidge):
        return " ".join(repr(learner).split())
    scales = saved.info.get("target_transform")
    learned = f"; learned as logarithms: {scales_in_words(scales, names)}" if scales else ""
    return settings_in_words(settings_of(learner)) + learned


def show(screen: Screen, findings: dict[str, Any], *, theory: bool) -> None:
    """Tell people."""
    import numpy as np

    from ..models import explanation_of
    from ..words import (
        change_in_words,
        error_in_words,
        listed,
        measures_in_words,
        show_inputs,
        show_target_errors,
        strongest_pairs,
    )

    made = findings["software"].get("entangled-kernels", "")
    screen.say(f"{findings['model']}: {findings['class']}, saved by entangled-kernels {made}.")
    if findings["rows"]:
        screen.say(f"Fitted to {counted(findings['rows'], 'row')} of {findings['table']}.")
    screen.say(f"Inputs: {listed(findings['inputs'])}")
    screen.say(f"Targets: {listed(findings['targets'])}")
    screen.say(f"Settings: {findings['settings']}.")
    if findings["nmse"] is not None:
        plain = findings["kernel_ridge_nmse"]
        beside = (
            ""
            if plain is None
            else f", kernel ridge {plain:.4g} ({change_in_words(findings['nmse'], plain)})"
        )
        screen.say(
            f"{error_in_words(findings.get('held_out'))}: nMSE {findings['nmse']:.4g}{beside}."
        )
        show_target_errors(screen, findings["target_scores"])
    screen.points("Who shares what:", findings["sharing"])
    if findings["relations"]:
        pairs = strongest_pairs(np.array(findings["relations"]), findings["targets"])
        title = "Correlation of targets in the kernel" + (
            ", strongest pairs" if len(pairs) > SHOWN else ""
        )
        screen.table(["target", "target", "correlation"], pairs[:SHOWN], title=title)
    explanation = explanation_of(findings["explanation"])
    if explanation is not None:
        show_inputs(screen, explanation)
    screen.points("What tells what, once it is measured:", findings["telling"])
    if theory:
        screen.say()
        screen.say(findings["verdict"])
        if findings["entanglement"]:
            measures = measures_in_words(findings["entanglement"])
            screen.table(["measure", "value"], list(measures.items()), title="Entanglement")
