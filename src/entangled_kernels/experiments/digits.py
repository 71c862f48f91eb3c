"""Digit tasks: the learned kernel as a picture, projections for every task, and the test of entanglement."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight
from threadpoolctl import threadpool_limits

from ..datasets import load_digit_tasks
from ..estimators import EntangledKernelRidge
from ..linalg import Array
from ..storage import ExperimentResults, Record
from .methods import METHODS
from .setup import Experiment, Figures, Setup

__all__ = ["DIGITS"]

N_DIGITS, RANK = 4, 2
N_TRAIN, N_TEST = 40, 200

# The paper says that the kernel of this experiment is entangled, and shows it in figures.
PAPER: list[Record] = [{"method": "EKL", "entangled": True}]


def run(setup: Setup) -> ExperimentResults:
    """Learn a kernel of two Kraus operators from few images, and look at it."""
    total = 2 if setup.quick else 10
    records: list[Record] = []
    arrays: dict[str, NDArray[Any]] = {}
    meta: dict[str, Any] = {}
    for split in range(total):
        setup.tell(split, total, f"split={split}")
        with threadpool_limits(limits=1, user_api="blas"):
            own, model, rows = _split(setup, split)
            if split == 0:
                arrays = _arrays(model, rows)
                report = model.kernel_.entanglement()
                meta = {"entangled": report.entangled, "ppt": report.ppt, "verdict": report.verdict}
        records += own
    setup.tell(total, total, "done")
    meta |= {"rank": RANK, "methods": {"EKL": METHODS["EKL"]}, "test rows": N_TEST}
    return ExperimentResults(DIGITS.name, DIGITS.title, records, PAPER, setup.meta(**meta), arrays)


def _split(setup: Setup, split: int) -> tuple[list[Record], EntangledKernelRidge, dict[str, Any]]:
    digits = load_digit_tasks(N_DIGITS)
    parts = train_test_split(
        digits.data,
        digits.target,
        digits.labels,
        train_size=N_TRAIN,
        test_size=N_TEST,
        stratify=digits.labels,
        random_state=setup.seed + split,
    )
    names = ("X", "X_test", "Y", "Y_test", "labels", "labels_test")
    rows = dict(zip(names, parts, strict=True))
    order = np.argsort(rows["labels"], kind="stable")
    rows |= {name: rows[name][order] for name in ("X", "Y", "labels")}
    model = _model(setup).fit(rows["X"], rows["Y"])
    report = model.kernel_.entanglement()
    decided = model.predict(rows["X_test"]).argmax(axis=1)
    common = {
        "method": "EKL",
        "n": N_TRAIN,
        "split": split,
        "alignment": float(model.alignment_),
        "entangled": report.entangled,
        "negativity": float(report.negativity),
        "lowest eigenvalue": float(report.lowest_eigenvalue),
    }
    whole = {"task": "all", "accuracy": float(np.mean(decided == rows["labels_test"]))}
    Z, Z_test = model.project(rows["X"]), model.project(rows["X_test"])  # (n, p, r)
    separated = [
        _separation(Z[:, task], rows["Y"][:, task], Z_test[:, task], rows["Y_test"][:, task])
        for task in range(N_DIGITS)
    ]
    records = [common | whole]
    records += [common | {"task": f"is {task}", "accuracy": share} for task, share in enumerate(separated)]
    return records, model, rows


def _model(setup: Setup) -> EntangledKernelRidge:
    if setup.protocol == "fair":
        return EntangledKernelRidge(rank=RANK, shrinkage=0.0, target_alpha=1.0)
    return EntangledKernelRidge(
        solver="ascent",
        init="random",
        rank=RANK,
        shrinkage=0.0,
        max_iter=200,
        fit_intercept=False,
        random_state=setup.seed,
    )


def _separation(Z: Array, y: Array, Z_test: Array, y_test: Array) -> float:
    """Share of test rows on the right side of the least-squares line of the training rows in a task's plane.

    Both sides weigh alike.
    """
    line = LinearRegression().fit(Z, y, sample_weight=compute_sample_weight("balanced", y))
    return float(balanced_accuracy_score(y_test > 0, line.predict(Z_test) > 0))


def _arrays(model: EntangledKernelRidge, rows: dict[str, Any]) -> dict[str, NDArray[Any]]:
    kernel = model.kernel_
    return {
        "gram": kernel(rows["X"]).to_dense(),
        "labels": rows["labels"],
        "Z_train": model.project(rows["X"]),
        "y_train": rows["labels"],
        "Z_test": model.project(rows["X_test"]),
        "y_test": rows["labels_test"],
        "partial_transpose_eigenvalues": kernel.partial_transpose_eigenvalues(),
        "schmidt_values": kernel.schmidt_values(),
        "alignment_history": np.asarray(model.alignment_history_),
    }


def figures(results: ExperimentResults) -> Figures:
    """The block Gram matrix, the projections of every task, and the spectrum of the partial transpose."""
    from ..plotting import EntanglementSpectrumDisplay, GramDisplay, ProjectionDisplay

    names = [f"is {digit}" for digit in range(N_DIGITS)]
    spectrum = EntanglementSpectrumDisplay(
        results.array("partial_transpose_eigenvalues"),
        results.array("schmidt_values"),
        verdict=str(results.meta["verdict"]).split(":")[0],
    )
    return {
        "digits-kernel": GramDisplay.from_results(results, n_outputs=N_DIGITS, names=names).figure_,
        "digits-projections": ProjectionDisplay.from_results(results, names=names).figure_,
        "digits-entanglement": spectrum.plot().figure_,
    }


DIGITS = Experiment(
    name="digits",
    title="Digits: four tasks, two Kraus operators",
    about=(
        "Which of the digits 0 to 3 is it? A kernel of two Kraus operators is learned from 40 images, with "
        "linear features. Its block Gram matrix is drawn, images are projected to the plane of each task, "
        "and the partial transpose tells whether it is entangled."
    ),
    run=run,
    figures=figures,
)
