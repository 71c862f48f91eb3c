import warnings

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.cross_decomposition import PLSRegression
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVR
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from entangled_kernels import EntangledKernelRidge, RegressorFeatures
from entangled_kernels.export.sklearn_regressors import LINEAR, REGRESSORS
from entangled_kernels.io import ExportError, export_onnx

SEVERAL = [
    (PLSRegression(2), 1e-9),
    (DummyRegressor(), 1e-9),
    (KernelRidge(0.1), 1e-9),
    (KernelRidge(0.1, kernel="rbf", gamma=0.2), 1e-9),
    (GaussianProcessRegressor(RBF() + WhiteKernel(), optimizer=None, normalize_y=True), 1e-9),
    (GaussianProcessRegressor(RBF(2.0), alpha=0.1, optimizer=None), 1e-9),
    (DecisionTreeRegressor(max_depth=4, random_state=0), 1e-6),
    (ExtraTreeRegressor(random_state=0), 1e-6),
    (ExtraTreesRegressor(10, random_state=0), 1e-6),
    (RandomForestRegressor(10, random_state=0), 1e-6),
    (MLPRegressor(hidden_layer_sizes=[4, 3], max_iter=5, random_state=0), 1e-9),
    (MLPRegressor(hidden_layer_sizes=[4], activation="tanh", max_iter=5, random_state=0), 1e-9),
    (MLPRegressor(hidden_layer_sizes=[4], activation="logistic", max_iter=5, random_state=0), 1e-9),
    (MLPRegressor(hidden_layer_sizes=[4], activation="identity", max_iter=5, random_state=0), 1e-9),
]
ONE = [
    (GradientBoostingRegressor(n_estimators=10, random_state=0), 1e-6),
    (GradientBoostingRegressor(n_estimators=10, init="zero", random_state=0), 1e-6),
    (LinearSVR(random_state=0), 1e-9),
]


def test_all_types_are_tried():
    tried = {type(model) for model, _ in SEVERAL + ONE} | {getattr(linear_model, name) for name in LINEAR}
    assert tried == set(REGRESSORS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "exact"), SEVERAL, ids=repr)
def test_models_of_several_targets(model, exact, rows, new_rows, agrees):
    agrees(make_pipeline(StandardScaler(), model).fit(*rows), new_rows, exact)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "exact"), ONE, ids=repr)
def test_models_of_one_target(model, exact, rows, new_rows, agrees):
    agrees(make_pipeline(StandardScaler(), model).fit(rows[0], rows[1][:, 0]), new_rows, exact)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", LINEAR)
def test_linear_models(name, rows, new_rows, agrees):
    X, Y = rows
    model = getattr(linear_model, name)()
    targets = (
        Y if name.startswith("MultiTask") or name in ("LinearRegression", "Ridge", "RidgeCV") else Y[:, 0]
    )
    agrees(make_pipeline(StandardScaler(), model).fit(X, targets), new_rows)


def test_kernels_that_are_functions_are_named(rows, tmp_path):
    model = KernelRidge(kernel=lambda x, z: float(x @ z)).fit(*rows)
    with pytest.raises(ExportError, match=r"KernelRidge cannot be exported.*kernel="):
        export_onnx(model, tmp_path / "model.onnx")


def test_a_network_of_another_loss_is_named(rows, tmp_path):
    model = MLPRegressor(hidden_layer_sizes=[2], max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*rows)
    # What newer versions of scikit-learn set with loss="poisson".
    model.loss, model.out_activation_ = "poisson", "exp"
    with pytest.raises(ExportError, match="loss='poisson'; use loss='squared_error'"):
        export_onnx(model, tmp_path / "model.onnx")


def test_other_regressors_are_named(rows, tmp_path):
    X, Y = np.tile(rows[0], (2, 1)), np.tile(rows[1], (2, 1))
    boosting = HistGradientBoostingRegressor(max_iter=2, random_state=0)
    model = EntangledKernelRidge(RegressorFeatures(boosting, cv=2, random_state=0)).fit(X, Y)
    with pytest.raises(
        ExportError, match=r"estimators_\[0\] \(HistGradientBoostingRegressor\) cannot be exported"
    ):
        export_onnx(model, tmp_path / "model.onnx")
