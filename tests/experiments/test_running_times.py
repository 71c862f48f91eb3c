"""Running times: random kernels of all classes are solved and drawn, and sizes are the shares asked for."""

import numpy as np
import pytest

from entangled_kernels.experiments import EXPERIMENTS
from entangled_kernels.experiments.running_times import COMPLEXITY, random_kernels
from entangled_kernels.kernels import factorize


def test_runs_is_kept_and_is_drawn(run_and_draw):
    results, figures = run_and_draw("running-times", "paper")
    assert figures == [f"running-times-{verb}-{x}" for verb in ("train", "predict") for x in ("n", "p")]
    varied = {(record["task"], record["n"], record["p"]) for record in results.records}
    assert varied == {("over n", 4, 2), ("over n", 8, 2), ("over p", 4, 2), ("over p", 4, 3)}
    assert all(record["fit_seconds"] > 0.0 for record in results.records)
    assert all(record["predict_seconds"] > 0.0 for record in results.records)
    (table,) = EXPERIMENTS["running-times"].tables(results)
    assert [row[0] for row in table.rows] == list(results.meta["methods"])
    assert {row[1] for row in table.rows} == {orders[0] for orders in COMPLEXITY.values()}
    assert np.isfinite([row[2] for row in table.rows]).all()


@pytest.mark.parametrize(
    "name", ["unstructured", "scalar", "separable", "entangled 100%", "entangled 50%", "partial trace 75%"]
)
def test_systems_are_solved(name):
    rng = np.random.default_rng(0)
    train, test = random_kernels(8, 3, rng)[name]()
    R = rng.standard_normal((8, 3, 1))
    c = factorize(train)[0].solve(R, 1.0).reshape(24, 1)
    G = train.to_dense()
    np.testing.assert_allclose(G, G.T, atol=1e-12)
    np.testing.assert_allclose(G @ c + c, R.reshape(24, 1), atol=1e-8)
    np.testing.assert_allclose(test @ c, test.to_dense() @ c, atol=1e-10)


def test_features_and_operators_are_the_shares_asked_for():
    makers = random_kernels(8, 3, np.random.default_rng(0))
    for share, m, r in (("100%", 8, 24), ("75%", 6, 14), ("50%", 4, 6)):
        train, _ = makers[f"entangled {share}"]()
        assert (train.Phi.shape, train.Q.shape) == ((8, m), (m * 3, r))
        assert makers[f"partial trace {share}"]()[0].Phi.shape == (8, m)
