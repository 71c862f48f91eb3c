"""``inspect``: what a model file holds, which outputs share what, and whether its kernel is entangled."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ...estimators import (
    EntangledKernelRidge,
    MultipleKernelRidge,
    MultiViewKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
)
from ...storage import SavedModel
from ...tables.phrases import counted
from ..explanations import explanation_of, show_inputs
from ..files import check_output
from ..held_out import error_in_words
from ..information import information_in_words, information_of
from ..learner_words import kernel_weights, learner_in_words, show_weights
from ..model_facts import correlations_of, entanglement_of, settings_of
from ..model_words import (
    change_in_words,
    listed,
    measures_in_words,
    settings_in_words,
    sharing_in_words,
    show_target_errors,
    strongest_pairs,
)
from ..options import Force, Json, Model
from ..saved_models import learner_of, open_saved_model, targets_of
from ..screen import Screen
from ..series import show_network
from ..target_scales import scales_in_words

__all__ = ["inspect"]

ReportOut = Annotated[
    Path | None, typer.Option("--report", metavar="PAGE.html", help="Also write a page with figures.")
]

SHOWN = 12


def inspect(model: Model, report: ReportOut = None, force: Force = False, json: Json = False) -> None:
    """Tell what a model is and what it found.

    Its settings, which outputs share what, which tell what about each other once they are measured, and
    whether its kernel is proven entangled.
    """
    screen = Screen(as_json=json)
    if report is not None:
        check_output(report, force=force, inputs=[model])
    saved = open_saved_model(model)
    with screen.working("looking at the kernel"):
        findings = find_out(saved, model)
    show(screen, findings, learner_of(saved.model))
    if report is not None:
        from ..pages.model_page import write_model_page

        write_model_page(saved, findings, report)
        screen.say(f"Wrote {report}.")
    screen.result({**findings, "report": report})


def find_out(saved: SavedModel, path: Path) -> dict[str, Any]:
    """Everything there is to tell, as plain values."""
    names = targets_of(saved)
    inner = learner_of(saved.model)
    correlations = relations_of(saved, inner)
    information = information_of(saved.model)
    return {
        "model": str(path),
        "class": type(
            saved.model if inner is not getattr(saved.model, "regressor_", None) else inner
        ).__name__,
        "software": saved.software,
        "inputs": [str(name) for name in getattr(saved.model, "feature_names_in_", [])],
        "targets": names,
        "rows": saved.info.get("rows"),
        "table": saved.info.get("table"),
        "settings": _settings_in_words(saved, inner),
        "nmse": saved.info.get("nmse"),
        "held_out": saved.info.get("held_out"),
        "kernel_ridge_nmse": saved.info.get("kernel_ridge_nmse"),
        "target_scores": saved.info.get("target_scores", []),
        "sharing": learner_in_words(inner, names)
        or sharing_in_words(inner.get_params(deep=False), correlations, names),
        "weights": kernel_weights(inner),
        "influence": getattr(inner, "granger_", None),
        "relations": [] if correlations is None else correlations.tolist(),
        "target_correlations": saved.info.get("target_correlations", []),
        "explanation": saved.info.get("explanation"),
        "telling": information_in_words(information, names),
        "information": [] if information is None else information.round(6).tolist(),
        **entanglement_of(inner),
    }


def relations_of(saved: SavedModel, inner: Any) -> Any:
    """Correlations between the targets: kept with the model, or in its output kernel."""
    if isinstance(inner, EntangledKernelRidge) and (
        inner.prediction == "partial_trace" or inner.shrinkage == 1.0
    ):
        return None
    if "relations" in saved.info:
        return np.array(saved.info["relations"])
    if isinstance(inner, OutputKernelRidge | OutputKernelRidgeCV | MultiViewKernelRidge):
        return correlations_of(inner.output_kernel_)
    if isinstance(inner, MultipleKernelRidge) and learner_in_words(inner, []) is None:
        return correlations_of(inner.output_kernels_.sum(axis=0))
    return None


def _settings_in_words(saved: SavedModel, inner: Any) -> str:
    """What was chosen or set."""
    if isinstance(inner, EntangledKernelRidge):
        scales = saved.info.get("target_transform")
        learned = f"; learned as logarithms: {scales_in_words(scales, targets_of(saved))}" if scales else ""
        return settings_in_words(settings_of(inner)) + learned
    return " ".join(repr(inner).split())


def show(screen: Screen, findings: dict[str, Any], learner: Any) -> None:
    """Tell people."""
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
        screen.say(f"{error_in_words(findings.get('held_out'))}: nMSE {findings['nmse']:.4g}{beside}.")
        show_target_errors(screen, findings["target_scores"])
    screen.points("Who shares what:", findings["sharing"])
    if findings["relations"]:
        pairs = strongest_pairs(np.array(findings["relations"]), findings["targets"])
        title = "Correlation of targets in the kernel" + (", strongest pairs" if len(pairs) > SHOWN else "")
        screen.table(["target", "target", "correlation"], pairs[:SHOWN], title=title)
    show_weights(screen, learner)
    if findings["influence"] is not None:
        show_network(screen, findings["influence"], findings["targets"])
    explanation = explanation_of(findings["explanation"])
    if explanation is not None:
        show_inputs(screen, explanation)
    screen.points("What tells what, once it is measured:", findings["telling"])
    screen.say()
    screen.say(findings["verdict"])
    if findings["entanglement"]:
        measures = measures_in_words(findings["entanglement"])
        screen.table(["measure", "value"], list(measures.items()), title="Entanglement")
