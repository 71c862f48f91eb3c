"""Explanations of fitted models: exact where they can be, in order where the truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

from entangled_kernels import (
    ColumnWidthFeatures,
    EntangledKernelRidge,
    EntangledKernelRidgeCV,
    EvidenceFeatures,
    ForestFeatures,
)
from entangled_kernels.io import load_model, save_model
from entangled_kernels.model import Explanation
from entangled_kernels.model.explanation import with_column

from reference.differences import central_differences

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)) * [1.0, 2.0, 0.5, 1.0]
COMMON = RNG.normal(size=120)
Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 1] * X[:, 2] - X[:, 0]])
Y += 0.4 * np.column_stack([COMMON, -COMMON]) + 0.2 * RNG.normal(size=Y.shape)


def slopes(model, rows, **options):
    return central_differences(lambda inputs: model.predict(inputs, **options), rows)


@pytest.mark.parametrize(
    "feature_map",
    [
        None,
        StandardScaler(),
        EvidenceFeatures(random_state=0),
        make_pipeline(StandardScaler(), EvidenceFeatures()),
    ],
    ids=["none", "scaler", "evidence", "pipeline"],
)
def test_effects_are_mean_slopes_of_predictions(feature_map):
    model = EntangledKernelRidge(feature_map).fit(X, Y)
    rows, explained = X[:15], model.explain(X[:15])
    expected = slopes(model, rows) * rows.std(axis=0)  # (n, p, d)
    assert explained.method == "gradient"
    np.testing.assert_allclose(explained.effect, expected.mean(axis=0).T, atol=1e-6)
    np.testing.assert_allclose(explained.size, np.sqrt((expected**2).mean(axis=0)).T, atol=1e-6)


def test_an_average_over_several_maps_is_explained_as_a_whole():
    maps = [None, EvidenceFeatures(random_state=0)]
    model = EntangledKernelRidgeCV(maps, cv=3, random_state=0).fit(X, Y)
    expected = slopes(model, X[:10]) * X[:10].std(axis=0)
    np.testing.assert_allclose(model.explain(X[:10]).effect, expected.mean(axis=0).T, atol=1e-6)


def test_noise_of_an_average_is_that_of_all_its_maps():
    """The best map does not see three of the inputs, and the other one follows noise in them."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 4))
    first = ColumnTransformer([("first", StandardScaler(), [0])])
    model = EntangledKernelRidgeCV([first, StandardScaler()], cv=3, random_state=0)
    model.fit(rows, rows[:, :1] + rng.normal(size=(60, 2)))
    explained = model.explain(rows)
    assert isinstance(model.feature_map_, FeatureUnion)
    assert model.best_params_["feature_map"] == 0
    assert (explained.importance[1:] > 0.0).all()
    assert explained.important.tolist() == [True, False, False, False]


