import json

import numpy as np
import pandas as pd
import pytest

from entangled_kernels.cli.commands.predict import read_costs
from entangled_kernels.cli.errors import CommandError
from entangled_kernels.io import read_table, write_table

NAMES = ["inlet temp", "flow, l/s", "pressure"]
TARGETS = ["net load", "peak load (kW)"]


def test_the_plan_is_the_models(plant, model, run):
    plant[[*NAMES, "id"]].to_csv("new.csv", index=False)
    shown = run("plan plant.model new.csv --out plan.csv --keep id").stdout
    order, reduction = model.suggest_measurements(plant[NAMES])
    planned = read_table("plan.csv")
    assert list(planned.columns) == ["id", "measure_1", "reduction_1", "measure_2", "reduction_2"]
    np.testing.assert_array_equal(planned[["measure_1", "measure_2"]], order)
    np.testing.assert_allclose(planned[["reduction_1", "reduction_2"]], reduction)
    removes = f"which removes {reduction[0, 0]:.0%} of"
    assert f"All 40 rows: measure '{order[0, 0]}' first, {removes}" in shown
    assert "Wrote 40 rows to plan.csv." in shown
    assert reduction.sum(axis=1) == pytest.approx(1.0)


def test_measured_targets_need_not_be_measured_again(plant, model, run):
    plant.loc[:9, "net load"] = np.nan
    plant.loc[5:6, "peak load (kW)"] = np.nan
    plant.loc[20, "peak load (kW)"] = np.nan
    plant.to_csv("plant.csv", index=False)
    values = json.loads(run("plan plant.model plant.csv --out plan.parquet --json").stdout)
    planned = read_table("plan.parquet")
    assert (planned["measure_1"][10:] != "").sum() == 1
    assert planned["measure_1"][20] == "peak load (kW)"
    assert planned["reduction_1"][20] == pytest.approx(1.0)
    assert planned["reduction_1"][21:].isna().all()
    assert set(planned["measure_1"][:5]) == {"net load"}
    assert (planned["measure_2"] != "").sum() == 2
    assert (values["rows"], values["complete"]) == (40, 29)
    assert sum(step["rows"] for step in values["first"]) == 11
    assert values["columns"] == list(planned.columns)
    shown = run("plan plant.model plant.csv").stdout
    assert "29 rows have all targets measured." in shown
    assert "measure first" in shown


def test_costs_change_the_order(plant, model, run):
    plant[NAMES].to_csv("new.csv", index=False)
    for dear, cheap in (TARGETS, TARGETS[::-1]):
        shown = run(f"plan plant.model new.csv --cost '{dear}=1000' --json --most 1").stdout
        values = json.loads(shown)
        assert [(step["measure"], step["rows"]) for step in values["first"]] == [(cheap, 40)]
        assert (values["out"], values["columns"]) == (None, [])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_batches_are_planned_alike(plant, model, run, folder, kind):
    """Rows of the first file are complete: columns of text stay text where they are empty."""
    plant.loc[25:, "net load"] = np.nan
    (folder / "parts").mkdir()
    for number in range(2):
        write_table(plant[20 * number : 20 * number + 20], f"parts/{number}.parquet")
    write_table(plant, "all.parquet")
    run(f"plan plant.model all.parquet --out once.{kind}")
    run(f"plan plant.model parts --out parts.{kind}")
    pd.testing.assert_frame_equal(read_table(f"once.{kind}"), read_table(f"parts.{kind}"))


@pytest.mark.parametrize(
    ("cost", "sentence"),
    [
        ("net lod=3", "--cost: 'net lod' is no target of the model; is it 'net load'?"),
        ("x=3", "'x' is no target of the model; the model has 'net load' and 'peak load (kW)'"),
        ("net load", "--cost must be NAME=NUMBER with a positive number, such as zinc=5, got"),
        ("net load=0", "got 'net load=0'"),
        ("net load=inf", "got 'net load=inf'"),
        ("net load=1,net load=2", "--cost names 'net load' twice"),
    ],
)
def test_costs_that_make_no_sense(plant, model, run, cost, sentence):
    assert sentence in run(f"plan plant.model plant.csv --cost '{cost}'", code=2).stderr


def test_a_target_with_a_comma_needs_quotes_in_costs():
    targets = ["flow, l/s", "load"]
    with pytest.raises(CommandError, match="double quotes: '\"flow, l/s=NUMBER\"'"):
        read_costs(["flow, l/s=3"], targets)
    assert read_costs(['"flow, l/s=3",load=2'], targets) == {"flow, l/s": 3.0, "load": 2.0}
