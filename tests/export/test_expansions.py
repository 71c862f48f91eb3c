import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, IncrementalPCA, KernelPCA, TruncatedSVD
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.export.expansions import TRANSFORMERS
from entangled_kernels.io import ExportError, export_onnx

STEPS = [
    PCA(2),
    PCA(whiten=True),
    IncrementalPCA(2),
    TruncatedSVD(2),
    PLSRegression(2),
    PolynomialFeatures(3),
    PolynomialFeatures(2, interaction_only=True, include_bias=False),
    PolynomialFeatures(0),
    Nystroem(n_components=15, random_state=0),
    Nystroem("poly", degree=2, n_components=15, random_state=0),
    RBFSampler(gamma=0.3, n_components=15, random_state=0),
    KernelPCA(3, kernel="rbf", gamma=0.2),
    KernelPCA(3),
]


def test_all_types_are_tried():
    assert {type(step) for step in STEPS} == set(TRANSFORMERS)


@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_columns_are_those_of_scikit_learn(step, rows, new_rows, same_features):
    step = make_pipeline(StandardScaler(), step).fit(*rows)
    same_features(step, new_rows, 1e-9)


def test_a_kernel_that_is_a_function_is_named(rows, tmp_path):
    model = EntangledKernelRidge(Nystroem(lambda x, z: float(x @ z), n_components=5, random_state=0)).fit(
        *rows
    )
    with pytest.raises(ExportError, match=r"\(Nystroem\) cannot be exported.*kernel="):
        export_onnx(model, tmp_path / "model.onnx")


def test_polynomials_of_one_column(rng, same_features):
    X = rng.normal(size=(10, 1))
    same_features(PolynomialFeatures(4).fit(X), np.append(X, [[0.0]], axis=0))
