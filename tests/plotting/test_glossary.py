from entangled_kernels.plotting import Report
from entangled_kernels.plotting.page import used_terms


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
