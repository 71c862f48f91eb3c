"""``fit``: from a table to a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict

from ..estimators import EntangledKernelRidgeCV
from ..persistence import save_model
from ..tables import TableError
from .columns import LearningTable, read_learning_table
from .errors import data_errors
from .features import FEATURES, feature_maps
from .files import check_input, check_output
from .options import Encode, Force, Inputs, Jobs, Json, OneTable, Seed, Targets
from .relations import output_relations
from .repeat import command_line
from .screen import Screen, say_note

__all__ = ["fit"]

Features = Annotated[
    str,
    typer.Option(
        "--features",
        "-f",
        metavar="|".join(FEATURES),
        help="Features of the inputs that the kernel works on.",
    ),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="MODEL", help="Model file to write.", show_default=False)
]
Folds = Annotated[int, typer.Option("--folds", min=2, help="Folds of the cross-validation.")]

FEWEST = 3


def fit(
    table: OneTable,
    targets: Targets,
    out: Out,
    inputs: Inputs = None,
    features: Features = "auto",
    encode: Encode = False,
    folds: Folds = 5,
    seed: Seed = 0,
    jobs: Jobs = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit a model to a table, choosing its settings by cross-validation, and save it."""
    screen = Screen(as_json=json)
    check_choice("--features", features, FEATURES)
    check_input(table)
    check_output(out, force=force)
    data = read_learning_table(table, targets, inputs, encode=encode)
    for note in data.notes:
        say_note(note)
    if len(data.Y) < FEWEST:
        raise TableError(table, f"fitting needs at least {FEWEST} rows, got {len(data.Y)}")
    screen.say(f"{table}: {len(data.Y)} rows, {len(data.inputs)} inputs, {len(data.targets)} targets.")
    options: dict[str, Any] = {}
    options |= {
        "--targets": data.targets,
        "--inputs": data.inputs if inputs else None,
        "--features": features,
    }
    options |= {"--encode": encode, "--folds": folds, "--seed": seed, "--out": out}
    repeat = command_line("fit", table, options=options)
    with screen.working("choosing the settings"), data_errors(table):
        model, plain = search(data, features, folds=min(folds, len(data.Y)), seed=seed, jobs=jobs)
        scores = target_scores(model, plain, data, folds=min(folds, len(data.Y)), seed=seed)
        info = describe(model, plain, data, scores) | {
            "table": table.name,
            "features": features,
            "seed": seed,
            "command": repeat,
            "relations": output_relations(model.best_estimator_, data.X).round(6).tolist(),
        }
    save_model(model, out, info=info)
    show(screen, info, out)
    screen.result({"model": str(out), **{name: info[name] for name in info if name != "relations"}})


def check_choice(option: str, value: str, choices: Any) -> None:
    """Raise unless the value is one of the choices."""
    if value not in choices:
        raise typer.BadParameter(f"must be one of {', '.join(choices)}, got {value!r}", param_hint=option)


def search(
    data: LearningTable, features: str, *, folds: int, seed: int, jobs: int | None
) -> tuple[EntangledKernelRidgeCV, EntangledKernelRidgeCV]:
    """The best of all candidates, and the best kernel ridge, on the same features and folds."""
    maps = feature_maps(features, data.X, folds=folds, seed=seed)
    model = EntangledKernelRidgeCV(maps, cv=folds, n_jobs=jobs, random_state=seed)
    plain = clone(model).set_params(shrinkages=(1.0,))
    return model.fit(data.X, data.Y), plain.fit(data.X, data.Y)


def target_scores(
    model: EntangledKernelRidgeCV,
    plain: EntangledKernelRidgeCV,
    data: LearningTable,
    *,
    folds: int,
    seed: int,
) -> list[dict[str, Any]]:
    """Held-out nMSE of every target with the chosen settings, beside kernel ridge's with its own."""
    splits = KFold(folds, shuffle=True, random_state=seed)
    Y = data.Y.to_numpy()
    variance = Y.var(axis=0)
    errors = []
    for search in (model, plain):
        estimator = clone(search.best_estimator_)
        held_out = np.asarray(cross_val_predict(estimator, data.X, Y, cv=splits)).reshape(Y.shape)
        with np.errstate(invalid="ignore", divide="ignore"):
            errors.append(np.where(variance > 0.0, np.mean((Y - held_out) ** 2, axis=0) / variance, np.nan))
    return [
        {"target": name, "nmse": float(own), "kernel_ridge_nmse": float(ridge)}
        for name, own, ridge in zip(data.targets, *errors, strict=True)
    ]


