"""Accuracy, log loss and calibration of the classifier and of four of scikit-learn's.

Tables of scikit-learn and three simulated ones with a rare class. Half of the rows, at most 1,000,
are training rows, in a stratified random split. The calibration error is the
mean distance between the probability of the predicted class and how often it is right, over ten
bins of equal size. `RidgeClassifier` gives no probabilities.

    python benchmarks/classifier.py [--splits 3] [--tables NAME ...]
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegressionCV, RidgeClassifierCV
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from entangled_kernels import EntangledKernelClassifier

from measure import print_table, write_json

MOST_TRAINING_ROWS, N_BINS = 1000, 10


def tables():
    found = {
        "digits": load_digits(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "iris": load_iris(return_X_y=True),
    }
    for number, share in enumerate((0.9, 0.95, 0.97)):
        found[f"rare class, {1 - share:.0%}"] = make_classification(
            1000, 12, n_informative=6, weights=[share], flip_y=0.01, random_state=number
        )
    return found


def methods(seed):
    svc = GridSearchCV(
        make_pipeline(StandardScaler(), SVC(probability=True, random_state=seed)),
        {"svc__C": np.logspace(-1, 3, 5)},
    )
    ours = EntangledKernelClassifier
    return {
        "ours": ours(random_state=seed),
        "ours, balanced coding": ours(coding="balanced", random_state=seed),
        "ridge": make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-3, 4, 22))),
        "SVC": svc,
        "logistic": make_pipeline(StandardScaler(), LogisticRegressionCV(max_iter=2000)),
        "extra trees": ExtraTreesClassifier(300, random_state=seed),
    }


def calibration_error(y, proba, classes):
    """Mean over bins of |probability of the predicted class - share of rows where it is right|."""
    right = classes[proba.argmax(axis=1)] == y
    largest = proba.max(axis=1)
    bins = np.array_split(np.argsort(largest, kind="stable"), N_BINS)
    return float(np.mean([abs(largest[rows].mean() - right[rows].mean()) for rows in bins]))


def run(name, X, y, split):
    n_train = min(len(y) // 2, MOST_TRAINING_ROWS)
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=n_train, stratify=y, random_state=split
    )
    records = []
    for method, model in methods(split).items():
        start = time.process_time()
        model.fit(X, y)
        record = {"table": name, "split": split, "method": method}
        record["seconds"] = time.process_time() - start
        found = model.predict(X_test)
        record["error"] = float(np.mean(found != y_test))
        record["balanced error"] = 1.0 - float(balanced_accuracy_score(y_test, found))
        if hasattr(model, "predict_proba"):
            proba = model.predict_proba(X_test)
            record["log loss"] = float(log_loss(y_test, proba))
            record["calibration error"] = calibration_error(y_test, proba, model.classes_)
        records.append(record)
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--tables", nargs="+")
    options = parser.parse_args()
    records = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (X, y) in tables().items():
            if options.tables and name not in options.tables:
                continue
            for split in range(options.splits):
                records += run(name, X, y, split)
    columns = ("error", "balanced error", "log loss", "calibration error", "seconds")
    rows = []
    for name in dict.fromkeys(record["table"] for record in records):
        for method in methods(0):
            of = [r for r in records if (r["table"], r["method"]) == (name, method)]
            row = {"table": name, "method": method}
            for column in columns:
                values = [r[column] for r in of if column in r]
                row[column] = float(np.mean(values)) if values else float("nan")
            rows.append(row)
    print_table("means over splits", rows)
    write_json("classifier", {"records": records, "means": rows})


if __name__ == "__main__":
    main()
