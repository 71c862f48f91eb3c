import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from entangled_kernels.cli.tables import Blanks
from entangled_kernels.cli.words import blanks_in_words

TARGETS = pd.DataFrame({"zinc": [1.0, None, None, 4.0], "lead": [1.0, 2.0, None, None], "tin": 0.5})


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_counts_do_not_depend_on_the_parts(parts):
    Y = TARGETS.assign(tin=[0.5, 0.5, None, 0.5])
    blanks = Blanks()
    for part in np.array_split(np.arange(4), parts):
        blanks.count(Y.iloc[part])
    assert blanks == Blanks({"zinc": 1, "lead": 1}, 4, 1)


def test_dask_tables_are_counted_alike():
    here, there = Blanks(), Blanks()
    here.count(TARGETS)
    there.count(dd.from_pandas(TARGETS, npartitions=2))
    assert here == there == Blanks({"zinc": 2, "lead": 2}, 4, 0)


def test_nothing_is_said_of_complete_targets():
    blanks = Blanks()
    blanks.count(TARGETS[:1])
    assert blanks.cells == {}
    assert blanks_in_words(blanks, 1) == []


def test_words():
    assert blanks_in_words(Blanks({"zinc": 1}, 4, 1), 4) == [
        "1 row has no target and is left out.",
        "1 target cell is blank: 1 of 'zinc'; each target is learned from the rows that have it.",
    ]
    many = Blanks({name: 10 * place for place, name in enumerate("abcdefg", start=1)}, 100, 2)
    assert blanks_in_words(many, 100) == [
        "2 rows have no target and are left out.",
        "280 target cells are blank: 70 of 'g', 60 of 'f', 50 of 'e', 40 of 'd', 30 of 'c' and more "
        "of 2 targets; each target is learned from the rows that have it.",
    ]


def test_rows_before_a_checkpoint_are_not_counted():
    (said,) = blanks_in_words(Blanks({"zinc": 3}, 50, 0), 200)
    assert said.startswith("3 target cells of the 50 rows read since the checkpoint are blank: 3 of 'zinc'")
