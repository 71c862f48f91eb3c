import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import PolynomialFeatures

from entangled_kernels.estimators.kernel_parts import resolve_kernels


def names_and_columns(kernels, n_columns=4, names=None):
    return [
        (part.name, part.columns.tolist()) for part in resolve_kernels(kernels, n_columns, names)
    ]


def test_what_may_be_given():
    assert names_and_columns(None) == [("linear", [0, 1, 2, 3]), ("rbf", [0, 1, 2, 3])]
    assert names_and_columns({"a": [0, 2], "b": slice(3, None)}) == [("a", [0, 2]), ("b", [3])]
    assert names_and_columns(["rbf", RBF(), "rbf"]) == [
        ("rbf", [0, 1, 2, 3]),
        ("RBF", [0, 1, 2, 3]),
        ("rbf-2", [0, 1, 2, 3]),
    ]
    listed = [
        ("last", "rbf", -1),
        ("some", "linear", [True, False, True, False]),
        ("named", "rbf", ["w", "y"]),
    ]
    assert names_and_columns(listed, names=["w", "x", "y", "z"]) == [
        ("last", [3]),
        ("some", [0, 2]),
        ("named", [0, 2]),
    ]


def test_grams(rng):
    X, Z = rng.normal(size=(6, 4)), rng.normal(size=(3, 4))
    linear, gaussian, squares = (
        part.fit(X, X, None)
        for part in resolve_kernels(
            [("a", "linear", [0, 1]), ("b", RBF(2.0), [1, 2]), ("c", PolynomialFeatures(2), [3])],
            4,
            None,
        )
    )
    assert linear.is_features
    assert squares.is_features
    assert not gaussian.is_features
    np.testing.assert_array_equal(linear.part(X).matrix, X[:, :2])
    np.testing.assert_allclose(gaussian.part(X).matrix, rbf_kernel(X[:, 1:3], gamma=1 / 8))
    np.testing.assert_allclose(gaussian.gram(Z, X), rbf_kernel(Z[:, 1:3], X[:, 1:3], gamma=1 / 8))
    np.testing.assert_allclose(squares.features(Z)[:, 2], Z[:, 3] ** 2)


@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ([], ValueError, "at least one entry, got \\[\\]"),
        ("rbf", ValueError, "kernels must be a list of kernels"),
        ({"a": []}, ValueError, "group 'a' must have at least one column, got \\[\\]"),
        ({"a": [7]}, ValueError, "group 'a' must name columns from 0 to 3, got \\[7\\]"),
        ({"a": [0.5]}, ValueError, "group 'a' must name columns from 0 to 3"),
        ({"a": [0, 0]}, ValueError, "group 'a' names a column twice"),
        (
            {"a": ["x"]},
            ValueError,
            "group 'a' names columns that X does not have, \\['x'\\]; X has no column names",
        ),
        ([("a", "rbf")], ValueError, "kernels\\[0\\] must be \\(name, kernel, columns\\)"),
        (["rbff"], ValueError, "kernel='rbff' is not a scalar kernel"),
        ([3], TypeError, "kernel must be a name"),
    ],
)
def test_bad_kernels(kernels, error, message):
    with pytest.raises(error, match=message):
        resolve_kernels(kernels, 4, None)
