"""Differences and times of ONNX files beside `predict`.

Differences are the largest over 1000 new rows, in units of the deviation of a target; times are of
one thread, measured in turns.

    python benchmarks/export.py
"""

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from threadpoolctl import threadpool_limits

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    ForestFeatures,
    MultipleKernelRidge,
    MultiViewKernelRidge,
    OperatorFourierFeatures,
    OperatorFourierRidge,
    OutputKernelRidge,
    TargetProcessFeatures,
)
from entangled_kernels.io import compare_onnx, export_onnx

from measure import best_seconds, print_table, write_json

TRAIN, NEW, INPUTS, TARGETS = 300, 1000, 10, 5
SIZES = (1, 100, 10_000)


def table(rng):
    """Columns of several scales, two of them skewed, and nonlinear targets with steps."""
    Z = rng.normal(size=(TRAIN + NEW, INPUTS))
    Y = (
        np.tanh(Z @ rng.normal(size=(INPUTS, TARGETS)))
        + (Z[:, :1] > 0.5)
        + 0.1 * rng.normal(size=(len(Z), TARGETS))
    )
    X = Z * 10.0 ** rng.integers(-2, 3, size=INPUTS) + 10.0 * rng.normal(size=INPUTS)
    X[:, :2] = np.exp(Z[:, :2])
    return X, Y * 10.0 ** rng.integers(-1, 3, size=TARGETS)


def maps():
    rs = {"random_state": 0}
    return {
        "columns as they are": None,
        "StandardScaler": StandardScaler(),
        "EvidenceFeatures": EvidenceFeatures(**rs),
        "EvidenceFeatures, warp": EvidenceFeatures(warp=True, **rs),
        "ColumnWidthFeatures": ColumnWidthFeatures(**rs),
        "ColumnWidthFeatures, Gaussian": ColumnWidthFeatures("gaussian", **rs),
        "TargetProcessFeatures": TargetProcessFeatures(**rs),
        "ForestFeatures": ForestFeatures(**rs),
        "ForestFeatures, leaves of 4": ForestFeatures(min_samples_leaf=4, **rs),
        "ForestFeatures, 100 of 300 rows": ForestFeatures(n_components=100, **rs),
        "OperatorFourierFeatures": make_pipeline(StandardScaler(), OperatorFourierFeatures(**rs)),
        "RobustScaler, Nystroem": make_pipeline(RobustScaler(), Nystroem(n_components=100, **rs)),
        "PowerTransformer, RBFSampler": make_pipeline(
            PowerTransformer(), RBFSampler(gamma=0.05, **rs)
        ),
        "MinMaxScaler, polynomials": make_pipeline(MinMaxScaler(), PolynomialFeatures(2)),
        "StandardScaler, PCA": make_pipeline(StandardScaler(), PCA(5)),
    }


def models():
    kernels = [("line", "linear", slice(0, 5)), ("bell", "rbf", slice(None))]
    learners = {
        "OutputKernelRidge, rbf": OutputKernelRidge("rbf", alpha=0.1),
        "MultipleKernelRidge": MultipleKernelRidge(kernels, alpha=0.1),
        "MultiViewKernelRidge": MultiViewKernelRidge(kernels),
        "OperatorFourierRidge": OperatorFourierRidge(OperatorFourierFeatures(random_state=0)),
    }
    found = {name: EntangledKernelRidge(own, alpha=0.1) for name, own in maps().items()}
    found |= {name: make_pipeline(StandardScaler(), own) for name, own in learners.items()}
    found["EntangledKernelRidgeCV"] = EntangledKernelRidgeCV(cv=5, random_state=0)
    return found


def text_model():
    encoder = ColumnTransformer(
        [("text", OneHotEncoder(), ["town"])], remainder=SimpleImputer(strategy="median")
    )
    return EntangledKernelRidge(make_pipeline(encoder, EvidenceFeatures(random_state=0)), alpha=0.1)


def feed_of(session, X):
    if len(session.get_inputs()) == 1:
        return {"X": np.asarray(X, dtype=np.float32)}
    types = {"tensor(string)": object, "tensor(float)": np.float32}
    return {own.name: X[[own.name]].to_numpy(dtype=types[own.type]) for own in session.get_inputs()}


def measure(name, model, X, Y, folder):
    train, new = X[:TRAIN], X[TRAIN:]
    model.fit(train, Y[:TRAIN])
    row, path = {"model": name}, Path(folder) / "model.onnx"
    for dtype in ("float64", "float32"):
        export_onnx(model, path, dtype=dtype)
        row[f"difference, {dtype}"] = compare_onnx(model, path, new)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for size in SIZES:
        rows = (
            pd.concat([new] * 10, ignore_index=True)
            if hasattr(X, "columns")
            else np.tile(new, (10, 1))
        )
        rows = rows[:size]
        feed = feed_of(session, rows)
        times = best_seconds(
            {
                "onnx": lambda feed=feed: session.run(None, feed),
                "predict": lambda rows=rows: model.predict(rows),
            },
            repeats=5 if size > 1000 else 30,
        )
        row[f"ratio at {size}"] = times["onnx"] / times["predict"]
    row["kB"] = path.stat().st_size / 1000.0
    return row


def main():
    rng = np.random.default_rng(0)
    X, Y = table(rng)
    frame = pd.DataFrame(X, columns=[f"x{place}" for place in range(INPUTS)])
    frame = frame.assign(town=rng.choice(["Ulm", "Aix", "Ems"], size=len(X)))
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        rows = [measure(name, model, X, Y, folder) for name, model in models().items()]
        rows.append(measure("a column of text, medians, evidence", text_model(), frame, Y, folder))
    print_table(
        f"{TRAIN} rows, {INPUTS} columns, {TARGETS} targets; seconds of onnxruntime over predict",
        rows,
    )
    for dtype in ("float32", "float64"):
        print(
            f"largest difference, {dtype}: {max(row[f'difference, {dtype}'] for row in rows):.2g}"
        )
    write_json("export", rows)


if __name__ == "__main__":
    main()
