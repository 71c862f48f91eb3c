import unicodedata

import pytest

from entangled_kernels.plotting import Report
from entangled_kernels.plotting.cells import visible

MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def test_every_control_character_and_mark_of_direction_is_shown():
    for code in range(0x110000):
        sign = chr(code)
        hidden = unicodedata.category(sign) == "Cc" or sign in MARKS
        assert (visible(sign) != sign) == hidden, hex(code)


def test_pages_show_what_is_hidden_and_read_nothing_as_markup():
    page = Report("<b>\x1b\n'")
    page.text("{{ 7 * 7 }} \u202e")
    assert "&lt;b&gt;\\u001b\n&#39;" in page.html()
    assert "<p>{{ 7 * 7 }} \\u202e</p>" in page.html()


@pytest.mark.parametrize("sign", ["\x1b", "\x9b", "\x00", *MARKS])
def test_no_part_of_a_page_holds_them_raw(sign):
    text = f"name{sign}1"
    page = Report(text, text, footer=text)
    page.section(text)
    page.text(text)
    page.points([text])
    page.facts({text: text})
    page.code(text)
    page.verdict(f"{text}: {text}")
    page.table([text, f"{text}2"], [[text, text]], caption=text, note=text)
    page.figure(b"\x89PNG\r\n\x1a\n" + bytes(8) + (1).to_bytes(4, "big") * 2, caption=text, alt=text)
    html = page.html()
    assert sign not in html
    assert html.count(visible(sign)) >= 15
