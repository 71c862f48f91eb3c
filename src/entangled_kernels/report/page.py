"""A page built from top to bottom: sections, text, tables, figures, facts, commands, verdicts."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..storage import atomic_write
from .glossary import TERMS, used_terms
from .picture import embedded
from .table import Table
from .visible import escape

__all__ = ["Report"]

# The page may neither load nor run anything.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

# Two rings: linked, apart, and one alone.
RINGS = {
    "entangled": '<circle cx="11" cy="12" r="7"/><circle cx="21" cy="12" r="7"/>',
    "separable": '<circle cx="8" cy="12" r="6"/><circle cx="24" cy="12" r="6"/>',
    "plain": '<circle cx="16" cy="12" r="7"/>',
}


class Report:
    """A self-contained HTML page, without script and without network.

    What is added appears in the order of the calls. All text is escaped, and the same calls give the same
    page, byte for byte.

    Parameters
    ----------
    title : str
    lead : str, optional
        One sentence under the title.
    footer : str, optional
        A line at the end; nothing by default.

    Examples
    --------
    >>> from entangled_kernels.report import Report
    >>> page = Report("Concrete slump", lead="Three properties of concrete from its seven ingredients.")
    >>> page.section("Results")
    >>> page.table(["n", "KRR", "EKL"], [[12, 0.91, 0.88]], caption="nMSE, lower is better", best="min")
    >>> "0.880" in page.html()
    True
    """

    def __init__(self, title: str, lead: str = "", *, footer: str = "") -> None:
        if not title.strip():
            raise ValueError("title must not be empty")
        self.title, self.lead, self.footer = title, lead, footer
        self._parts: list[str] = []
        self._sections: dict[str, str] = {}
        self._numbers = {"Table": 0, "Figure": 0, "Code": 0}

    def section(self, heading: str) -> None:
        """Begin a section; what follows belongs to it."""
        if self._sections:
            self._parts.append("</section>")
        stem = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-") or "section"
        name, number = f"s-{stem}", 2
        while name in self._sections:
            name, number = f"s-{stem}-{number}", number + 1
        self._sections[name] = heading
        self._parts.append(f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape(heading)}</h2>')

    def text(self, text: str) -> None:
        """Add plain text; an empty line parts paragraphs."""
        for paragraph in re.split(r"\n\s*\n", text.strip()):
            self._parts.append(f"<p>{escape(paragraph.strip())}</p>")

    def points(self, points: Iterable[str]) -> None:
        """Add a list of points."""
        items = "\n".join(f"<li>{escape(point)}</li>" for point in points)
        self._parts.append(f"<ul>\n{items}\n</ul>")

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Add names with values, such as the settings of a run."""
        pairs = "\n".join(
            f"<div><dt>{escape(str(name).replace('_', ' '))}</dt><dd>{escape(_plain(value))}</dd></div>"
            for name, value in facts.items()
        )
        self._parts.append(f'<dl class="facts">\n{pairs}\n</dl>')

    def code(self, code: str) -> None:
        """Add commands or code to copy."""
        name = self._next("Code")
        self._parts.append(
            f'<pre role="region" aria-label="{name}" tabindex="0"><code>{escape(code.strip())}</code></pre>'
        )

    def verdict(self, text: str, kind: str = "plain") -> None:
        """Add what was found, in plain words.

        Parameters
        ----------
        text : str
            A short opening up to a colon is set in bold.
        kind : {"entangled", "separable", "plain"}
        """
        if kind not in RINGS:
            raise ValueError(f"kind must be one of {sorted(RINGS)}, got {kind!r}")
        opening, colon, rest = text.partition(":")
        words = escape(text)
        if colon and len(opening) <= 30:
            words = f"<strong>{escape(opening)}:</strong>{escape(rest)}"
        rings = f'<svg viewBox="0 0 32 24" width="32" height="24" aria-hidden="true">{RINGS[kind]}</svg>'
        self._parts.append(f'<div class="verdict {kind}">{rings}<p>{words}</p></div>')

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        caption: str,
        digits: int | Mapping[str, int] = 3,
        best: str | None = None,
        best_among: Sequence[str | int] | None = None,
        row_headers: int = 1,
        note: str = "",
        sure: Collection[tuple[int, str]] | None = None,
        marked: Collection[tuple[int, str]] = (),
    ) -> None:
        """Add a table.

        Parameters
        ----------
        columns : sequence of str
            Names with units.
        rows : sequence of sequences
            Cells are text, numbers, pairs (mean, spread), or None for nothing.
        caption : str
            What the table shows.
        digits : int or dict, default=3
            Digits after the point of all columns, or by name of the column (3 for others).
        best : {"min", "max"} or None
            Mark the least or the largest number of every row.
        best_among : sequence of str or int, optional
            Names or places of the columns that compete; by default all but row headers.
        row_headers : int, default=1
            So many leading columns say what a row is about.
        note : str, optional
            A line under the table.
        sure : collection of (row, column), optional
            Numbers and names of rows and columns that may be marked: those whose lead is no accident. All by
            default.
        marked : collection of (row, column), optional
            Cells that are marked in any case; the note says what for.
        """
        made = Table(columns, rows, digits, best, best_among, row_headers, sure, marked)
        self._parts.append(made.html(self._next("Table"), caption, note))

    def figure(self, figure: Any, *, caption: str, alt: str) -> None:
        """Add a figure.

        Parameters
        ----------
        figure : matplotlib Figure, PNG as bytes, or path of a PNG file
            A matplotlib figure becomes an SVG, or a PNG where that would be large.
        caption : str
        alt : str
            What there is to see, for those who cannot.
        """
        if not alt.strip():
            raise ValueError("alt must say what the figure shows, for readers who cannot see it")
        image, name = _image(figure, alt), self._next("Figure")
        self._parts.append(
            f'<figure>\n<div class="plate" role="region" aria-label="{name}" tabindex="0">{image}'
            f"</div>\n<figcaption><b>{name}.</b> {escape(caption)}</figcaption>\n</figure>"
        )

    def figures(self, figures: Sequence[tuple[Any, str]], *, caption: str) -> None:
        """Add small figures side by side, below each other where the window is narrow.

        Parameters
        ----------
        figures : sequence of pairs
            Each a figure as in `figure`, and what there is to see.
        caption : str
            Of all of them.
        """
        name = self._next("Figure")
        plates = [f'<div class="plate">{_image(figure, alt)}</div>' for figure, alt in figures]
        self._parts.append(
            f'<figure>\n<div class="row">\n{"".join(plates)}\n</div>\n'
            f"<figcaption><b>{name}.</b> {escape(caption)}</figcaption>\n</figure>"
        )

    @contextmanager
    def folded(self, summary: str) -> Iterator[None]:
        """Fold away what is added in a ``with`` block, to be opened by its summary.

        Terms that are used there and not before are explained there.
        """
        before, start = set(self._terms(self._parts)), len(self._parts)
        yield
        terms = [term for term in self._terms(self._parts[start:]) if term not in before]
        if terms:
            self.facts({term: TERMS[term] for term in terms})
        inner = "\n".join([f"<summary>{escape(summary)}</summary>", *self._parts[start:]])
        self._parts[start:] = [f"<details>\n{inner}\n</details>"]

    def glossary(self) -> None:
        """Add a section that explains the terms used so far, of those that `TERMS` has, but folded ones."""
        if terms := self._terms(part for part in self._parts if not part.startswith("<details>")):
            self.section("Words")
            self.facts({term: TERMS[term] for term in terms})

    def html(self) -> str:
        """The whole page as text."""
        style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
        body = "\n".join([*self._parts, "</section>"] if self._sections else self._parts)
        lead = f'\n<p class="lead">{escape(self.lead)}</p>' if self.lead else ""
        contents = self._contents()
        body_class = ' class="with-contents"' if contents else ""
        footer = f"\n<footer>\n<p>{escape(self.footer)}</p>\n</footer>" if self.footer else ""
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<title>{escape(self.title)}</title>\n<style>\n{style}</style>\n</head>\n"
            f"<body{body_class}>\n"
            '<a class="skip" href="#content">Skip to the content</a>\n'
            f"<header>\n<h1>{escape(self.title)}</h1>{lead}\n</header>\n"
            f'{contents}<main id="content" tabindex="-1">\n{body}\n</main>{footer}\n</body>\n</html>\n'
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all; its path."""
        with atomic_write(path) as file:
            file.write(self.html())
        return Path(path)

    def _terms(self, parts: Iterable[str]) -> list[str]:
        """Terms of the glossary in the title, the lead and some parts of the page."""
        said = " ".join([escape(self.title), escape(self.lead), *parts])
        return used_terms(unescape(re.sub(r"<[^>]*>", " ", said)))

    def _contents(self) -> str:
        """Links to the sections, where there are several."""
        if len(self._sections) < 3:
            return ""
        links = "\n".join(
            f'<li><a href="#{name}">{escape(heading)}</a></li>' for name, heading in self._sections.items()
        )
        return f'<nav aria-label="Contents">\n<ul>\n{links}\n</ul>\n</nav>\n'

    def _next(self, kind: str) -> str:
        self._numbers[kind] += 1
        return f"{kind} {self._numbers[kind]}"


def _image(figure: Any, alt: str) -> str:
    source, width, height = embedded(figure)
    return f'<img src="{source}" alt="{escape(alt, quote=True)}" width="{width}" height="{height}">'


def _plain(value: Any) -> str:
    """A fact as text: yes and no, lists with commas, pairs with colons."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(_plain(item) for item in value)
    return str(value)
