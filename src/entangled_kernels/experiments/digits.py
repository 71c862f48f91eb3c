"""Digit tasks: the learned kernel, projections for every task, and the test of entanglement."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight
from threadpoolctl import threadpool_limits

from ..datasets import load_digit_tasks
from ..estimators import EntangledKernelClassifier, EntangledKernelRidge
from ..io import ExperimentResults, Record
from ..linalg import Array
from .methods import METHODS
from .protocol import Experiment, Figures, Setup

__all__ = ["DIGITS"]

N_DIGITS, RANK = 4, 2
# Of each digit, to train and to test.
N_EACH = 25
RANKS = {"1": 1, "2": 2, "4": 4, "8": 8, "all": None}
OTHERS = {
    "KRR": METHODS["KRR"],
    "always no": "the answer no to every question, and the digit 0",
    "classifier": "EntangledKernelClassifier, its default settings",
    "ridge": "RidgeClassifier of scikit-learn, its default settings",
    "SVC": "of scikit-learn, its default settings",
    "logistic": "LogisticRegression of scikit-learn, its default settings",
}

# The paper says that the kernel of this experiment is entangled, and shows it in figures.
PAPER: list[Record] = [{"method": "EKL", "rank": "2", "entangled": True}]


def run(setup: Setup) -> ExperimentResults:
    """Learn kernels of few Kraus operators from few images, and keep the arrays of rank two."""
    total = 2 if setup.quick else 20
    records: list[Record] = []
    arrays: dict[str, NDArray[Any]] = {}
    meta: dict[str, Any] = {}
    for split in range(total):
        setup.report(split, total, f"split number {split}")
        rows = _rows(setup.seed + split)
        with threadpool_limits(limits=1, user_api="blas"):
            for label, rank in RANKS.items():
                model = _model(setup, rank).fit(rows["X"], rows["Y"])
                records += _learned_records(model, rows, label, split)
                if split == 0 and rank == RANK:
                    arrays = _arrays(model, rows)
                    report = model.kernel_.entanglement()
                    meta = {
                        "entangled": report.entangled,
                        "ppt": report.ppt,
                        "verdict": report.verdict,
                    }
            plain = EntangledKernelRidge(shrinkage=1.0, fit_intercept=setup.protocol == "fair")
            prediction = plain.fit(rows["X"], rows["Y"]).predict(rows["X_test"])
        records += _answers("KRR", prediction, rows, split)
        records += _answers("always no", -np.ones_like(rows["Y_test"]), rows, split)
        records += _class_records(rows, split, setup.seed)
    setup.report(total, total, "done")
    meta |= {"methods": {"EKL": METHODS["EKL"], **OTHERS}, "test rows": N_DIGITS * N_EACH}
    return ExperimentResults(DIGITS.name, DIGITS.title, records, PAPER, setup.meta(**meta), arrays)


def _rows(seed: int) -> dict[str, Any]:
    """Training images, sorted by digit, and test images."""
    digits = load_digit_tasks(N_DIGITS)
    size = N_DIGITS * N_EACH
    parts = train_test_split(
        digits.data,
        digits.target,
        digits.labels,
        train_size=size,
        test_size=size,
        stratify=digits.labels,
        random_state=seed,
    )
    rows = dict(zip(("X", "X_test", "Y", "Y_test", "labels", "labels_test"), parts, strict=True))
    order = np.argsort(rows["labels"], kind="stable")
    return rows | {name: rows[name][order] for name in ("X", "Y", "labels")}


def _answers(
    method: str, prediction: Array, rows: dict[str, Any], split: int, **more: Any
) -> list[Record]:
    """Share of right digits, and for each task the accuracy and the balanced accuracy."""
    common = {"method": method, "n": len(rows["Y"]), "split": split, **more}
    right = float(np.mean(prediction.argmax(axis=1) == rows["labels_test"]))
    records = [common | {"task": "all", "digit_accuracy": right}]
    for task in range(N_DIGITS):
        truth, said = rows["Y_test"][:, task] > 0, prediction[:, task] > 0
        balanced = float(balanced_accuracy_score(truth, said))
        shares = {"accuracy": float(np.mean(truth == said)), "balanced_accuracy": balanced}
        records.append(common | {"task": f"is {task}"} | shares)
    return records


def _class_records(rows: dict[str, Any], split: int, seed: int) -> list[Record]:
    """Share of right digits of classifiers."""
    classifiers: dict[str, Any] = {
        "classifier": EntangledKernelClassifier(random_state=seed),
        "ridge": RidgeClassifier(),
        "SVC": SVC(),
        "logistic": LogisticRegression(max_iter=1000),
    }
    records: list[Record] = []
    for name, model in classifiers.items():
        right = model.fit(rows["X"], rows["labels"]).score(rows["X_test"], rows["labels_test"])
        common = {"method": name, "n": len(rows["Y"]), "split": split, "task": "all"}
        records.append(common | {"digit_accuracy": float(right)})
    return records


def _learned_records(
    model: EntangledKernelRidge, rows: dict[str, Any], rank: str, split: int
) -> list[Record]:
    """Accuracies of a learned kernel, its entanglement, and the separation in its planes."""
    report = model.kernel_.entanglement()
    records = _answers("EKL", model.predict(rows["X_test"]), rows, split, rank=rank)
    records[0] |= {
        "alignment": float(model.alignment_),
        "entangled": report.entangled,
        "negativity": float(report.negativity),
        "lowest eigenvalue": float(report.lowest_eigenvalue),
    }
    if rank == str(RANK):
        Z, Z_test = model.project(rows["X"]), model.project(rows["X_test"])  # (n, p, r)
        for task, record in enumerate(records[1:]):
            record["separation"] = _separation(
                Z[:, task], rows["Y"][:, task], Z_test[:, task], rows["Y_test"][:, task]
            )
    return records


def _model(setup: Setup, rank: int | None) -> EntangledKernelRidge:
    if setup.protocol == "fair":
        return EntangledKernelRidge(rank=rank, shrinkage=0.0, target_alpha=1.0)
    return EntangledKernelRidge(
        solver="ascent",
        rank=rank,
        shrinkage=0.0,
        solver_params={"init": "random", "max_iter": 20 if setup.quick else 200},
        fit_intercept=False,
        random_state=setup.seed,
    )


def _separation(Z: Array, y: Array, Z_test: Array, y_test: Array) -> float:
    """Balanced accuracy of the least-squares line in the plane of a task, on test rows."""
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
    """The block Gram matrix, its blocks by class, the projections, and the spectrum."""
    from ..plotting import EntanglementSpectrumDisplay, GramDisplay, ProjectionDisplay
    from .illustrations import draw_class_blocks

    names = [f"is {digit}" for digit in range(N_DIGITS)]
    spectrum = EntanglementSpectrumDisplay(
        results.array("partial_transpose_eigenvalues"),
        results.array("schmidt_values"),
        verdict=str(results.meta["verdict"]).split(":")[0],
    )
    gram = GramDisplay(results.array("gram"), N_DIGITS, labels=results.array("labels"), names=names)
    arrays = [results.array(name) for name in ("Z_train", "y_train", "Z_test", "y_test")]
    return {
        "digits-kernel": gram.plot().figure_,
        "digits-zooms": draw_class_blocks(results.array("gram"), results.array("labels"), N_DIGITS),
        "digits-projections": ProjectionDisplay(*arrays, names=names).plot().figure_,
        "digits-entanglement": spectrum.plot().figure_,
    }


DIGITS = Experiment(
    name="digits",
    title="Digits: four tasks, two Kraus operators",
    about=(
        "Which of the digits 0 to 3 is it? A kernel of two Kraus operators is learned from 25 "
        "images of each digit, with linear features, and tested on 25 others of each. Its block "
        "Gram matrix is drawn, images are projected to the plane of each task, and the partial "
        "transpose tells whether it is entangled. It is compared with other ranks, kernel ridge "
        "and the answer no to everything, with alpha 1 for all, and with classifiers."
    ),
    run=run,
    figures=figures,
)
