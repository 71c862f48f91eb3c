"""Options of commands: one dataclass for every command, whose fields are its arguments and options."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

import typer

from ..files import TextFormat
from .errors import CommandError, check_choice

__all__ = [
    "FEATURES",
    "Cells",
    "DataHome",
    "Force",
    "Jobs",
    "Json",
    "Keep",
    "MaxMemory",
    "Model",
    "OneTable",
    "Options",
    "OutputFormat",
    "ReadingOptions",
    "Seed",
    "TrainingOptions",
    "check_output_format",
    "command_function",
    "command_line",
    "split_names",
]

FEATURES = ("auto", "linear", "rbf", "fourier")
MISSING_INPUTS = ("error", "drop", "median")
DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}
OUTPUT_FORMATS = {"comma": (",", "."), "semicolon": (";", ","), "tab": ("\t", ".")}
# These do not change the result.
NOT_REPEATED = ("force", "json", "jobs")


def _not_zero(jobs: int | None) -> int | None:
    if jobs == 0:
        raise typer.BadParameter("must not be 0; 1 for one process, -1 for all")
    return jobs


OneTable = Annotated[
    Path, typer.Argument(metavar="TABLE", help="CSV, TSV, Parquet, Arrow or NPZ file; - for stdin.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that fit wrote.")]
Cells = Annotated[
    bool, typer.Option("--encode", help="Turn text among the inputs into columns of 0 and 1.")
]
DataHome = Annotated[
    Path | None,
    typer.Option(
        "--data-home",
        metavar="DIR",
        help="Folder of the tables; else ENTANGLED_KERNELS_DATA, else a cache.",
    ),
]
MaxMemory = Annotated[
    float,
    typer.Option(
        "--max-memory",
        metavar="MB",
        min=16,
        help="Larger tables, folders and patterns are read in batches.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep", metavar="A,B", help="Columns of the table to copy in front, such as an id."
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="For folds and random features.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        help="Processes to work with, one if not given; -1 for all.",
        callback=_not_zero,
    ),
]
OutputFormat = Annotated[
    str | None,
    typer.Option(
        "--output-format",
        metavar="|".join(OUTPUT_FORMATS),
        help="What separates the cells of CSV output; semicolon has decimal commas.",
        show_default="as the input",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Arguments and options of a command, as they were typed."""

    def command(self, **changes: Any) -> str:
        """The command, to be copied into a shell, with some options changed."""
        own = replace(self, **changes)
        hints = get_type_hints(type(own), include_extras=True)
        name = type(own).__name__.removesuffix("Options").lower()
        arguments, options = [], list[tuple[str, Any]]()
        for field in _in_order(type(own)):
            value, about = getattr(own, field.name), hints[field.name].__metadata__[0]
            if isinstance(about, type(typer.Argument())):
                arguments.append(value)
            elif field.name not in NOT_REPEATED and value != field.default:
                options.append((about.default, value))
        return command_line(name, *arguments, options=options)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(Options):
    """How the text of a table is written, and what is done about missing inputs."""

    missing: Annotated[
        str | None,
        typer.Option(
            "--missing",
            metavar="|".join(MISSING_INPUTS),
            help="Missing inputs: an error, the row left out, or the median of the column.",
            show_default="error",
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter",
            metavar="SIGN",
            help="Between the cells of CSV; , ; or tab is found by itself.",
        ),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(
            "--decimal",
            metavar="SIGN",
            help="Of numbers in CSV, . or , (found by itself where sure).",
        ),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding", metavar="NAME", help="Of CSV, such as cp1252.", show_default="UTF-8"
        ),
    ] = None

    def text_format(self) -> TextFormat:
        """What was said about the text of the table; raises where that cannot be."""
        if self.missing is not None:
            check_choice("--missing", self.missing, MISSING_INPUTS)
        try:
            return TextFormat(
                DELIMITERS.get(self.delimiter or "", self.delimiter), self.decimal, self.encoding
            )
        except ValueError as error:
            raise CommandError(f"--{error}") from error


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(ReadingOptions):
    """The table to learn from: its targets and inputs, and which rows are held out together."""

    table: OneTable
    targets: Annotated[
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
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--inputs", "-i", metavar="C,D", help="Columns to predict from; all others by default."
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude", "-x", metavar="E,F", help="Columns that are no inputs, such as a date."
        ),
    ] = None
    encode: Cells = False
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            metavar="COLUMN",
            help="Rows with the same value there, such as a patient, are held out together; it is no input.",
        ),
    ] = None
    time_ordered: Annotated[
        bool,
        typer.Option(
            "--time-ordered",
            help="Rows are in the order of time: predict later ones from earlier ones.",
        ),
    ] = False
    time_column: Annotated[
        str | None,
        typer.Option(
            "--time-column",
            metavar="COLUMN",
            help="The same, in the order of this column of numbers or dates; it is no input.",
        ),
    ] = None
    seed: Seed = 0
    jobs: Jobs = None
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Dask scheduler to work on, such as tcp://10.0.0.1:8786.",
        ),
    ] = None

    def check(self) -> TextFormat:
        """The format of the table; raises where two options contradict each other."""
        if self.groups is not None and (self.time_ordered or self.time_column is not None):
            given = "--time-ordered" if self.time_column is None else "--time-column"
            raise CommandError(f"--groups and {given} hold out different rows; give one of them")
        return self.text_format()

    def with_columns(self, *, encode: Sequence[str], exclude: Sequence[str]) -> Self:
        """The same, with these columns of text encoded and those left out."""
        out = [*(self.exclude or []), _joined(exclude)] if exclude else self.exclude
        return replace(self, encode=self.encode or bool(encode), exclude=out)


