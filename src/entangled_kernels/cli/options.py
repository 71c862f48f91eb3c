"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Dask",
    "DataHome",
    "Decimal",
    "Delimiter",
    "Encode",
    "Encoding",
    "Exclude",
    "Force",
    "Groups",
    "InputGroups",
    "Inputs",
    "Jobs",
    "Json",
    "Keep",
    "MaxMemory",
    "Missing",
    "Model",
    "OneTable",
    "Protocol",
    "Seed",
    "Targets",
    "TimeColumn",
    "TimeOrdered",
]

OneTable = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, Parquet, Arrow or NPZ file; - for stdin.",
        show_default=False,
    ),
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
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", "-x", metavar="E,F", help="Columns that are no inputs, such as a date."),
]
InputGroups = Annotated[
    list[str] | None,
    typer.Option(
        "--input-group",
        metavar="NAME=A,B",
        help="Inputs that get a kernel of their own, in methods with several; once for every group.",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        help="Rows with the same value there, such as a patient, are held out together; it is no input.",
    ),
]
TimeOrdered = Annotated[
    bool,
    typer.Option(
        "--time-ordered", help="Rows are in the order of time: later ones are predicted from earlier ones."
    ),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(
        "--time-column",
        metavar="COLUMN",
        help="The same, in the order of this column of numbers or dates; it is no input.",
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        "--missing",
        metavar="error|drop|median",
        help="Blank inputs: an error, the row left out, or the median of the column.",
        show_default="error",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter", metavar="SIGN", help="Between the cells of CSV; , ; or tab is found by itself."
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", metavar="SIGN", help="Of numbers in CSV, . or , (found by itself where sure)."),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="Of CSV, such as cp1252.", show_default="UTF-8"),
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
