"""Pictures of kernels: each witness is in its class and in no smaller one, by the library's own tests."""

import numpy as np
import pytest

from entangled_kernels.experiments import EXPERIMENTS
from entangled_kernels.experiments.illustrations import examine, witnesses


def test_runs_is_kept_and_is_drawn(run_and_draw):
    results, figures = run_and_draw("kernels", "fair")
    assert figures == ["kernels-separable", "kernels-blocks", "kernels-classes"]
    (table,) = EXPERIMENTS["kernels"].tables(results)
    assert [row[0] for row in table.rows] == list(witnesses())
    K, T, G = (results.arrays[name] for name in ("scalar", "output", "separable"))
    np.testing.assert_allclose(G, np.kron(K, T))


@pytest.mark.parametrize(
    ("name", "psd", "separable", "entangled"),
    [
        ("separable", True, True, False),
        ("sum of separable", True, False, False),
        ("transformable", True, False, True),
        ("entangled", True, False, True),
        ("partial trace", False, False, None),
    ],
)
def test_witnesses(name, psd, separable, entangled):
    found = examine(witnesses()[name])
    assert found["psd"] is psd
    assert (found["schmidt_rank"] == 1) is separable
    assert found["entangled"] is entangled
