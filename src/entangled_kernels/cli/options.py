"""Options of commands: one dataclass for each, whose fields are arguments and options."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

import typer

from ..files import TextFormat
from .errors import CommandError, check_choice
from .files import is_text

__all__ = [
    "FEATURES",
    "FitOptions",
    "NewRowsOptions",
    "Options",
    "ReadingOptions",
    "TrainingOptions",
    "argument",
    "comma_hint",
    "command_function",
    "command_line",
    "data_home_option",
    "jobs_option",
    "option",
    "seed_option",
    "split_names",
]

FEATURES = ("auto", "linear", "rbf", "fourier")
MISSING_INPUTS = ("error", "drop", "median")
DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}
OUTPUT_FORMATS = {"comma": (",", "."), "semicolon": (";", ","), "tab": ("\t", ".")}
# Options that do not change the result, which a repeated command does without.
NOT_REPEATED = ("force", "json", "jobs")
# Options that many commands share; the help lists them last.
LISTED_LAST = ("jobs", "dask", "force", "json")


def argument(metavar: str, help: str) -> Any:
    """A field of an options class for a required argument."""
    return field(metadata={"kind": typer.Argument, "metavar": metavar, "help": help})


def option(help: str, *flags: str, default: Any = MISSING, **settings: Any) -> Any:
    """A field of an options class for the option of its name; required unless it has a default.

    ``flags`` are further names of the option, ``settings`` those of `typer.Option`.
    """
    about = {"kind": typer.Option, "flags": flags, "help": help}
    if default is MISSING:
        return field(metadata={**about, "show_default": False, **settings})
    return field(default=default, metadata={**about, **settings})


def seed_option() -> Any:
    """The field ``seed``."""
    return option("Seed of folds and random features.", default=0, min=0)


def jobs_option(default: int | None = None) -> Any:
    """The field ``jobs``."""

    def check(jobs: int | None) -> int | None:
        if jobs == 0:
            raise typer.BadParameter("must not be 0; 1 for one process, -1 for all")
        return jobs

    words = "Number of processes, 1 by default; -1 for one on each processor."
    return option(words, "-j", default=default, callback=check)


def max_memory_option() -> Any:
    """The field ``max_memory``."""
    words = "Memory: larger tables, folders and patterns are read in batches."
    return option(words, default=4096, metavar="MB", min=16)


def data_home_option() -> Any:
    """The field ``data_home``."""
    words = "Folder of the tables; else ENTANGLED_KERNELS_DATA, else a cache."
    return option(words, default=None, metavar="DIR")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Arguments and options of a command, as they were typed; all commands have these two."""

    force: bool = option("Replace existing files.", default=False)
    json: bool = option("Print the result as JSON.", default=False)

    def command(self, **changes: Any) -> str:
        """The command, to be copied into a shell, with some options changed."""
        changed = replace(self, **changes)
        name = type(changed).__name__.removesuffix("Options").lower()
        arguments, options = [], list[tuple[str, Any]]()
        for item in _in_order(type(changed)):
            value = getattr(changed, item.name)
            if item.metadata["kind"] is typer.Argument:
                arguments.append(value)
            elif item.name not in NOT_REPEATED and value != item.default:
                options.append((_flag(item.name), value))
        return command_line(name, *arguments, options=options)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(Options):
    """How the text of a table is read, and what is done about missing inputs."""

    missing: str | None = option(
        "Missing inputs: raise an error, leave out the row, or use the median of the column.",
        default=None,
        metavar="|".join(MISSING_INPUTS),
        show_default="error",
    )
    delimiter: str | None = option(
        "What separates cells of CSV; by default , ; or tab, whichever the header has most of.",
        default=None,
        metavar="SIGN",
    )
    decimal: str | None = option(
        "Decimal sign of CSV, . or , (found where the numbers show it).",
        default=None,
        metavar="SIGN",
    )
    encoding: str | None = option(
        "Encoding of CSV, such as cp1252.", default=None, metavar="NAME", show_default="UTF-8"
    )

    def text_format(self) -> TextFormat:
        """The format of text tables that the options ask for; raises if there is no such format."""
        if self.missing is not None:
            check_choice("--missing", self.missing, MISSING_INPUTS)
        delimiter = DELIMITERS.get(self.delimiter or "", self.delimiter)
        try:
            return TextFormat(delimiter, self.decimal, self.encoding)
        except ValueError as error:
            raise CommandError(f"--{error}") from error


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(ReadingOptions):
    """The table to learn from, its targets and inputs, and which rows are held out together."""

    table: Path = argument("TABLE", "CSV, TSV, Parquet, Arrow or NPZ file; - for stdin.")
    targets: list[str] = option(
        "Columns to predict, separated by commas; a name with a comma in double quotes; 'torque *' "
        "stands for all that match.",
        "-t",
        metavar="A,B",
    )
    inputs: list[str] | None = option(
        "Columns to predict from; all others by default.", "-i", default=None, metavar="C,D"
    )
    exclude: list[str] | None = option(
        "Columns to leave out, such as a date.", "-x", default=None, metavar="E,F"
    )
    encode: bool = option("Turn text among the inputs into columns of 0 and 1.", default=False)
    groups: str | None = option(
        "Column whose rows with the same value, such as a patient, are held out together; it is no "
        "input.",
        default=None,
        metavar="COLUMN",
    )
    time_ordered: bool = option(
        "Rows are in the order of time: held-out rows are later than training rows.", default=False
    )
    time_column: str | None = option(
        "As --time-ordered, in the order of this column of numbers or dates; it is no input.",
        default=None,
        metavar="COLUMN",
    )
    seed: int = seed_option()
    jobs: int | None = jobs_option()
    dask: str | None = option(
        "Dask scheduler to work on, such as tcp://10.0.0.1:8786.", default=None, metavar="ADDRESS"
    )

    def check(self) -> TextFormat:
        """The format of the table; raises if two options contradict each other."""
        if self.groups is not None and (self.time_ordered or self.time_column is not None):
            given = "--time-ordered" if self.time_column is None else "--time-column"
            raise CommandError(f"--groups and {given} hold out different rows; give one of them")
        return self.text_format()

    def with_columns(self, *, encode: Sequence[str], exclude: Sequence[str]) -> Self:
        """The same options with text encoded, if there are columns to encode, and columns excluded."""
        out = [*(self.exclude or []), _joined(exclude)] if exclude else self.exclude
        return replace(self, encode=self.encode or bool(encode), exclude=out)


