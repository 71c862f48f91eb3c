"""The application: its commands, and one place where errors become sentences and exit codes."""

from __future__ import annotations

import errno
import sys
import traceback
import warnings
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..report.visible import visible
from .commands.compare import compare
from .commands.datasets import datasets
from .commands.demo import demo
from .commands.fit import fit
from .commands.forecast import forecast
from .commands.inspect import inspect
from .commands.plan import plan
from .commands.predict import predict
from .commands.reproduce import reproduce
from .errors import explain
from .screen import say_error, say_note

__all__ = ["app"]

# What typer raises for wrong options; it shows these itself.
USAGE_ERROR: Any = typer.BadParameter.__mro__[2]

EPILOG = (
    "Exit codes: 0 done, 1 unexpected error, 2 wrong usage or no such file, 3 a table that cannot be used, "
    "4 a model file that cannot be used, 5 a file that cannot be written, 6 data or a package missing."
)


class Commands(TyperGroup):
    """Runs a command, shows warnings as notes, and errors as one sentence with an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_, **__: say_note(str(message))
            try:
                return super().invoke(ctx)
            except (typer.Exit, typer.Abort):
                raise
            except USAGE_ERROR as error:
                error.message = visible(error.message)
                raise
            except (Exception, KeyboardInterrupt) as error:
                if getattr(error, "errno", None) == errno.EPIPE:
                    raise
                if ctx.params["debug"]:
                    print(visible(traceback.format_exc(), keep="\n"), file=sys.stderr)
                code, sentence = explain(error)
                say_error(sentence)
                raise typer.Exit(code) from error


def _show_version(asked: bool) -> None:
    if asked:
        print(f"entangled-kernels {version('entangled-kernels')}")
        raise typer.Exit


app = typer.Typer(
    name="entangled-kernels",
    cls=Commands,
    help="Predict several numbers at once from a table, with kernels that learn how they hang together.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def common(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    """Take the options that stand before a command."""


for command in (demo, fit, predict, plan, forecast, compare, inspect, reproduce, datasets):
    app.command()(command)
