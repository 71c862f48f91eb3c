"""The application: its commands, and one place where errors become sentences and exit codes."""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from .options import command_function
from .process import discard_output, exit_at_interrupt, flush_output

__all__ = ["COMMANDS", "app"]

# The first sentence of each command's help. The module of a command has a function with its name and
# the dataclass of its options. It is imported when the command is called, and imports scikit-learn
# only after it has checked its arguments.
COMMANDS = {
    "demo": "Measure some targets and predict the others, with a page.",
    "fit": "Fit a model to a table and save it.",
    "predict": "Predict the targets for every row of a table.",
    "plan": "Suggest what to measure next for every row of a table.",
    "inspect": "Show what a model is, its errors, and which inputs matter.",
    "compare": "Compare methods on a table.",
    "export": "Write a model as an ONNX file, which predicts without Python.",
    "reproduce": "Run an experiment of the paper again.",
    "datasets": "List the tables of the paper, or write a sample table.",
}
MODULES = {"plan": "predict", "demo": "paper", "reproduce": "paper", "datasets": "paper"}
# What typer raises for wrong options, and the base class of all errors that it shows itself.
USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
SHOWN_ERROR: Any = typer.BadParameter.__mro__[2]

EPILOG = (
    "Exit codes: 0 done, 1 unexpected error, 2 wrong usage or no such file, 3 a table that cannot "
    "be used, 4 a model file that cannot be used, 5 a file that cannot be written, 6 data or a "
    "package missing, 130 interrupted."
)


class Commands(TyperGroup):
    """Runs a command, shows warnings as notes, and errors as one sentence with an exit code."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # By name, for the help and for suggestions; None until it is imported.
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, imported when it is first asked for; None if unknown."""
        if cmd_name in COMMANDS and self.commands[cmd_name] is None:
            with exit_at_interrupt():
                module = import_module(f"..commands.{MODULES.get(cmd_name, cmd_name)}", __name__)
            options = getattr(module, f"{cmd_name.capitalize()}Options")
            function = command_function(getattr(module, cmd_name), options)
            alone = typer.Typer(
                add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
            )
            alone.command(cmd_name)(function)
            self.commands[cmd_name] = typer.main.get_command(alone)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write names and sentences, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *args: Any, **settings: Any) -> NoReturn:
        """Run the command and end the process with its exit code."""
        settings["standalone_mode"] = False
        try:
            code = super().main(*args, **settings)
        except SHOWN_ERROR as error:
            _show(error)
            code = error.exit_code
        flush_output()
        sys.exit(code or 0)

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the options that stand before a command."""
        with _closed_pipes():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with warnings.catch_warnings(), _closed_pipes():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _note_once()
            try:
                return super().invoke(ctx)
            except (typer.Exit, typer.Abort, SHOWN_ERROR):
                raise
            except (Exception, KeyboardInterrupt) as error:
                if getattr(error, "errno", None) == errno.EPIPE:
                    raise
                raise typer.Exit(_explain(error, ctx.params["debug"])) from error


@contextmanager
def _closed_pipes() -> Iterator[None]:
    """End the command without an error when its reader has closed the pipe."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
        discard_output()
        raise typer.Exit(0) from error


def _explain(error: BaseException, debug: bool) -> int:
    from .errors import explain
    from .screen import say_error

    if debug:
        import traceback

        from ..plotting.cells import visible

        print(visible(traceback.format_exc(), keep="\n"), file=sys.stderr)
    code, sentence = explain(error)
    say_error(sentence)
    return code


def _show(error: Any) -> None:
    """Show a line of usage, and the error in the words of typer."""
    from ..plotting.cells import visible
    from .screen import say_error

    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    hint = ""
    if isinstance(error, USAGE_ERROR) and error.ctx is not None:
        print(visible(" ".join(error.ctx.get_usage().split())), file=sys.stderr)
        hint = f" (see {error.ctx.command_path} --help)"
    say_error(f"{error.format_message().rstrip('.')}{hint}")


def _note_once() -> Any:
    """A function that shows a warning as a note, each sentence once."""
    from .screen import say_note

    shown = set[str]()

    def show(message: Any, *_: Any, **__: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            say_note(str(message))

    return show


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"entangled-kernels {version('entangled-kernels')}")
        raise typer.Exit


app = typer.Typer(
    name="entangled-kernels",
    cls=Commands,
    help="Predict several numbers at once from a table, with kernels that learn how they are related.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def common(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    """Take the options that stand before a command."""
