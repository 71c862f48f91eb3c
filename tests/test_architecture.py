"""The house rules that a machine can check: imports point down, and the core needs only its core."""

import ast
import subprocess
import sys
from pathlib import Path

import entangled_kernels

ROOT = Path(entangled_kernels.__file__).parent
MODULES = sorted(
    path for path in ROOT.rglob("*.py") if path.name not in ("__init__.py", "__main__.py")
)
# From the lowest to the highest: a room uses only rooms before it.
ROOMS = [
    "threads",
    "parameters",
    "doc_links",
    "files",
    "linalg",
    "kernels",
    "uncertainty",
    "learning",
    "convex",
    "features",
    "model",
    "selection",
    "streams",
    "estimators",
    "io",
    "theory",
    "datasets",
    "plotting",
    "experiments",
    "cli",
]
LEVEL = {name: level for level, name in enumerate(ROOMS)}


def imported_modules(path):
    """Dotted paths, below the package, of the modules that a module imports, and where it does so."""
    here = path.relative_to(ROOT).with_suffix("").parts
    tree = ast.parse(path.read_text())
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*here[: len(here) - node.level], *(node.module or "").split(".")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "entangled_kernels"
        ):
            base = node.module.split(".")[1:]
        else:
            continue
        base = tuple(part for part in base if part)
        for alias in node.names:
            named = ROOT.joinpath(*base, alias.name)
            deeper = named.is_dir() or named.with_suffix(".py").exists()
            yield (*base, alias.name) if deeper else base, id(node) in top


def test_the_list_of_rooms_is_complete():
    inside = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    inside |= {path.stem for path in ROOT.glob("*.py")} - {"__init__"}
    assert inside == set(LEVEL)


def test_arrows_point_down():
    arrows = set()
    for path in ROOT.rglob("*.py"):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if room != "__init__":
            arrows |= {(room, other[0]) for other, _ in imported_modules(path) if other[0] != room}
    assert len(arrows) > 20
    upward = sorted(arrow for arrow in arrows if LEVEL[arrow[0]] <= LEVEL[arrow[1]])
    assert not upward, f"imports that point up: {upward}"


def test_no_module_imports_itself_in_a_circle():
    """Whatever is imported when a module is: lazy imports inside functions may look back."""
    uses = {}
    for path in MODULES:
        names = {name for name, at_once in imported_modules(path) if at_once}
        uses[path.relative_to(ROOT).with_suffix("").parts] = names
    done, path = set(), []

    def walk(module):
        assert module not in path, f"a circle of imports: {path}"
        if module in done or module not in uses:
            return
        path.append(module)
        for other in uses[module]:
            walk(other)
        done.add(path.pop())

    for module in uses:
        walk(module)
    assert len(done) == len(uses)


def test_no_command_imports_another():
    folder = ROOT / "cli" / "commands"
    for path in folder.glob("*.py"):
        others = {name for name, _ in imported_modules(path) if name[:2] == ("cli", "commands")}
        assert path.name == "__init__.py" or not others, path


def test_import_needs_only_the_core():
    """Nothing optional is imported with the package, but what scikit-learn takes in by itself."""
    code = (
        "import sys, sklearn.kernel_approximation, sklearn.model_selection\n"
        "before = set(sys.modules)\n"
        "from entangled_kernels import *\n"
        "optional = {'matplotlib', 'typer', 'rich', 'pyarrow', 'dask', 'pymanopt', 'polars', 'skops'}\n"
        "optional |= {'onnx', 'onnxruntime'}\n"
        "print(sorted(optional & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_are_found_when_they_are_asked_for():
    """Importing the package imports nothing of it; its names and rooms are there all the same."""
    code = (
        "import sys, entangled_kernels\n"
        "assert 'numpy' not in sys.modules\n"
        "assert not set(entangled_kernels.__all__) - set(dir(entangled_kernels))\n"
        "assert entangled_kernels.kernels.__name__ == 'entangled_kernels.kernels'\n"
        "assert entangled_kernels.ForestFeatures is entangled_kernels.features.ForestFeatures\n"
        "assert not hasattr(entangled_kernels, 'nothing') and not hasattr(entangled_kernels, '_nothing')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_version_is_the_installed_one():
    from importlib.metadata import version

    assert entangled_kernels.__version__ == version("entangled-kernels")
