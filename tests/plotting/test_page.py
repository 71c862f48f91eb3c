import re
from html.parser import HTMLParser

import pytest

from entangled_kernels.plotting import Report

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Tree(HTMLParser):
    """Elements in order: tag, attributes, text, parents. Fails where a tag is not closed as it should."""

    def __init__(self, html):
        super().__init__()
        self.open, self.elements = [], []
        self.feed(html)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), f"repeated attribute in {tag}"
        element = [tag, dict(attrs), "", [name for name, _ in self.open]]
        self.elements.append(element)
        if tag not in VOID:
            self.open.append((tag, element))

    def handle_startendtag(self, tag, attrs):
        assert "svg" in [name for name, _ in self.open], f"<{tag}/> outside svg"

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> opens nothing"
        assert self.open[-1][0] == tag, f"</{tag}> where {self.open[-1][0]} is open"
        self.open.pop()

    def handle_data(self, data):
        for _, element in self.open:
            element[2] += data

    def all(self, *tags):
        return [element for element in self.elements if element[0] in tags]


@pytest.fixture(scope="module")
def tree(html):
    return Tree(html)


def test_document_has_language_title_and_one_main_heading(html, tree):
    assert html.startswith("<!DOCTYPE html>\n")
    assert tree.all("html")[0][1]["lang"] == "en"
    assert tree.all("title")[0][2] == "Concrete <slump> & friends"
    assert [element[2] for element in tree.all("h1")] == ["Concrete <slump> & friends"]
    assert tree.all("meta")[0][1] == {"charset": "utf-8"}
    assert "width=device-width" in html


def test_landmarks(tree):
    for tag in ("header", "nav", "main", "footer"):
        assert len(tree.all(tag)) == 1, tag
    assert all("main" in parents for _, _, _, parents in tree.all("section", "table", "figure"))


def test_ids_are_unique_and_links_lead_to_them(tree):
    ids = [attrs["id"] for _, attrs, _, _ in tree.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for _, attrs, _, _ in tree.all("a")]
    assert links[0] == "#content"
    assert {link[1:] for link in links} <= set(ids)
    labelled = [attrs["aria-labelledby"] for _, attrs, _, _ in tree.all("section")]
    assert set(labelled) <= set(ids)
    assert [element[2] for element in tree.all("h2")].count("Comparison") == 2


def test_tables_have_captions_and_scoped_headers(tree):
    tables, captions = tree.all("table"), tree.all("caption")
    assert len(tables) == len(captions) == 2
    assert [caption[2] for caption in captions] == [
        "Table 1. nMSE beside the paper's figures",
        "Table 2. More",
    ]
    scopes = {attrs.get("scope") for _, attrs, _, _ in tree.all("th")}
    assert scopes == {"col", "row"}


def test_what_may_scroll_can_be_reached_and_has_a_name_of_its_own(tree):
    regions = [attrs for _, attrs, _, _ in tree.elements if attrs.get("role") == "region"]
    assert all(attrs["tabindex"] == "0" for attrs in regions)
    names = [attrs["aria-label"] for attrs in regions]
    assert names == ["Table 1", "Figure 1", "Figure 2", "Table 2"]


def test_figures_have_words(tree):
    images = tree.all("img")
    assert [attrs["alt"] for _, attrs, _, _ in images] == [
        'A line that rises, then "falls".',
        "A rising line.",
    ]
    assert [element[2] for element in tree.all("figcaption")] == [
        "Figure 1. How it <went>.",
        "Figure 2. A wide one.",
    ]
    assert all(int(attrs["width"]) > 0 and int(attrs["height"]) > 0 for _, attrs, _, _ in images)


def test_nothing_is_loaded_and_nothing_runs(html, tree):
    assert not tree.all("script", "link", "iframe", "object", "embed", "form")
    sources = [
        attrs[name] for _, attrs, _, _ in tree.elements for name in ("src", "href") if name in attrs
    ]
    assert all(source.startswith(("data:image/", "#")) for source in sources)
    assert not [name for _, attrs, _, _ in tree.elements for name in attrs if name.startswith("on")]
    without_pictures = re.sub(r'src="data:[^"]*"', "", html)
    assert "http:" not in without_pictures
    assert "https:" not in without_pictures
    assert "url(" not in without_pictures
    assert "@import" not in without_pictures
    assert "default-src 'none'" in html


@pytest.mark.parametrize(
    "bad", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b < c"]
)
def test_all_text_is_escaped(bad, small_figure):
    page = Report(bad, lead=bad, footer=bad)
    page.section(bad)
    page.text(bad)
    page.points([bad])
    page.facts({bad: bad})
    page.code(bad)
    page.verdict(bad)
    page.verdict(f"{bad}: {bad}", kind="separable")
    page.table([bad, "x"], [[bad, 1.0]], caption=bad, note=bad)
    page.figure(small_figure(), caption=bad, alt=bad)
    tree = Tree(page.html())
    assert not tree.all("script")
    assert [attrs["alt"] for _, attrs, _, _ in tree.all("img")] == [bad]
    assert tree.all("h1")[0][2] == bad
    assert tree.all("code")[0][2] == bad
    assert tree.all("dt")[0][2] == bad


def test_same_calls_same_page(html, make_page):
    assert make_page().html() == html


def test_write_gives_the_page_and_leaves_no_crumbs(tmp_path, page, html):
    path = tmp_path / "new" / "index.html"
    assert page.write(path) == path
    assert path.read_text(encoding="utf-8") == html
    assert [file.name for file in path.parent.iterdir()] == ["index.html"]


def test_errors_name_the_argument(small_figure):
    page = Report("x")
    with pytest.raises(ValueError, match="title must not be empty"):
        Report(" ")
    with pytest.raises(ValueError, match="kind must be one of"):
        page.verdict("x", kind="maybe")
    with pytest.raises(ValueError, match="alt must say"):
        page.figure(small_figure(), caption="x", alt="")
