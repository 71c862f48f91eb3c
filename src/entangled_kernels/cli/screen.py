"""What a command prints: tables, sentences or JSON on stdout, notes and progress on stderr."""

from __future__ import annotations

import json
import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from ..plotting.cells import visible
from .process import discard_output

__all__ = ["Screen", "say_error", "say_note"]

# Width of tables without a terminal, where lines are not folded.
WIDE = 10_000
# Seconds between two lines of progress without a terminal.
PAUSE = 5.0


def say_error(sentence: str) -> None:
    """One line on stderr."""
    _say_aside("error", sentence)


def say_note(sentence: str) -> None:
    """One line on stderr that the user should know."""
    _say_aside("note", sentence)


def _say_aside(kind: str, sentence: str) -> None:
    print(f"{kind}: {visible(' '.join(sentence.split()))}", file=sys.stderr, flush=True)


class Screen:
    """What a command prints: with ``as_json`` only `result` on stdout, with ``aside`` all on stderr."""

    def __init__(self, *, as_json: bool = False, aside: bool = False) -> None:
        self.as_json, self.aside = as_json, aside

    def say(self, sentence: str = "") -> None:
        """Print a line, except with ``as_json``."""
        if not self.as_json:
            self._print(visible(sentence))

    def points(self, heading: str, points: Iterable[str]) -> None:
        """Print sentences below a heading, except with ``as_json``."""
        self.say()
        self.say(heading)
        for point in points:
            self.say(f"  {point}")

    def _print(self, text: str) -> None:
        """Print a line; a closed pipe does not end the work."""
        try:
            print(text, file=sys.stderr if self.aside else sys.stdout)
        except BrokenPipeError:
            discard_output()

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str = ""
    ) -> None:
        """Print a table, except with ``as_json``; text to the left, numbers to the right."""
        if self.as_json:
            return
        if title:
            self._print(f"\n{visible(title)}")
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for j, name in enumerate(columns):
            numbers = all(not isinstance(row[j], str) for row in rows)
            table.add_column(visible(name), justify="right" if numbers else "left", overflow="fold")
        for row in rows:
            table.add_row(*(visible(_cell(value)) for value in row))
        # Names in cells are never read as markup.
        console = Console(markup=False, highlight=False, stderr=self.aside)
        console.width = console.width if console.is_terminal else WIDE
        with console.capture() as text:
            console.print(table)
        self._print(text.get().removesuffix("\n"))

    def result(self, values: dict[str, Any]) -> None:
        """Print the result as JSON, with ``as_json``."""
        if self.as_json:
            text = json.dumps(_plain(values), indent=1, ensure_ascii=False, allow_nan=False)
            self._print(visible(text, keep="\n"))

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show that work of unknown length goes on."""
        with self.progress() as report:
            report(0, None, what)
            yield

    @contextmanager
    def progress(self) -> Iterator[Callable[[int, int | None, str], None]]:
        """Show how far the work is: a bar on a terminal, else a line every few seconds.

        Gives a function that reports how much is done, the total, and the name of the work.
        """
        console = Console(stderr=True, markup=False, highlight=False)
        if not console.is_terminal:
            with _lines() as report:
                yield report
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=None)
            yield lambda done, total, what: bar.update(
                task, completed=done, total=total, description=what
            )


@contextmanager
def _lines() -> Iterator[Callable[[int, int | None, str], None]]:
    """Print what was reported last on stderr, a line every few seconds."""
    start, ended, last = monotonic(), threading.Event(), ["working"]

    def report(done: int, total: int | None, what: str) -> None:
        last[0] = what if total is None else f"{what}: {done:,} of {total:,}"

    def print_lines() -> None:
        while not ended.wait(PAUSE):
            line = f"{visible(last[0])} ({monotonic() - start:.0f} s)"
            print(line, file=sys.stderr, flush=True)

    thread = threading.Thread(target=print_lines, daemon=True)
    thread.start()
    try:
        yield report
    finally:
        ended.set()
        thread.join()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "-"
    return str(value)


def _plain(value: Any) -> Any:
    """Values that JSON has: Python numbers for those of NumPy, null for NaN and infinity."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
