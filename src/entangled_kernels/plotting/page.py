"""A self-contained HTML page with sections, text, tables and figures."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..io import atomic_write
from .cells import Table, visible

__all__ = ["TERMS", "Report", "embedded", "used_terms"]

SIGNS = ("entangled", "plain", "separable")
Block = dict[str, Any]


class Report:
    """A self-contained HTML page, without scripts and without network.

    Blocks appear in the order of the calls. The Jinja2 templates in ``templates`` escape all text.
    The same calls give the same bytes.

    Parameters
    ----------
    title : str
    lead : str, optional
        One sentence under the title.
    footer : str, optional
        A line at the end; nothing by default.

    Examples
    --------
    >>> from entangled_kernels.plotting import Report
    >>> page = Report("Concrete slump", lead="Three properties of concrete, seven ingredients.")
    >>> page.section("Results")
    >>> page.table(["n", "KRR", "EKL"], [[12, 0.91, 0.88]], caption="nMSE", best="min")
    >>> "0.880" in page.html()
    True
    """

    def __init__(self, title: str, lead: str = "", *, footer: str = "") -> None:
        if not title.strip():
            raise ValueError("title must not be empty")
        self.title, self.lead, self.footer = title, lead, footer
        # The first section has no heading, for blocks before the others.
        self._sections: list[dict[str, Any]] = [{"name": "", "heading": "", "blocks": []}]
        self._numbers = {"Table": 0, "Figure": 0}

    @property
    def _blocks(self) -> list[Block]:
        """Blocks of the section that is being written."""
        return self._sections[-1]["blocks"]  # type: ignore[no-any-return]

    def _add(self, kind: str, **values: Any) -> None:
        self._blocks.append({"kind": kind, **values})

    def section(self, heading: str) -> None:
        """Begin a section."""
        stem = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-") or "section"
        names = {section["name"] for section in self._sections}
        name, number = f"s-{stem}", 2
        while name in names:
            name, number = f"s-{stem}-{number}", number + 1
        self._sections.append({"name": name, "heading": heading, "blocks": []})

    def text(self, text: str) -> None:
        """Add plain text; an empty line separates paragraphs."""
        self._add("text", paragraphs=[one.strip() for one in re.split(r"\n\s*\n", text.strip())])

    def points(self, points: Iterable[str]) -> None:
        """Add a list of points."""
        self._add("points", points=list(points))

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Add names with values, such as the settings of a run."""
        self._add(
            "facts", facts={str(name).replace("_", " "): _plain(facts[name]) for name in facts}
        )

    def code(self, code: str) -> None:
        """Add commands or code to copy."""
        self._add("code", code=code.strip())

    def verdict(self, text: str, kind: str = "plain") -> None:
        """Add a conclusion in words.

        Parameters
        ----------
        text : str
            A short opening up to a colon is set in bold.
        kind : {"entangled", "separable", "plain"}
        """
        if kind not in SIGNS:
            raise ValueError(f"kind must be one of {list(SIGNS)}, got {kind!r}")
        opening, colon, rest = text.partition(":")
        short = bool(colon) and len(opening) <= 30
        self._add(
            "verdict",
            sign=kind,
            opening=f"{opening}:" if short else "",
            words=rest if short else text,
        )

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
            Names or positions of the columns that compete; by default all but row headers.
        row_headers : int, default=1
            Number of leading columns that are headers of their rows.
        note : str, optional
            A line under the table.
        sure : collection of (row, column), optional
            Row numbers and column names of the cells that may be marked as the best. All by
            default.
        marked : collection of (row, column), optional
            Cells that are always marked; the note explains why.
        """
        made = Table(columns, rows, digits, best, best_among, row_headers, sure, marked)
        words = f"{made.best_in_words()} {note}".strip()
        self._add(
            "table",
            name=self._next("Table"),
            caption=caption,
            note=words,
            columns=made.heads(),
            rows=made.cells(),
        )

    def figure(self, figure: Any, *, caption: str, alt: str) -> None:
        """Add a figure.

        Parameters
        ----------
        figure : matplotlib Figure, PNG as bytes, or path of a PNG file
            A matplotlib figure becomes an SVG, or a PNG where that would be large.
        caption : str
        alt : str
            Description for readers who cannot see the figure.
        """
        self.figures([(figure, alt)], caption=caption)

    def figures(self, figures: Sequence[tuple[Any, str]], *, caption: str) -> None:
        """Add small figures side by side, below each other where the window is narrow.

        Parameters
        ----------
        figures : sequence of pairs
            Each is a figure as in `figure`, and its description.
        caption : str
            One caption for all of them.
        """
        images = []
        for figure, alt in figures:
            if not alt.strip():
                raise ValueError(
                    "alt must say what the figure shows, for readers who cannot see it"
                )
            source, width, height = embedded(figure)
            images.append({"source": source, "alt": alt, "width": width, "height": height})
        self._add("figure", name=self._next("Figure"), caption=caption, images=images)

    @contextmanager
    def folded(self, summary: str) -> Iterator[None]:
        """Put the blocks that are added in a ``with`` block into a closed section with a summary.

        Terms of the glossary that are new on the page are explained in it.
        """
        before, start = set(self._terms(self._all_blocks())), len(self._blocks)
        yield
        terms = [term for term in self._terms(self._blocks[start:]) if term not in before]
        if terms:
            self.facts({term: TERMS[term] for term in terms})
        inner = self._blocks[start:]
        del self._blocks[start:]
        self._add("folded", summary=summary, blocks=inner)

    def glossary(self) -> None:
        """Add a section that explains the terms used so far, except in closed sections."""
        if terms := self._terms(block for block in self._all_blocks() if block["kind"] != "folded"):
            self.section("Words")
            self.facts({term: TERMS[term] for term in terms})

    def html(self) -> str:
        """The whole page as text."""
        sections = [
            section for section in self._sections if section["heading"] or section["blocks"]
        ]
        page = _templates().get_template("page.html")
        return str(
            page.render(title=self.title, lead=self.lead, footer=self.footer, sections=sections)
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, completely or not at all, and return its path."""
        with atomic_write(path) as file:
            file.write(self.html())
        return Path(path)

    def _all_blocks(self) -> list[Block]:
        """Blocks of all sections, with their headings."""
        blocks: list[Block] = []
        for section in self._sections:
            blocks += [{"kind": "text", "paragraphs": [section["heading"]]}, *section["blocks"]]
        return blocks

    def _terms(self, blocks: Iterable[Block]) -> list[str]:
        """Terms of the glossary in the title, the lead and some blocks of the page."""
        return used_terms(
            " ".join([self.title, self.lead, *(" ".join(_words(one)) for one in blocks)])
        )

    def _next(self, kind: str) -> str:
        self._numbers[kind] += 1
        return f"{kind} {self._numbers[kind]}"


