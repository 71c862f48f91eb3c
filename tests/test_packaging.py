"""The published package: versions agree, actions are pinned, and the sdist is complete."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import entangled_kernels

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read_yaml(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def minimum(requirement):
    """Name and oldest version of a requirement."""
    return re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", requirement).groups()


def padded(version):
    return [*version.split("."), "0", "0"][:3]


def test_versions_agree():
    assert read_yaml(ROOT / "CITATION.cff")["version"] == entangled_kernels.__version__
    recipe = (ROOT / "packaging/conda/meta.yaml").read_text(encoding="utf-8")
    assert f'{{% set version = "{entangled_kernels.__version__}" %}}' in recipe
    listed = json.loads((ROOT / "docs/_static/switcher.json").read_text(encoding="utf-8"))
    assert entangled_kernels.__version__ in [entry["version"] for entry in listed]
    assert f"## {entangled_kernels.__version__}" in (ROOT / "CHANGELOG.md").read_text(
        encoding="utf-8"
    )


def test_the_citation_has_what_the_format_asks_for():
    citation = read_yaml(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == PROJECT["project"]["license"]
    paper = citation["preferred-citation"]
    assert {"type", "title", "authors", "journal", "year", "volume"} <= set(paper)


def test_the_recipe_and_the_oldest_versions_are_the_declared_ones():
    declared = dict(minimum(requirement) for requirement in PROJECT["project"]["dependencies"])
    recipe = (ROOT / "packaging/conda/meta.yaml").read_text(encoding="utf-8")
    run = recipe.split("  run:\n")[1].split("  run_constrained:\n")[0]
    listed = dict(re.findall(r"- ([\w-]+) >=([\d.]+)", run))
    assert listed == declared | {"python": PROJECT["project"]["requires-python"].removeprefix(">=")}
    extras = PROJECT["project"]["optional-dependencies"]
    optional = dict(
        minimum(requirement)
        for name in ("plot", "data", "persist", "cli", "onnx", "dask")
        for requirement in extras[name]
        if "entangled" not in requirement
    )
    constrained = dict(
        re.findall(r"- ([\w-]+) >=([\d.]+)", recipe.split("  run_constrained:\n")[1])
    )
    constrained["matplotlib"] = constrained.pop("matplotlib-base")
    assert constrained == optional
    polars = [minimum(name) for name in extras["dev"] if name.startswith("polars")]
    declared |= optional | dict(polars)
    oldest = (ROOT / "packaging/oldest.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", oldest, re.MULTILINE))
    assert {name: padded(version) for name, version in pinned.items()} == {
        name: padded(version) for name, version in declared.items()
    }


def test_classifiers_begin_with_the_oldest_python():
    minors = re.findall(r"Python :: 3\.(\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert f">=3.{minors[0]}" == PROJECT["project"]["requires-python"]
    assert [int(minor) for minor in minors] == list(range(int(minors[0]), int(minors[-1]) + 1))


@pytest.mark.skipif(not WORKFLOWS, reason="an sdist holds no workflows")
def test_actions_are_pinned_by_commit():
    for path in WORKFLOWS:
        uses = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
        assert uses
        for action in uses:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
        for job in read_yaml(path)["jobs"].values():
            assert {"runs-on", "steps"} <= set(job)


def test_the_sdist_holds_what_the_tests_read():
    included = {
        entry.strip("/")
        for entry in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    }
    assert included >= {
        "src",
        "tests",
        "docs",
        "examples",
        "benchmarks",
        "packaging",
        "conftest.py",
        "*.md",
    }
