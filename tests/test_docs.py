"""Code in the README and the docs runs as it stands, and the reference is whole."""

import re
import runpy
from importlib import import_module
from pathlib import Path

import matplotlib as mpl
import pytest

import entangled_kernels

ROOT = Path(__file__).parent.parent
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if "```python" in path.read_text()
]
ROOMS = dict(
    re.findall(r"^\| `(\w+)/` \|.*\]\(([\w-]+\.md)\) \|$", (ROOT / "docs/architecture.md").read_text(), re.M)
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page):
    mpl.use("agg")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


# The command line's page is for those who use it.
@pytest.mark.parametrize("room", [room for room in ROOMS if room != "cli"])
def test_a_page_names_the_modules_of_its_room(room):
    folder = ROOT / "src" / "entangled_kernels" / room
    modules = {
        path.relative_to(folder).as_posix() for path in folder.rglob("*.py") if path.stem != "__init__"
    }
    section = (ROOT / "docs" / ROOMS[room]).read_text().partition("## Modules\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([\w/]+\.py)`", section))
    if list(ROOMS.values()).count(ROOMS[room]) > 1:
        # Rooms that share a page are named with their modules.
        named = {name.removeprefix(f"{room}/") for name in named if name.startswith(f"{room}/")}
    assert named == modules


# Small modules that rooms share, which users have no business with.
PRIVATE = {"doc_links", "files", "parameters", "threads"}
HOUSE = ROOT / "src" / "entangled_kernels"
MODULES = {path.parent.name if path.stem == "__init__" else path.stem for path in HOUSE.glob("*/__init__.py")}
MODULES |= {path.stem for path in HOUSE.glob("*.py")} - {"__init__"} - PRIVATE


def listed_names(page):
    """Full names that a page of the reference lists: entries of its tables, and types that it describes."""
    module, names = "", []
    for line in page.read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"\.\. (?:current)?module:: (\S+)", line):
            module = found[1]
        elif found := re.fullmatch(r"(?:   |\.\. py:data:: )([A-Za-z_]\w*)", line):
            names.append(f"{module}.{found[1]}")
    return names


@pytest.mark.parametrize("name", sorted(MODULES))
def test_the_reference_lists_every_public_name(name):
    public = import_module(f"entangled_kernels.{name}").__all__
    package = set(entangled_kernels.__all__)
    expected = {f"entangled_kernels{'' if one in package else f'.{name}'}.{one}" for one in public}
    listed = listed_names(ROOT / "docs" / "api" / f"{name}.rst")
    assert len(listed) == len(set(listed))
    assert set(listed) == expected


def test_every_page_of_the_site_is_in_its_tables_of_contents():
    index, guide, api = (
        set(re.findall(r"^ *([\w/-]+)$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE))
        for page in ("index.md", "guide.md", "api/index.rst")
    )
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages <= index | guide | {"index"}
    assert api >= MODULES
    assert set().union(*(import_module(f"entangled_kernels.{room}").__all__ for room in MODULES)) >= {
        name for name in entangled_kernels.__all__ if not name.startswith("_")
    }


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