def describe(
    model: EntangledKernelRidgeCV,
    plain: EntangledKernelRidgeCV,
    data: LearningTable,
    scores: list[dict[str, Any]],
) -> dict[str, Any]:
    """What is kept beside the model: names of columns, what was chosen, and how well it does."""
    return {
        "rows": len(data.Y),
        "inputs": data.inputs,
        "targets": data.targets,
        "categories": data.categories,
        "chosen": {"features": map_in_words(model.feature_map_), **settings_of(model)},
        "candidates": effective_candidates(model),
        "nmse": model.best_score_,
        "kernel_ridge_nmse": plain.best_score_,
        "target_scores": [
            {
                name: value if isinstance(value, str) or np.isfinite(value) else None
                for name, value in row.items()
            }
            for row in scores
        ],
    }


def effective_candidates(model: EntangledKernelRidgeCV) -> float | None:
    """How many candidates share in an average, counting those of small weight for less; None without one."""
    if model.selection != "average":
        return None
    return float(1.0 / np.sum(model.average_weights_**2))


def settings_of(model: EntangledKernelRidgeCV) -> dict[str, Any]:
    """Parameters of the chosen candidate that say what it is."""
    estimator = model.best_estimator_
    names = ("shrinkage", "alignment_mix", "target_alpha", "prediction", "alpha")
    return {name: getattr(estimator, name) for name in names}


def map_in_words(feature_map: Any) -> str:
    """A feature map by the names of its steps."""
    if feature_map is None:
        return "inputs as they are"
    steps = getattr(feature_map, "steps", [("", feature_map)])
    return " + ".join(type(step).__name__ for _, step in steps)


def chosen_in_words(chosen: dict[str, Any]) -> str:
    """The chosen settings in one line."""
    alpha = np.asarray(chosen["alpha"])
    penalty = f"alpha {alpha:.3g}" if alpha.ndim == 0 else f"alpha {alpha.min():.3g} to {alpha.max():.3g}"
    if chosen["shrinkage"] == 1.0:
        return f"{chosen['features']}; kernel ridge, {penalty}"
    kind = "entangled kernel" if chosen["prediction"] == "entangled" else "partial-trace kernel"
    return (
        f"{chosen['features']}; {kind} with shrinkage {chosen['shrinkage']:g}, alignment mix "
        f"{chosen['alignment_mix']:g}, target alpha {chosen['target_alpha']:g}; {penalty}"
    )


def gain_in_words(nmse: float | None, plain: float | None) -> str:
    """How much less one error is than another."""
    if nmse is None or plain is None or not plain > 0.0:
        return "-"
    gain = 100.0 * (1.0 - nmse / plain)
    return "the same" if abs(gain) < 0.05 else f"{abs(gain):.1f}% {'less' if gain > 0 else 'more'} error"


def show(screen: Screen, info: dict[str, Any], out: Path) -> None:
    """Tell people what was fitted."""
    screen.say(f"Chosen: {chosen_in_words(info['chosen'])}.")
    screen.say(
        f"Cross-validated error (nMSE, 0 is perfect, 1 is the mean): {info['nmse']:.4g}; kernel ridge "
        f"{info['kernel_ridge_nmse']:.4g} ({gain_in_words(info['nmse'], info['kernel_ridge_nmse'])})."
    )
    if info["candidates"]:
        screen.say(
            f"Predictions average candidates by how often they are the best, about {info['candidates']:.0f} "
            f"of them; the table is about the first."
        )
    if info["nmse"] >= 1.0:
        screen.say("That is no better than predicting the mean: the inputs tell little about the targets.")
    show_targets(screen, info)
    screen.say(f"Saved to {out}. To predict: entangled-kernels predict {out} TABLE --out PREDICTIONS.csv")


def show_targets(screen: Screen, info: dict[str, Any]) -> None:
    """The error of every target beside kernel ridge's."""
    screen.table(
        ["target", "nMSE", "kernel ridge", "gain"],
        [
            [
                row["target"],
                row["nmse"],
                row["kernel_ridge_nmse"],
                gain_in_words(row["nmse"], row["kernel_ridge_nmse"]),
            ]
            for row in info["target_scores"]
        ],
        title="Held-out error of each target with the settings chosen",
    )
