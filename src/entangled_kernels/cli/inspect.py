"""``inspect``: what a model file holds, which outputs share what, and whether its kernel is entangled."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..estimators import EntangledKernelRidge, OutputKernelRidge, OutputKernelRidgeCV
from ..storage import SavedModel
from .files import check_output
from .fit import show_targets
from .models import open_named_model, targets_of
from .options import Force, Json
from .predict import Model
from .relations import sharing_in_words, strongest_pairs
from .screen import Screen
from .words import change_in_words, chosen_in_words, settings_of

__all__ = ["inspect"]

ReportOut = Annotated[
    Path | None, typer.Option("--report", metavar="PAGE.html", help="Also write a page with figures.")
]

# The test works on matrices of this many rows, features times targets, and takes the third power of it.
LARGEST = 3000
SHOWN = 12


def inspect(model: Model, report: ReportOut = None, force: Force = False, json: Json = False) -> None:
    """Tell what a model is and what it found.

    Its settings, which outputs share what, and whether its kernel is proven entangled.
    """
    screen = Screen(as_json=json)
    if report is not None:
        check_output(report, force=force)
    saved = open_named_model(model)
    with screen.working("looking at the kernel"):
        findings = find_out(saved, model)
    show(screen, findings)
    if report is not None:
        from .model_page import write_model_page

        write_model_page(saved, findings, report)
        screen.say(f"Wrote {report}.")
    screen.result(findings | ({"report": str(report)} if report else {}))


def find_out(saved: SavedModel, path: Path) -> dict[str, Any]:
    """Everything there is to tell, as plain values."""
    names = targets_of(saved)
    inner = getattr(saved.model, "best_estimator_", saved.model)
    correlations = relations_of(saved, inner)
    findings: dict[str, Any] = {
        "model": str(path),
        "class": type(saved.model).__name__,
        "software": saved.software,
        "inputs": saved.info.get("inputs") or list(getattr(saved.model, "feature_names_in_", [])),
        "targets": names,
        "rows": saved.info.get("rows"),
        "table": saved.info.get("table"),
        "settings": settings_in_words(saved, inner),
        "nmse": saved.info.get("nmse"),
        "kernel_ridge_nmse": saved.info.get("kernel_ridge_nmse"),
        "target_scores": saved.info.get("target_scores", []),
        "sharing": sharing_in_words(inner.get_params(deep=False), correlations, names),
        "relations": [] if correlations is None else correlations.tolist(),
    }
    return findings | entanglement_of(inner)


def relations_of(saved: SavedModel, inner: Any) -> Any:
    """Correlations between the targets: kept with the model, or in its output kernel."""
    if isinstance(inner, EntangledKernelRidge) and (
        inner.prediction == "partial_trace" or inner.shrinkage == 1.0
    ):
        return None
    if "relations" in saved.info:
        return np.array(saved.info["relations"])
    if isinstance(inner, OutputKernelRidge | OutputKernelRidgeCV):
        size = np.sqrt(np.diag(inner.output_kernel_))
        scale = np.where(size > 0.0, size, 1.0)
        return inner.output_kernel_ / np.outer(scale, scale)
    return None


def settings_in_words(saved: SavedModel, inner: Any) -> str:
    """What was chosen or set."""
    if "chosen" in saved.info:
        return chosen_in_words(saved.info["chosen"])
    if isinstance(inner, EntangledKernelRidge):
        return chosen_in_words(settings_of(inner))
    return " ".join(repr(inner).split())


def entanglement_of(inner: Any) -> dict[str, Any]:
    """Verdict, and the numbers behind it where the kernel is small enough to be tested."""
    if isinstance(inner, OutputKernelRidge | OutputKernelRidgeCV):
        return {
            "entangled": False,
            "verdict": "Separable: one scalar kernel times one learned output matrix.",
        }
    if not isinstance(inner, EntangledKernelRidge):
        return {"entangled": None, "verdict": "Not tested: the kernel was given, not learned."}
    size = inner.coef_.size
    if size > LARGEST:
        verdict = f"Not tested: features times targets are {size}, and the test is for up to {LARGEST}."
        return {"entangled": None, "verdict": verdict}
    found = inner.kernel_.entanglement()
    numbers = ("ppt", "lowest_eigenvalue", "negativity", "realignment", "schmidt_entropy", "separable_share")
    return {
        "entangled": found.entangled,
        "verdict": found.verdict,
        "entanglement": {name: getattr(found, name) for name in numbers},
    }


def show(screen: Screen, findings: dict[str, Any]) -> None:
    """Tell people."""
    made = findings["software"].get("entangled-kernels", "")
    screen.say(f"{findings['model']}: {findings['class']}, saved by entangled-kernels {made}.")
    if findings["rows"]:
        screen.say(f"Fitted to {findings['rows']} rows of {findings['table']}.")
    screen.say(f"Inputs: {listed(findings['inputs'])}")
    screen.say(f"Targets: {listed(findings['targets'])}")
    screen.say(f"Settings: {findings['settings']}.")
    if findings["nmse"] is not None:
        plain = findings["kernel_ridge_nmse"]
        screen.say(
            f"Cross-validated nMSE {findings['nmse']:.4g}, kernel ridge {plain:.4g} "
            f"({change_in_words(findings['nmse'], plain)})."
        )
        show_targets(screen, findings)
    screen.say("\nWho shares what:")
    for sentence in findings["sharing"]:
        screen.say(f"  {sentence}")
    if findings["relations"]:
        pairs = strongest_pairs(np.array(findings["relations"]), findings["targets"])
        title = "Correlation of targets in the kernel" + (", strongest pairs" if len(pairs) > SHOWN else "")
        screen.table(["target", "target", "correlation"], pairs[:SHOWN], title=title)
    screen.say(findings["verdict"])
    if "entanglement" in findings:
        rows = [[name.replace("_", " "), value] for name, value in findings["entanglement"].items()]
        screen.table(
            ["measure", "value"], [[name, _yes(value)] for name, value in rows], title="Entanglement"
        )


def listed(names: list[str]) -> str:
    """Names with commas; of many only the first ones."""
    if not names:
        return "without names"
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _yes(value: Any) -> Any:
    return ("holds" if value else "fails") if isinstance(value, bool) else f"{value + 0.0:.4g}"
