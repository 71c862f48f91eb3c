"""The paper's figures as data: how many there are, and that the two tables of uWave agree where they meet."""

from entangled_kernels.experiments.agreement import CELLS, SHARED, as_records


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


def test_figures_are_where_the_paper_has_them():
    found = {(cell.method, cell.keys["n"]): cell for cell in CELLS["weather"]}
    cell = found[SHARED, 10]
    assert (cell.nmse, cell.deviation, cell.ni, cell.ours) == (0.722, 0.036, 0.107, (SHARED, "EKL", "ptrEKL"))
    last = CELLS["concrete"][-1]
    assert (last.method, last.keys, last.nmse, last.ni) == ("ptrEKL", {"n": 40}, 0.627, -0.130)


def test_improvements_are_near_those_of_the_means():
    """The paper averages improvements over partitions, which is not far from the improvement of the means."""
    for name in ("sarcos", "weather", "concrete"):
        reference = {cell.keys["n"]: cell.nmse for cell in CELLS[name] if cell.method == "KRR"}
        for cell in CELLS[name]:
            plain = reference[cell.keys["n"]]
            assert abs((plain - cell.nmse) / (plain * cell.nmse) ** 0.5 - cell.ni) < 0.04


def test_the_table_of_ranks_repeats_the_column_of_thirty_rows():
    over_n = {(c.method, *c.keys.values()): c for c in CELLS["uwave"] if c.table == "over n"}
    repeated = [c for c in CELLS["uwave"] if c.table == "over rank" and c.keys["rank"] == "100%"]
    assert len(repeated) == 6
    for cell in repeated:
        other = over_n[(cell.method, *cell.keys.values())]
        assert (cell.nmse, cell.deviation) == (other.nmse, other.deviation)


def test_as_records():
    records = as_records("sarcos")
    assert len(records) == 12
    assert {"method": SHARED, "n": 50, "nmse": 0.2381, "ni": 0.0139} in records
    assert len(as_records("uwave")) == 48
    assert as_records("simulated") == []
