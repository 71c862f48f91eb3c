"""``inspect``: what a model file holds, how well it predicts, and which inputs matter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...io.tables import counted
from ..files import check_input, check_output
from ..options import Options, argument, option
from ..process import import_learning
from ..screen import Screen

if TYPE_CHECKING:
    from ...io import SavedModel

__all__ = ["InspectOptions", "inspect"]


@dataclass(frozen=True, kw_only=True)
class InspectOptions(Options):
    """Options of ``inspect``."""

    model: Path = argument("MODEL", "Model file that fit wrote.")
    report: Path | None = option(
        "Also write a page with figures.", default=None, metavar="PAGE.html"
    )
    theory: bool = option(
        "Also show whether the kernel is proven entangled, and by how much.", default=False
    )


def inspect(options: InspectOptions) -> None:
    """Show what a model is, its errors, and which inputs matter.

    Also how much measuring one target tells about the others.
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
    """All facts to show, as plain values."""
    from ...estimators import EntangledKernelRidge
    from .. import models, words

    names, learner, info = models.targets_of(saved), models.learner_of(saved.model), saved.info
    settings = " ".join(repr(learner).split())
    if isinstance(learner, EntangledKernelRidge):
        settings = words.settings_in_words(models.settings_of(learner))
        if scales := info.get("target_transform"):
            settings += f"; learned as logarithms: {words.scales_in_words(scales, names)}"
    information = models.information_of(saved.model)
    return {
        "model": str(path),
        "class": type(saved.model).__name__,
        "software": saved.software,
        "inputs": [str(name) for name in getattr(saved.model, "feature_names_in_", [])],
        "targets": names,
        "settings": settings,
        **{name: info.get(name) for name in ("rows", "table", "nmse", "held_out", "explanation")},
        "kernel_ridge_nmse": info.get("kernel_ridge_nmse"),
        "baselines": info.get("baselines", {}),
        "target_scores": info.get("target_scores", []),
        "telling": words.information_in_words(information, names),
        "information": [] if information is None else information.round(6).tolist(),
        **models.entanglement_of(learner),
    }


def show(screen: Screen, findings: dict[str, Any], *, theory: bool) -> None:
    """Print the facts."""
    from .. import words
    from ..models import explanation_of

    made, error = findings["software"].get("entangled-kernels", ""), findings["nmse"]
    screen.say(f"{findings['model']}: {findings['class']}, saved by entangled-kernels {made}.")
    if findings["rows"]:
        screen.say(f"Fitted to {counted(findings['rows'], 'row')} of {findings['table']}.")
    screen.say(f"Inputs: {words.listed(findings['inputs'])}")
    screen.say(f"Targets: {words.listed(findings['targets'])}")
    screen.say(f"Settings: {findings['settings']}.")
    if error is not None:
        screen.say(f"{words.error_in_words(findings['held_out'])}: nMSE {error:.4g}.")
        plain, baselines = findings["kernel_ridge_nmse"], findings["baselines"]
        screen.say(words.baselines_in_words(error, plain, baselines))
        columns, rows, title, *_ = words.error_table(findings["target_scores"])
        screen.table(columns, rows, title=title)
    if (explanation := explanation_of(findings["explanation"])) is not None:
        screen.points("Which inputs matter:", words.explanation_in_words(explanation))
        columns, rows, title, *_ = words.input_table(explanation)
        screen.table(columns, rows, title=title)
    screen.points("What measured targets tell about the others:", findings["telling"])
    if theory:
        screen.say()
        screen.say(findings["verdict"])
        if findings["entanglement"]:
            measures = words.measures_in_words(findings["entanglement"])
            screen.table(["measure", "value"], list(measures.items()), title="Entanglement")
