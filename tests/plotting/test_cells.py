"""Cells of tables, terms of the glossary, and characters that cannot be seen."""

import unicodedata

import numpy as np
import pytest

from entangled_kernels.plotting import Report
from entangled_kernels.plotting.cells import Table, format_cell, visible
from entangled_kernels.plotting.page import used_terms


def html_of(table):
    """The page of a table, without its style."""
    page = Report("A table")
    page._add(
        "table",
        name="Table 1",
        caption="A table",
        note=table.best_in_words(),
        columns=table.heads(),
        rows=table.cells(),
    )
    return page.html().partition("</style>")[2]


def rows_of(html):
    return html.split("<tbody>\n")[1].split("\n</tbody>")[0].splitlines()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.123"),
        (-0.5, "\N{MINUS SIGN}0.500"),
        (np.float32(2), "2.000"),
        (7, "7"),
        (np.int64(-7), "\N{MINUS SIGN}7"),
        ((0.25, 0.0123), "0.250 ± 0.012"),
        (None, "\N{EN DASH}"),
        (float("nan"), "\N{EN DASH}"),
        (np.float64("nan"), "\N{EN DASH}"),
        (True, "yes"),
        (np.bool_(False), "no"),
        ("text", "text"),
    ],
)
def test_format(value, text):
    assert format_cell(value, 3) == text


def test_decimals_of_a_column_have_the_same_length():
    table = Table(["name", "a", "b"], [["x", 1.0, 0.12349], ["y", 10.25, 3.0]], digits={"a": 1})
    rows = rows_of(html_of(table))
    assert (
        rows[0]
        == '<tr><th scope="row">x</th><td class="num">1.0</td><td class="num">0.123</td></tr>'
    )
    assert (
        rows[1]
        == '<tr><th scope="row">y</th><td class="num">10.2</td><td class="num">3.000</td></tr>'
    )


@pytest.mark.parametrize(
    ("row", "best", "places"),
    [
        (["x", 0.3, 0.1, 0.2], "min", {2}),
        (["x", 0.3, 0.1, 0.2], "max", {1}),
        (["x", 0.1001, 0.1, 0.2], "min", {1, 2}),  # alike as printed
        (["x", 0.1, 0.1, 0.1], "min", set()),  # nothing to tell
        (["x", 0.1, None, "?"], "min", set()),  # nothing to compare
        (["x", float("nan"), (0.5, 0.1), 0.7], "min", {2}),
        (["x", 0.3, 0.1, 0.2], None, set()),
    ],
)
def test_best_of_a_row(row, best, places):
    table = Table(["name", "a", "b", "c"], [row], best=best)
    assert table._best_columns(row) == places
    html = html_of(table)
    # Told by a sign, by a word for screen readers and by weight, not by colour alone.
    assert html.count('<span aria-hidden="true">★</span>') == len(places)
    assert html.count("best: ") == len(places)
    assert ("of the row." in html) == bool(places)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": [["x"]]}, "row 0 must have 2 cells"),
        ({"best": "least"}, "best must be 'min', 'max' or None"),
        ({"best_among": ["c"]}, "best_among must hold names or positions of columns, got 'c'"),
        ({"best_among": [2]}, "best_among must hold names or positions of columns, got 2"),
        ({"row_headers": 3}, "row_headers must lie between 0 and 2"),
    ],
)
def test_errors_name_the_argument(options, message):
    with pytest.raises(ValueError, match=message):
        Table(**({"columns": ["a", "b"], "rows": [["x", 1.0]]} | options))


def test_only_sure_leads_are_marked():
    rows = [["a", 0.369, 0.370], ["b", 0.2, 0.4]]
    html = html_of(Table(["x", "one", "two"], rows, best="min", sure={(1, "one")}))
    assert html.count("★</span>") == 1
    assert "by more than chance would give" in html
    assert "★" not in html_of(Table(["x", "one", "two"], rows, best="min", sure=()))


MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def test_every_control_character_and_mark_of_direction_is_shown():
    for code in range(0x10000):
        sign = chr(code)
        hidden = unicodedata.category(sign) == "Cc" or sign in MARKS
        assert (visible(sign) != sign) == hidden, hex(code)


def test_pages_show_what_is_hidden_and_read_nothing_as_markup():
    page = Report("<b>\x1b\n'")
    page.text("{{ 7 * 7 }} \u202e")
    assert "&lt;b&gt;\\u001b\n&#39;" in page.html()
    assert "<p>{{ 7 * 7 }} \\u202e</p>" in page.html()


def test_no_part_of_a_page_holds_them_raw():
    signs = f"\x1b\x9b\x00{MARKS}"
    text = f"name{signs}1"
    page = Report(text, text, footer=text)
    page.section(text)
    page.text(text)
    page.points([text])
    page.facts({text: text})
    page.code(text)
    page.verdict(f"{text}: {text}")
    page.table([text, f"{text}2"], [[text, text]], caption=text, note=text)
    page.figure(
        b"\x89PNG\r\n\x1a\n" + bytes(8) + (1).to_bytes(4, "big") * 2, caption=text, alt=text
    )
    html = page.html()
    assert not set(signs) & set(html)
    assert html.count(visible(signs)) >= 15


def test_words_are_found_as_words():
    assert used_terms("Its NMSE is small, the nMSE too") == ["nMSE"]
    assert "nI" not in used_terms("ni and unit")
    assert used_terms("Kernels and intervals") == ["interval", "kernel"]
    assert used_terms("ptrEKL") == ["ptrEKL"]


def test_a_page_explains_what_it_says_and_nothing_else():
    page = Report("T", lead="The nMSE.")
    page.section("One")
    page.text("Kernels & rows.")
    page.glossary()
    html = page.html()
    assert '<h2 id="s-words">Words</h2>' in html
    assert "<dt>kernel</dt>" in html
    assert "<dt>nMSE</dt>" in html
    assert "<dt>PPT</dt>" not in html


def test_what_is_folded_is_explained_there():
    page = Report("T")
    page.section("One")
    page.text("The alpha.")
    with page.folded("For theorists"):
        page.text("PPT holds for any alpha.")
    page.glossary()
    folded, rest = page.html().partition("<details>")[2].split("</details>")
    assert "<summary>For theorists</summary>" in folded
    assert "<dt>PPT</dt>" in folded
    assert "<dt>alpha</dt>" not in folded
    assert "PPT" not in rest
    assert "<dt>alpha</dt>" in rest
