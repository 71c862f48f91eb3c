import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidge,
    EvidenceFeatures,
    ForestFeatures,
    GaussianFeatures,
    OperatorFourierFeatures,
    RegressorFeatures,
    TargetProcessFeatures,
)
from entangled_kernels.export.library_maps import TRANSFORMERS
from entangled_kernels.features import __all__ as names
from entangled_kernels.io import export_onnx, run_onnx

# Graphs have squared distances from inner products, with a rounding of about 1e-15 of rows of length 3. Its
# share in the distance itself, which the exponential kernel sees, is this over twice the distance: 1e-7 of a
# unit at most for rows 1e-8 apart, 1e-13 at a distance of 0.01, times coefficients of up to 1e4.
EXPONENTIAL = 2e-8
# Sums over trees are rounded to float32.
MAPS = {
    "Gaussian": (GaussianFeatures(random_state=0), 1e-9),
    "some rows": (GaussianFeatures(n_components=10, random_state=0), 1e-9),
    "Fourier": (GaussianFeatures(approximation="fourier", n_components=20, random_state=0), 1e-9),
    "evidence": (EvidenceFeatures(random_state=0), 1e-9),
    "warp": (EvidenceFeatures(warp=True, random_state=0), 1e-9),
    "own kernel": (EvidenceFeatures(RBF([1.0, 2.0, 1.0, 2.0]) + WhiteKernel(), random_state=0), 1e-9),
    "widths": (ColumnWidthFeatures(random_state=0), 1e-9),
    "warped widths": (ColumnWidthFeatures(warp=True, random_state=0), 1e-9),
    "limits": (EvidenceFeatures(reach=0.0, random_state=0), 1e-9),
    "limited powers": (ColumnWidthFeatures(warp=True, reach=0.2, random_state=0), 1e-9),
    "Gaussian widths": (ColumnWidthFeatures("gaussian", random_state=0), 1e-9),
    "exponential widths": (ColumnWidthFeatures("exponential", random_state=0), EXPONENTIAL),
    "processes": (TargetProcessFeatures(random_state=0), EXPONENTIAL),
    "limited processes": (TargetProcessFeatures(reach=0.2, random_state=0), EXPONENTIAL),
    "forest": (ForestFeatures(20, random_state=0), 1e-6),
    "leaves of 4": (ForestFeatures(20, min_samples_leaf=4, random_state=0), 1e-6),
    "forecasts": (ForestFeatures(20, n_components=10, random_state=0), 1e-6),
    "ridge": (RegressorFeatures(random_state=0), 1e-9),
    "PLS": (RegressorFeatures(PLSRegression(2), random_state=0), 1e-9),
    "trees": (RegressorFeatures(ExtraTreesRegressor(5, random_state=0), random_state=0), 1e-6),
    "operator": (OperatorFourierFeatures(n_frequencies=10, random_state=0), 1e-9),
}


def test_every_map_of_the_library_is_known():
    import entangled_kernels.features as room

    classes = {getattr(room, name) for name in names if isinstance(getattr(room, name), type)}
    assert {own for own in classes if hasattr(own, "transform")} <= set(TRANSFORMERS)


@pytest.mark.parametrize("name", MAPS)
def test_features_are_those_of_the_map(name, rows, new_rows, same_features):
    feature_map, exact = MAPS[name]
    same_features(feature_map.fit(*rows), new_rows, exact)


@pytest.mark.parametrize("name", MAPS)
def test_a_model_on_the_map_predicts_alike(name, rows, new_rows, agrees):
    feature_map, exact = MAPS[name]
    agrees(EntangledKernelRidge(feature_map, alpha=0.01).fit(*rows), new_rows, exact)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_predict_refuses_is_no_number_within_limits(value, rows, new_rows, tmp_path):
    model = EntangledKernelRidge(EvidenceFeatures(reach=0.5, random_state=0)).fit(*rows)
    odd = np.array(new_rows[:3])
    odd[1, 0] = value
    export_onnx(model, tmp_path / "model.onnx", dtype="float64")
    found = run_onnx(tmp_path / "model.onnx", odd)
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [False, True, False])


def test_a_small_ridge_keeps_its_digits(rows, new_rows, agrees):
    """Coefficients of rows are large where the ridge is small: kernel values of float32 would not do."""
    X, Y = rows
    model = EntangledKernelRidge(GaussianFeatures(width=3.0, random_state=0), alpha=1e-8, shrinkage=1.0)
    agrees(model.fit(X, Y), new_rows, 1e-6)


def test_thresholds_are_met_exactly(rng, agrees):
    """Rows that stand on the thresholds of trees, and one float32 beside them."""
    X = np.repeat(np.arange(20.0), 2)[:, None] * np.array([[1.0, 0.1]]) + 1e4
    model = EntangledKernelRidge(ForestFeatures(20, random_state=0), alpha=0.01).fit(
        X, rng.normal(size=(40, 2))
    )
    trees = model.feature_map_.trees_
    cuts = trees.threshold[np.isfinite(trees.threshold)][:200]
    on = model.feature_map_.mean_ + model.feature_map_.scale_ * cuts[:, None]
    beside = np.vstack([on, np.nextafter(on.astype(np.float32), np.float32(np.inf)), on + 0.5])
    agrees(model, beside, 1e-6)
