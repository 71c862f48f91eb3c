import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from entangled_kernels.cli.tables import MissingTargets

TARGETS = pd.DataFrame({"zinc": [1.0, None, None, 4.0], "lead": [1.0, 2.0, None, None], "tin": 0.5})


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_counts_do_not_depend_on_the_parts(parts):
    Y = TARGETS.assign(tin=[0.5, 0.5, None, 0.5])
    blanks = MissingTargets()
    for part in np.array_split(np.arange(4), parts):
        blanks.count(Y.iloc[part])
    assert blanks == MissingTargets({"zinc": 1, "lead": 1}, 4, 1)


def test_dask_tables_are_counted_alike():
    here, there = MissingTargets(), MissingTargets()
    here.count(TARGETS)
    there.count(dd.from_pandas(TARGETS, npartitions=2))
    assert here == there == MissingTargets({"zinc": 2, "lead": 2}, 4, 0)