@dataclass(frozen=True, kw_only=True)
class FitOptions(TrainingOptions):
    """Options of ``fit``."""

    out: Path = option("Model file to write.", "-o", metavar="MODEL")
    features: str = option(
        "Features of the inputs that the kernel works on.",
        "-f",
        default="auto",
        metavar="|".join(FEATURES),
    )
    target_transform: list[str] | None = option(
        "Learn positive targets as logarithms; predictions and intervals are in the units of the "
        "table, and never negative.",
        default=None,
        metavar="log|log1p|TARGET=log",
    )
    folds: int = option("Folds of the cross-validation.", default=5, min=2)
    no_baselines: bool = option(
        "Do not compare with ridge, PLS and extra trees on the same folds.", default=False
    )
    checkpoint: Path | None = option(
        "Read in batches and save the state there; the same command goes on from it.",
        default=None,
        metavar="FILE",
    )
    max_memory: float = max_memory_option()


@dataclass(frozen=True, kw_only=True)
class NewRowsOptions(ReadingOptions):
    """The model, the table of new rows, and how its result is written."""

    model: Path = argument("MODEL", "Model file that fit wrote.")
    table: Path = argument("TABLE", "CSV, TSV, Parquet, Arrow or NPZ file; - for stdin.")
    keep: list[str] | None = option(
        "Columns of the table to copy in front, such as an id.", default=None, metavar="A,B"
    )
    output_format: str | None = option(
        "What separates cells of CSV output; semicolon also writes decimal commas.",
        default=None,
        metavar="|".join(OUTPUT_FORMATS),
        show_default="as the input",
    )
    max_memory: float = max_memory_option()

    def check(self) -> TextFormat:
        """The format of the table; raises if an option has no such value."""
        if self.output_format is not None:
            check_choice("--output-format", self.output_format, OUTPUT_FORMATS)
        return self.text_format()

    def written_format(self, table: Path, reading: TextFormat) -> TextFormat:
        """The format of CSV to write: as asked for, else that of the table if it is text."""
        if self.output_format is not None:
            return TextFormat(*OUTPUT_FORMATS[self.output_format])
        return reading.of(table) if is_text(table) else TextFormat()


def _in_order(options: type[Options]) -> list[Any]:
    """Fields in the order of the help: required, then of this command, then of many commands."""
    depths = {
        name: depth
        for depth, base in enumerate(options.__mro__)
        for name in vars(base).get("__annotations__", {})
    }

    def position(item: Any) -> tuple[Any, ...]:
        if item.default is MISSING:
            return False, False, -depths[item.name]
        return True, item.name in LISTED_LAST, depths[item.name]

    return sorted(fields(options), key=position)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def command_function(run: Callable[[Any], None], options: type[Options]) -> Callable[..., None]:
    """A function for typer, whose parameters are the fields of the options."""
    hints = get_type_hints(options)

    def function(**values: Any) -> None:
        run(options(**values))

    parameters = []
    for item in _in_order(options):
        settings = dict(item.metadata)
        kind, flags = settings.pop("kind"), settings.pop("flags", None)
        about = kind(*([] if flags is None else [_flag(item.name), *flags]), **settings)
        default = Parameter.empty if item.default is MISSING else item.default
        annotation: Any = Annotated[hints[item.name], about]
        parameters.append(
            Parameter(item.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in parameters}
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
        f"./{value}" if str(value).startswith("-") and str(value) != "-" else str(value)
        for value in arguments
    ]
    for name, value in options:
        if value is True:
            words.append(name)
        elif isinstance(value, list | tuple):
            words += [word for item in value for word in (name, str(item))]
        elif value is not None and value is not False:
            words += [name, f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)


def _joined(values: Sequence[str]) -> str:
    """Names with commas, in double quotes where they hold one; `split_names` reads them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue()


def comma_hint(names: Sequence[str], have: Sequence[str], suffix: str = "") -> str:
    r"""Advice on names that were split at a comma of a name; empty if no name explains them.

    The suffix is what the option needs after the name.

    Examples
    --------
    >>> comma_hint(["flow", "l/s"], ["flow, l/s", "load"])
    '; a name that holds a comma goes in double quotes: \'"flow, l/s"\''
    >>> comma_hint(["flow"], ["flow, l/s", "load"])
    ''
    """
    for name in have:
        parts = [part.strip() for part in name.split(",")]
        if len(parts) > 1 and all(part in names for part in parts if part):
            return (
                f"; a name that holds a comma goes in double quotes: '{_joined([name + suffix])}'"
            )
    return ""


def split_names(values: Sequence[str]) -> list[str]:
    """Names from a repeated option: separated by commas, in quotes where they hold one.

    Examples
    --------
    >>> split_names(["a,net load", '"x, y"'])
    ['a', 'net load', 'x, y']
    """
    names = [name.strip() for row in csv.reader(values, skipinitialspace=True) for name in row]
    return [name for name in names if name]