@cache
def _templates() -> Any:
    """The templates. They escape all text, and write control characters as visible escapes."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError('pages need Jinja2: pip install "entangled-kernels[cli]"') from error

    def show(value: Any) -> Any:
        return visible(value, keep="\n\t") if type(value) is str else value

    return Environment(
        loader=PackageLoader("entangled_kernels.plotting"),
        autoescape=True,
        finalize=show,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _words(block: Any) -> Iterator[str]:
    """All text of a block, without images."""
    if isinstance(block, str):
        yield block
    elif isinstance(block, Mapping):
        for name, value in block.items():
            if block.get("kind") == "facts" and name == "facts":
                yield from value
            if name not in ("kind", "sign", "images", "name", "classes"):
                yield from _words(value)
    elif isinstance(block, list | tuple):
        for value in block:
            yield from _words(value)


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


# An SVG of more bytes than this is replaced by a PNG.
LARGE = 400_000
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# CSS pixels in an inch, and dots of a PNG for each of them.
PIXELS, DENSITY = 96, 2


def embedded(figure: Any) -> tuple[str, int, int]:
    """Data URI of a matplotlib figure or a PNG (bytes or file), with width and height in pixels.

    The same figure gives the same URI, since dates and random names are left out.
    """
    if hasattr(figure, "savefig"):
        return _from_matplotlib(figure)
    if isinstance(figure, str | os.PathLike):
        figure = Path(figure).read_bytes()
    if not isinstance(figure, bytes) or not figure.startswith(SIGNATURE):
        raise TypeError(
            "figure must be a matplotlib Figure, or a PNG as bytes or as the path of a file, "
            f"got {type(figure).__name__}"
        )
    return _uri("image/png", figure), *_size_of_png(figure)


def _from_matplotlib(figure: Any) -> tuple[str, int, int]:
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "entangled-kernels", "svg.fonttype": "path"}):
        svg = _saved(figure, format="svg", metadata={"Date": None, "Creator": None})
    png = _saved(figure, format="png", dpi=PIXELS * DENSITY, metadata={"Software": None})
    width, height = (round(dots / DENSITY) for dots in _size_of_png(png))
    drawn = ("image/svg+xml", svg) if len(svg) <= LARGE else ("image/png", png)
    return _uri(*drawn), width, height


def _saved(figure: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, bbox_inches="tight", facecolor="white", **options)
    return file.getvalue()


def _uri(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _size_of_png(data: bytes) -> tuple[int, int]:
    """Width and height in dots, from the header of a PNG."""
    width, height = struct.unpack(">II", data[16:24])
    return width, height


# Terms of the glossary and their explanations.
TERMS: dict[str, str] = json.loads(
    files(__package__).joinpath("templates/glossary.json").read_text(encoding="utf-8")
)


def used_terms(text: str) -> list[str]:
    """Terms that occur in a text as separate words, in the order of the glossary.

    Examples
    --------
    >>> used_terms("The nMSE of kernel ridge.")
    ['kernel', 'kernel ridge', 'nMSE']
    """
    return [term for term in TERMS if _pattern(term).search(text)]


def _pattern(term: str) -> re.Pattern[str]:
    """Pattern of a term: with its case if it has capitals, such as nI, else with its plural."""
    words = re.escape(term).replace(r"\ ", r"\s+")
    named = any(letter.isupper() for letter in term)
    return re.compile(
        rf"(?<![\w-]){words}{'' if named else 's?'}(?![\w-])", 0 if named else re.IGNORECASE
    )
