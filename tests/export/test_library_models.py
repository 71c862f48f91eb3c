import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import (
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    ForestFeatures,
    GaussianFeatures,
    MultipleKernelRidge,
    MultiViewKernelClassifier,
    MultiViewKernelRidge,
    OperatorFourierFeatures,
    OperatorFourierRidge,
    OperatorValuedKernelRidge,
    OutputKernelRidge,
    OutputKernelRidgeCV,
    RegressorFeatures,
)
from entangled_kernels.export.library_models import REGRESSORS
from entangled_kernels.io import ExportError, export_onnx, run_onnx
from entangled_kernels.kernels import SeparableKernel

KERNELS = [
    ("line", "linear", [0, 1]),
    ("wave", GaussianFeatures(approximation="fourier", n_components=20, random_state=0), [1, 2, 3]),
    ("bell", "rbf", slice(None)),
]
MODELS = [
    EntangledKernelRidge(),
    EntangledKernelRidge(StandardScaler(), prediction="partial_trace"),
    EntangledKernelRidgeCV([ForestFeatures(10, random_state=0), None], cv=KFold(2), random_state=0),
    OutputKernelRidge(alpha=0.1),
    OutputKernelRidge(alpha=0.1, kernel="rbf", gamma=0.1),
    OutputKernelRidge(alpha=0.1, kernel="poly", kernel_params={"degree": 2, "coef0": 0.5}),
    OutputKernelRidgeCV(alphas=(0.01, 0.1, 1.0, 10.0, 100.0), cv=2),
    MultipleKernelRidge(KERNELS, solver_params={"max_iter": 50, "tol": 0.1}),
    MultiViewKernelRidge(KERNELS, solver_params={"max_iter": 50, "tol": 0.1}),
    OperatorFourierRidge(OperatorFourierFeatures(n_frequencies=10, random_state=0)),
    OperatorValuedKernelRidge(SeparableKernel("rbf", np.eye(3), gamma=0.1)),
]


def test_all_types_are_tried():
    assert {type(model) for model in MODELS} == set(REGRESSORS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda own: " ".join(repr(own).split())[:60])
@pytest.mark.parametrize("one", [False, True], ids=["several targets", "one target"])
def test_predictions_are_those_of_the_model(model, one, rows, new_rows, agrees):
    X, Y = rows
    scaler = StandardScaler().fit(X)
    if one and (not isinstance(model, OperatorValuedKernelRidge)):
        Y = Y[:, 0]
    trees = isinstance(model, EntangledKernelRidgeCV)
    agrees(model.fit(scaler.transform(X), Y), scaler.transform(new_rows), 1e-6 if trees else 1e-7)


def test_an_average_over_maps_that_see_the_targets(rows, new_rows, agrees):
    """The default is such an average, of six maps; here of three, in two folds."""
    maps = [
        make_pipeline(StandardScaler(), EvidenceFeatures(warp=True, random_state=0)),
        ForestFeatures(10, min_samples_leaf=4, random_state=0),
        make_pipeline(StandardScaler(), Nystroem(n_components=15, random_state=0)),
    ]
    model = EntangledKernelRidgeCV(maps, cv=KFold(2), selection="average", random_state=0).fit(*rows)
    agrees(model, new_rows, 1e-6)


def test_rows_taken_in_are_solved_for(rows, new_rows, agrees):
    X, Y = rows
    model = EntangledKernelRidge().partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    agrees(model, new_rows)


def test_missing_views_add_nothing(rows, new_rows, agrees, tmp_path):
    X, Y = rows
    X, new = X / X.std(axis=0), new_rows / X.std(axis=0)
    X[:5, 2:] = np.nan
    new[1, 2:] = np.nan
    new[2, :2] = np.nan
    views = {"first": [0, 1], "second": [2, 3]}
    model = MultiViewKernelRidge(views, solver_params={"max_iter": 50, "tol": 0.1}).fit(X, Y)
    agrees(model, new)
    new[3, 2] = np.nan
    export_onnx(model, tmp_path / "model.onnx")
    assert np.isnan(run_onnx(tmp_path / "model.onnx", new)).any(axis=1).tolist() == [
        *[False] * 3,
        True,
        *[False] * 9,
    ]


def test_models_of_this_package_as_features(rows, new_rows, agrees):
    inner = make_pipeline(StandardScaler(), OutputKernelRidge(alpha=0.1, kernel="rbf", gamma=0.1))
    agrees(EntangledKernelRidge(RegressorFeatures(inner, cv=2, random_state=0)).fit(*rows), new_rows, 1e-7)


@pytest.mark.parametrize("transform", ["log", "log1p", {0: "log", 2: "log1p"}], ids=str)
def test_targets_learned_as_logarithms_come_in_their_own_units(rows, new_rows, agrees, transform):
    X, Y = rows
    Y = np.abs(Y) + 0.01
    agrees(EntangledKernelRidge(StandardScaler(), target_transform=transform).fit(X, Y), new_rows)
    # So small that log1p gives less than zero for some rows, which is cut off there.
    model = EntangledKernelRidge(StandardScaler(), target_transform=transform).fit(X, 1e-3 * Y)
    agrees(model, new_rows)


def test_models_that_cannot_be_exported_are_named(rows, tmp_path):
    X, Y = rows
    K = X @ X.T
    for model, reason in (
        (OutputKernelRidge(kernel="precomputed").fit(K, Y), "kernel='precomputed'"),
        (EntangledKernelRidge(target_transform=StandardScaler()).fit(X, Y), "transformed by StandardScaler"),
        (MultiViewKernelClassifier().fit(X, Y[:, 0] > 0.0), "no graph for .*MultiViewKernelClassifier"),
    ):
        with pytest.raises(ExportError, match=f"{type(model).__name__} cannot be exported to ONNX.*{reason}"):
            export_onnx(model, tmp_path / "model.onnx")