def check_output_format(value: str | None) -> None:
    """Raise unless there is such a format."""
    if value is not None:
        check_choice("--output-format", value, OUTPUT_FORMATS)


def output_format(value: str | None, table: Path, reading: TextFormat) -> TextFormat:
    """How CSV is to be written: as asked for, or as the table that is read, if that is text."""
    from ..files import TEXT_KINDS, file_kind

    if value is not None:
        return TextFormat(*OUTPUT_FORMATS[value])
    if file_kind(table) in TEXT_KINDS and table.is_file():
        return reading.of(table)
    return TextFormat()


def _in_order(options: type[Options]) -> list[Any]:
    """Fields in the order of the help: needed ones, those of the command, those that commands share."""
    depths = {name: depth for depth, base in enumerate(options.__mro__) for name in _own(base)}
    common = ("jobs", "dask", "force", "json")

    def place(field: Any) -> tuple[Any, ...]:
        if field.default is MISSING:
            return False, False, -depths[field.name]
        return True, field.name in common, depths[field.name]

    return sorted(fields(options), key=place)


def _own(base: type) -> list[str]:
    return list(vars(base).get("__annotations__", {}))


def command_function(run: Callable[[Any], None], options: type[Options]) -> Callable[..., None]:
    """A function with the fields of the options for parameters, as typer needs it."""
    hints = get_type_hints(options, include_extras=True)

    def function(**values: Any) -> None:
        run(options(**values))

    parameters = [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in _in_order(options)
    ]
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {one.name: one.annotation for one in parameters}
    function.__doc__ = run.__doc__
    return function


def command_line(command: str, *arguments: Any, options: Sequence[tuple[str, Any]] = ()) -> str:
    """A command of this program, quoted for a shell.

    An option with True stands alone, one with a list is repeated, one with None or False is left
    out.

    Examples
    --------
    >>> options = [("--targets", ["a", '"b, c"']), ("--encode", True), ("--jobs", None)]
    >>> print(command_line("fit", "my table.csv", options=options))
    entangled-kernels fit 'my table.csv' --targets a --targets '"b, c"' --encode
    """
    words = ["entangled-kernels", command]
    # A name that begins with a dash would be taken for an option; a dash alone is standard input.
    words += [
        f"./{one}" if str(one).startswith("-") and str(one) != "-" else str(one)
        for one in arguments
    ]
    for name, value in options:
        if value is True:
            words.append(name)
        elif isinstance(value, list | tuple):
            words += [word for one in value for word in (name, str(one))]
        elif value is not None and value is not False:
            words += [name, f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)


def _joined(values: Sequence[str]) -> str:
    """Names with commas, in double quotes where they hold one; `split_names` reads them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue()


def split_names(values: Sequence[str]) -> list[str]:
    """Names from an option that may be repeated: separated by commas, in quotes where they hold one.

    Examples
    --------
    >>> split_names(["a,net load", '"x, y"'])
    ['a', 'net load', 'x, y']
    """
    names = [name.strip() for row in csv.reader(values, skipinitialspace=True) for name in row]
    return [name for name in names if name]
