import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.tree import DecisionTreeRegressor

from entangled_kernels import EntangledKernelRidge, ForestFeatures
from entangled_kernels.export.tree_ensembles import ensemble_attributes
from entangled_kernels.features.trees import Trees
from entangled_kernels.io import export_onnx, run_onnx


def test_attributes_describe_the_trees(rng):
    X, Y = rng.normal(size=(30, 3)), rng.normal(size=(30, 2))
    grown = ExtraTreesRegressor(4, random_state=0).fit(X, Y).estimators_
    trees = Trees.from_estimators(grown)
    values = np.vstack([tree.tree_.value[:, :, 0] for tree in grown])
    made = ensemble_attributes(trees, values)
    nodes = {
        (tree, node): place
        for place, (tree, node) in enumerate(zip(made["nodes_treeids"], made["nodes_nodeids"], strict=True))
    }
    assert len(nodes) == trees.n_nodes
    sums = np.zeros((30, 2))
    weights = made["target_weights_as_tensor"].reshape(-1, 2)  # (leaves, p)
    ends = list(zip(made["target_treeids"], made["target_nodeids"], strict=True))[::2]
    for row, cells in enumerate(X.astype(np.float32)):
        for tree in range(4):
            node = 0
            while made["nodes_modes"][place := nodes[tree, node]] == "BRANCH_LEQ":
                left = cells[made["nodes_featureids"][place]] <= made["nodes_values_as_tensor"][place]
                node = made["nodes_truenodeids" if left else "nodes_falsenodeids"][place]
            sums[row] += weights[ends.index((tree, node))] / 4
    wanted = np.mean([tree.predict(X) for tree in grown], axis=0)
    np.testing.assert_allclose(sums, wanted, rtol=1e-12)


def test_a_tree_without_a_split(rng, agrees):
    X = rng.normal(size=(10, 2))
    agrees(DecisionTreeRegressor(max_depth=1, min_samples_leaf=10).fit(X, X[:, 0]), X, 1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_the_features_refuse_give_nan(bad, rows, tmp_path):
    X, Y = rows
    model = EntangledKernelRidge(ForestFeatures(5, random_state=0)).fit(X, Y)
    export_onnx(model, tmp_path / "model.onnx")
    new = X.copy()
    new[0, 2] = bad
    found = run_onnx(tmp_path / "model.onnx", new)
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1:]).all()


def test_blanks_go_where_trees_of_scikit_learn_send_them(rows, agrees):
    X, Y = rows[0].copy(), rows[1]
    X[::3, 0] = np.nan
    agrees(DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, Y), X, 1e-6)
