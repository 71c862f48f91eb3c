"""Code in the README and the docs runs as it stands, and the reference is whole."""

import re
import runpy
from importlib import import_module
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import entangled_kernels

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "entangled_kernels"
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if "```python" in path.read_text()
]
PRINTED = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
# Numbers on a page may differ from those of another machine by this much, absolute or relative.
TOLERANCE = 0.02


def assert_alike(printed, shown):
    """A block prints the text on the page, with numbers within the tolerance."""
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    numbers = [np.array(NUMBER.findall(text), dtype=float) for text in (printed, shown)]
    np.testing.assert_allclose(*numbers, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch, capsys):
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block, shown in PRINTED.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, page.name, "exec"), names)
        printed = capsys.readouterr().out
        if shown:
            assert_alike(printed, shown)


def test_printed_numbers_are_compared():
    assert_alike("error 0.501, wine", "error 0.50, wine")
    with pytest.raises(AssertionError):
        assert_alike("error 0.60", "error 0.50")
    with pytest.raises(AssertionError):
        assert_alike("error 0.50", "ratio 0.50")


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_architecture_lists_every_room_and_its_page():
    table = re.findall(
        r"^\| `(\w+)/` \|.*\]\(([\w-]+\.md)\) \|$",
        (ROOT / "docs/architecture.md").read_text(),
        re.M,
    )
    folders = {path.parent.name for path in HOUSE.glob("*/__init__.py")}
    assert {room for room, _ in table} == folders
    assert len(table) == len(folders)


def test_public_names_of_the_journeys_exist():
    journeys = (ROOT / "docs/architecture.md").read_text().partition("## Three journeys")[2]
    names = re.findall(rf"^ {{4,}}((?:{'|'.join(sorted(MODULES))})(?:\.\w+)+)", journeys, re.M)
    assert len(names) > 20
    for name in names:
        room, *parts = name.split(".")
        value = import_module(f"entangled_kernels.{room}")
        for part in parts:
            assert not part.startswith("_")
            value = getattr(value, part)


# Small modules for the rooms alone.
PRIVATE = {"doc_links", "files", "parameters", "threads"}
MODULES = {
    path.parent.name if path.stem == "__init__" else path.stem
    for path in HOUSE.glob("*/__init__.py")
}
MODULES |= {path.stem for path in HOUSE.glob("*.py")} - {"__init__"} - PRIVATE


def listed_names(page):
    """Full names that a page of the reference lists."""
    module, names = "", []
    for line in page.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\.\. (?:current)?module:: (\S+)", line):
            module = match[1]
        elif match := re.fullmatch(r"(?:   |\.\. py:data:: )([A-Za-z_]\w*)", line):
            names.append(f"{module}.{match[1]}")
    return names


@pytest.mark.parametrize("name", sorted(MODULES))
def test_the_reference_lists_every_public_name(name):
    public = import_module(f"entangled_kernels.{name}").__all__
    package = set(entangled_kernels.__all__)
    expected = {
        f"entangled_kernels{'' if public_name in package else f'.{name}'}.{public_name}"
        for public_name in public
    }
    listed = listed_names(ROOT / "docs" / "api" / f"{name}.rst")
    assert len(listed) == len(set(listed))
    assert set(listed) == expected


def test_every_page_of_the_site_is_in_its_tables_of_contents():
    def entries(page):
        text = page.read_text(encoding="utf-8")
        tables = re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL) or [text]
        return set(re.findall(r"^ *([\w/-]+)$", "\n".join(tables), re.MULTILINE))

    docs = ROOT / "docs"
    listed = [
        name
        for path in docs.glob("*.md")
        if "{toctree}" in path.read_text()
        for name in entries(path)
    ]
    assert len(listed) == len(set(listed))
    assert {path.stem for path in docs.glob("*.md")} <= {*listed, "index"}
    api = entries(docs / "api" / "index.rst")
    assert api >= MODULES
    assert set().union(
        *(import_module(f"entangled_kernels.{room}").__all__ for room in MODULES)
    ) >= {name for name in entangled_kernels.__all__ if not name.startswith("_")}


def test_the_check_of_the_site_finds_broken_links(tmp_path):
    check = runpy.run_path(str(ROOT / "docs" / "check_site.py"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top"></h1><a href="#top"></a><a href="#bottom"></a><a href="sub/page.html#here"></a>'
        '<a href="sub/page.html#there"></a><a href="https://elsewhere.example/x"></a><img src="a%20b.png">'
    )
    (tmp_path / "sub" / "page.html").write_text(
        '<p id="here"><a href="../index.html"></a><a href="gone.html">'
    )
    (tmp_path / "a b.png").touch()
    assert list(check["broken_links"](tmp_path.resolve())) == [
        ("index.html", "#bottom"),
        ("index.html", "sub/page.html#there"),
        ("sub/page.html", "gone.html"),
    ]
