import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline

from entangled_kernels.io import compare_onnx, export_onnx, run_onnx


@pytest.fixture
def file(tmp_path):
    """Write text or bytes to a file of that name."""

    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def rows(rng):
    """Columns of several units, one of them skewed, and targets that follow them."""
    X = rng.normal(size=(40, 4)) * [1.0, 10.0, 0.1, 5.0] + [0.0, 100.0, 3.0, -2.0]
    X[:, 1] = np.exp(0.5 * rng.normal(size=40)) * 10.0
    Y = np.column_stack(
        [np.sin(X[:, 0]) + X[:, 1] / 10.0, X[:, 2] ** 2 + X[:, 3], X[:, 0] * X[:, 3]]
    )
    return X, Y + 0.1 * rng.normal(size=Y.shape)


@pytest.fixture
def new_rows(rng, rows):
    """Rows near those of training, and one of these."""
    X, _ = rows
    near = X[rng.integers(len(X), size=12)] + 0.3 * X.std(axis=0) * rng.normal(size=(12, 4))
    return np.vstack([X[:1], near])


@pytest.fixture
def agrees(tmp_path):
    """Check that a file agrees with `predict`, to 1e-5 in float32 and ``exact`` in float64."""

    def check(model, X, exact=1e-9):
        path = tmp_path / "model.onnx"
        export_onnx(model, path)
        assert compare_onnx(model, path, X) < 1e-5
        export_onnx(model, path, dtype="float64")
        assert compare_onnx(model, path, X) < exact

    return check


@pytest.fixture
def same_features(tmp_path):
    """Check that a file computes what a transformer does, by a model that predicts features."""

    def check(step, X, exact=1e-10):
        wanted = step.transform(X)
        wanted = np.asarray(wanted.toarray() if hasattr(wanted, "toarray") else wanted, dtype=float)
        probe = LinearRegression()
        probe.coef_, probe.intercept_ = np.eye(wanted.shape[1]), np.zeros(wanted.shape[1])
        probe.n_features_in_ = wanted.shape[1]
        path = tmp_path / "features.onnx"
        export_onnx(Pipeline([("step", step), ("probe", probe)]), path, dtype="float64")
        # In a product with zeros NaN spreads over the row.
        wanted[np.isnan(wanted).any(axis=1)] = np.nan
        np.testing.assert_allclose(run_onnx(path, X), wanted, rtol=exact, atol=exact)

    return check