def test_given_explains_the_conditional_prediction():
    model = EntangledKernelRidge(EvidenceFeatures(random_state=0)).fit(X, Y)
    measured = np.full((12, 2), np.nan)
    measured[:8, 0] = Y[:8, 0]
    explained = model.explain(X[:12], given=measured)
    expected = slopes(model, X[:12], given=measured) * X[:12].std(axis=0)
    assert explained.inputs == ["x0", "x1", "x2", "x3", "output0 (measured)"]
    np.testing.assert_allclose(explained.effect[:4, 1], expected[:, 1].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(explained.effect[:4, 0], expected[8:, 0].mean(axis=0), atol=1e-6)
    # The targets share errors of opposite sign.
    assert explained.effect[4, 1] < -explained.noise[4, 1]


def test_permutations_and_gradients_agree_on_linear_models():
    model = EntangledKernelRidge(StandardScaler()).fit(X, Y)
    exact, permuted = model.explain(X), model.explain(X, method="permutation")
    np.testing.assert_allclose(permuted.effect, exact.effect, rtol=1e-9)
    np.testing.assert_allclose(permuted.size, exact.size, rtol=0.2)
    np.testing.assert_allclose(permuted.noise, exact.noise, rtol=0.2)


@pytest.mark.parametrize(
    "feature_map",
    [
        StandardScaler(),
        ColumnWidthFeatures(random_state=0),
        ForestFeatures(n_estimators=30, random_state=0),
    ],
    ids=["linear", "widths", "forest"],
)
def test_irrelevant_inputs_come_last_and_are_not_called_important(feature_map):
    rows = np.random.default_rng(1).normal(size=(150, 5))
    targets = np.column_stack([rows[:, 0] + rows[:, 1], rows[:, 0] - 0.7 * rows[:, 2]])
    targets += 0.3 * np.random.default_rng(2).normal(size=targets.shape)
    explained = (
        EntangledKernelRidgeCV(feature_map, cv=3, random_state=0).fit(rows, targets).explain(rows)
    )
    assert set(explained.order[-2:]) == {3, 4}
    assert explained.important.tolist() == [True, True, True, False, False]
    assert explained.effect[2, 1] < 0.0 < explained.effect[0, 1]


def test_noise_targets_have_few_important_inputs():
    rng = np.random.default_rng(3)
    called = 0
    for _ in range(10):
        rows, noise = rng.normal(size=(60, 4)), rng.normal(size=(60, 2))
        model = EntangledKernelRidge(StandardScaler(), alpha=10.0).fit(rows, noise)
        called += model.explain(rows).important.sum()
    # Two of forty are expected.
    assert called <= 6


def test_texts_have_a_size_and_no_sign():
    pd = pytest.importorskip("pandas")
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    town = np.array(["Ulm", "Aix", "Ems"])[np.arange(120) % 3]
    frame = pd.DataFrame({"town": town, "a": X[:, 0], "b": X[:, 1]})
    target = pd.DataFrame({"load": X[:, 0] + 2.0 * (town == "Ulm")})
    encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    explained = EntangledKernelRidge(encoder, alpha=0.1).fit(frame, target).explain(frame)
    assert (explained.method, explained.inputs, explained.targets) == (
        "permutation",
        ["town", "a", "b"],
        ["load"],
    )
    assert np.isnan(explained.effect[0, 0])
    assert explained.important.tolist() == [True, True, False]


def test_polars_names_streams_and_files_give_the_same(tmp_path):
    pl = pytest.importorskip("polars")
    frame, targets = pl.DataFrame(X, ["a", "b", "c", "d"]), pl.DataFrame(Y, ["y", "z"])
    whole = EntangledKernelRidge().fit(frame, targets)
    parts = EntangledKernelRidge()
    for start in range(0, 120, 40):
        parts.partial_fit(frame[start : start + 40], targets[start : start + 40])
    save_model(whole, tmp_path / "one.model")
    expected = whole.explain(frame)
    assert (expected.inputs, expected.targets) == (["a", "b", "c", "d"], ["y", "z"])
    for model in (parts, load_model(tmp_path / "one.model")):
        explained = model.explain(frame)
        np.testing.assert_allclose(explained.effect, expected.effect, rtol=1e-7, atol=1e-12)
        # Axes of the same problem may point the other way, and so do the draws of noise.
        np.testing.assert_allclose(explained.noise, expected.noise, rtol=0.3)


def test_what_cannot_be_explained_is_told():
    model = EntangledKernelRidge(ForestFeatures(n_estimators=3, random_state=0)).fit(X, Y)
    with pytest.raises(ValueError, match="at least 2 rows"):
        model.explain(X[:1])
    with pytest.raises(ValueError, match="needs a feature map with gradients"):
        model.explain(X, method="gradient")
    with pytest.raises(ValueError, match="method must be one of"):
        model.explain(X, method="shap")
    with pytest.raises(ValueError, match="features"):
        model.explain(X[:, :3])


def test_a_measured_target_changes_the_others_by_its_effect():
    model, measured = EntangledKernelRidge().fit(X, Y), np.full(Y.shape, np.nan)
    measured[:, 0] = Y[:, 0]
    explained = model.explain(X, given=measured)
    more = measured + np.array([Y[:, 0].std(), 0.0])
    change = (model.predict(X, given=more) - model.predict(X, given=measured))[:, 1]
    np.testing.assert_allclose(explained.effect[4, 1], change, rtol=1e-9)
    np.testing.assert_allclose(explained.size[4, 1], np.abs(explained.effect[4, 1]))
    assert np.isnan(explained.effect[4, 0])


def test_inputs_without_spread_or_use_have_no_effect():
    rows = np.column_stack([X[:, 0], np.ones(120), X[:, 1]])
    features = ColumnTransformer([("first", StandardScaler(), [0])])
    explained = EntangledKernelRidge(features).fit(rows, Y).explain(rows, method="permutation")
    assert (explained.size[0] > 0.0).all()
    assert not explained.size[1:].any()
    assert not explained.effect[1:].any()


def small():
    size = np.array([[0.1, 0.2], [3.0, np.nan], [1.0, 4.0]])
    return Explanation(
        ["a", "b", "c"],
        ["y", "z"],
        -size,
        size,
        np.ones((3, 2)),
        np.full(3, 0.4),
        np.array([2.0, 5.0]),
        "gradient",
    )


def test_importance_is_in_deviations_of_the_targets():
    explained = small()
    np.testing.assert_allclose(
        explained.importance, np.sqrt([(0.05**2 + 0.04**2) / 2, 1.5**2, (0.25 + 0.64) / 2])
    )
    assert explained.order.tolist() == [1, 2, 0]
    assert explained.important.tolist() == [False, True, True]
    assert explained.beyond_noise.tolist() == [[False, False], [True, False], [False, True]]


def test_targets_that_do_not_vary_are_left_out():
    explained = replace(small(), size=np.full((3, 2), 2.0), target_deviation=np.array([4.0, 0.0]))
    np.testing.assert_allclose(explained.importance, 0.5)
    assert not replace(explained, target_deviation=np.zeros(2)).importance.any()


def test_a_frame_has_a_row_for_every_pair():
    pytest.importorskip("pandas")
    frame = small().to_frame()
    assert frame.columns.tolist() == ["input", "target", "effect", "size", "noise"]
    assert frame["input"].tolist() == ["b", "b", "c", "c", "a", "a"]
    assert frame["effect"].tolist()[2:4] == [-1.0, -4.0]


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "sparse"])
def test_a_column_takes_the_values_of_other_rows(kind):
    values, order = np.arange(6.0).reshape(3, 2), np.array([2, 0, 1])
    table = values
    if kind in ("pandas", "polars"):
        table = pytest.importorskip(kind).DataFrame(
            values, ["a", "b"] if kind == "polars" else None
        )
    elif kind == "sparse":
        table = csr_array(values)
    moved = with_column(table, 1, order)
    moved = moved.toarray() if kind == "sparse" else np.asarray(moved)
    np.testing.assert_array_equal(moved, [[0.0, 5.0], [2.0, 1.0], [4.0, 3.0]])
    np.testing.assert_array_equal(
        table.toarray() if kind == "sparse" else np.asarray(table), values
    )
