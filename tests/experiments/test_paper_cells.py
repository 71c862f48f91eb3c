"""The paper's figures as data: how many there are, and that the two tables of uWave agree where they meet."""

from entangled_kernels.experiments.agreement import CELLS


def test_every_figure_of_the_paper_is_there():
    means = {"sarcos": 12, "weather": 9, "concrete": 12, "uwave": 54}
    assert {name: len(cells) for name, cells in CELLS.items()} == means
    # Means and improvements.
    assert {
        name: sum(1 + (cell.ni is not None) for cell in cells) for name, cells in CELLS.items()
    } == means | {
        "sarcos": 24,
        "weather": 18,
        "concrete": 24,
    }
    assert {name: {cell.partitions for cell in cells} for name, cells in CELLS.items()} == {
        "sarcos": {10},
        "weather": {5},
        "concrete": {10},
        "uwave": {3},
    }


def test_no_setting_is_there_twice_in_a_table():
    for cells in CELLS.values():
        keys = [(cell.table, cell.method, *cell.keys.values()) for cell in cells]
        assert len(set(keys)) == len(keys)


def test_the_table_of_ranks_repeats_the_column_of_thirty_rows():
    over_n = {(c.method, *c.keys.values()): c for c in CELLS["uwave"] if c.table == "over n"}
    repeated = [c for c in CELLS["uwave"] if c.table == "over rank" and c.keys["rank"] == "100%"]
    assert len(repeated) == 6
    for cell in repeated:
        other = over_n[(cell.method, *cell.keys.values())]
        assert (cell.nmse, cell.deviation) == (other.nmse, other.deviation)
