"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Dask",
    "DataHome",
    "Encode",
    "Force",
    "Inputs",
    "Jobs",
    "Json",
    "Keep",
    "MaxMemory",
    "Model",
    "OneTable",
    "Protocol",
    "Seed",
    "Targets",
]

OneTable = Annotated[
    Path, typer.Argument(metavar="TABLE", help="CSV, TSV, Parquet, Arrow or NPZ file.", show_default=False)
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file that fit wrote.", show_default=False)
]
Targets = Annotated[
    list[str],
    typer.Option(
        "--targets",
        "-t",
        metavar="A,B",
        help="Columns to predict, separated by commas; a name with a comma in double quotes; "
        "'torque *' stands for all that match.",
        show_default=False,
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--inputs", "-i", metavar="C,D", help="Columns to predict from; all others by default."),
]
Encode = Annotated[bool, typer.Option("--encode", help="Turn text among the inputs into columns of 0 and 1.")]
Protocol = Annotated[
    str,
    typer.Option("--protocol", metavar="fair|paper", help="Standardised and scale-free, or as in the paper."),
]
DataHome = Annotated[
    Path | None,
    typer.Option(
        "--data-home", metavar="DIR", help="Folder of the tables; else ENTANGLED_KERNELS_DATA, else a cache."
    ),
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="Dask scheduler to work on, such as tcp://10.0.0.1:8786."),
]
MaxMemory = Annotated[
    float,
    typer.Option(
        "--max-memory", metavar="MB", min=16, help="Larger tables, folders and patterns are read in batches."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="A,B", help="Columns of the table to copy in front, such as an id."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="For folds and random features.")]


def _not_zero(jobs: int | None) -> int | None:
    if jobs == 0:
        raise typer.BadParameter("must not be 0; 1 for one process, -1 for all")
    return jobs


Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", help="Processes to work with; -1 for all.", show_default="one", callback=_not_zero
    ),
]
