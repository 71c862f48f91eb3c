"""The house rules that a machine can check: imports point down, and the core needs only its core."""

import ast
import subprocess
import sys
from pathlib import Path

import entangled_kernels

ROOT = Path(entangled_kernels.__file__).parent

# A module may import from layers above it in this list, and from its own package.
LAYERS = [
    {"files", "threads"},
    {
        "results",
        "batches",
        "choice",
        "evidence",
        "row_folds",
        "linalg",
        "moments",
        "learned",
        "output_kernel",
    },
    {"kernels", "alignment", "checkpoints"},
    {"reduction"},
    {"solvers", "ridge", "block_solvers", "reached"},
    {"posterior", "selection"},
    {"search", "candidates"},
    {"estimators"},
    {"theory"},
    {"datasets", "plotting", "persistence", "tables"},
    {"report"},
    {"experiments"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imported_parts(path):
    """Top-level parts of this package that a module imports."""
    here = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            target = [*here[: len(here) - node.level], *(node.module or "").split(".")]
            target = [part for part in target if part]
            yield from [target[0]] if target else [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("entangled_kernels."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("entangled_kernels."))


def test_arrows_point_down():
    arrows = set()
    for path in ROOT.rglob("*.py"):
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        assert part in LEVEL, f"{part} has no layer: add it to LAYERS"
        arrows |= {(part, other) for other in imported_parts(path) if other != part}
    assert arrows
    upward = sorted(arrow for arrow in arrows if LEVEL[arrow[0]] <= LEVEL[arrow[1]])
    assert not upward, f"imports that point up: {upward}"


def test_import_needs_only_the_core():
    """Nothing optional is imported with the package, but what scikit-learn takes in by itself."""
    code = (
        "import sys, sklearn.kernel_approximation, sklearn.model_selection\n"
        "before = set(sys.modules)\n"
        "import entangled_kernels\n"
        "optional = {'matplotlib', 'typer', 'rich', 'pooch', 'pyarrow', 'dask', 'pymanopt', 'polars'}\n"
        "print(sorted(optional & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version_is_the_installed_one():
    from importlib.metadata import version

    assert entangled_kernels.__version__ == version("entangled-kernels")
