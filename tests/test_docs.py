"""Code in the README and the docs runs as it stands."""

import re
from pathlib import Path

import matplotlib as mpl
import pytest

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
