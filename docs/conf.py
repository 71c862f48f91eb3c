"""Sphinx: the pages of this folder, a reference of every public name, and the gallery of examples.

`make docs` builds the site, without a network. Two variables of the environment change it:

- ``DOCS_GALLERY``, a regular expression: which examples are run, by their paths. All are by
  default.
- ``ENTANGLED_KERNELS_DOCS``, the address that the site will have: for the list of versions.
"""

import os
import re
import sys
import warnings
from importlib import import_module
from pathlib import Path

from sphinx.util.nodes import make_refnode

import entangled_kernels

sys.path.insert(0, str(Path(__file__).parent))
os.environ["SPHINX_BUILD"] = "1"

project = "entangled-kernels"
author = "The entangled-kernels developers"
project_copyright = author
version = release = entangled_kernels.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "auto_examples/*.ipynb",
    "auto_examples/*.md5",
    "auto_examples/*.py",
]
templates_path = ["_templates"]
# `Name` in a docstring is a link where there is something of that name.
default_role = "py:obj"
# Blocks without a language are formulas, files and what commands print.
highlight_language = "none"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "entangled-kernels"
html_static_path = ["_static"]
html_css_files = ["house.css"]
html_copy_source = False
html_show_sourcelink = False
ADDRESS = os.environ.get("ENTANGLED_KERNELS_DOCS", "").rstrip("/")
html_theme_options = {
    "switcher": {
        "json_url": f"{ADDRESS}/_static/switcher.json"
        if ADDRESS
        else "_static/switcher.json",
        "version_match": version,
    },
    "check_switcher": not ADDRESS,
    "navbar_end": ["version-switcher", "theme-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": []}
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": os.environ.get("DOCS_GALLERY", r"/plot_"),
    "within_subsection_order": "gallery_look.GalleryOrder",
    "doc_module": ("entangled_kernels",),
    "backreferences_dir": "api/backreferences",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "capture_repr": ("_repr_html_",),
    "reset_modules": ("matplotlib", "gallery_look.use_house_style"),
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib",),
    "thumbnail_size": (480, 320),
}
# The gallery draws in files; examples call plt.show() for those who run them by hand.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

ROOMS = sorted(
    path.parent.name
    for path in Path(entangled_kernels.__file__).parent.glob("*/__init__.py")
)
# Where the page of a public name is, by the name alone.
HOMES = {
    name: f"entangled_kernels.{room}.{name}"
    for room in ROOMS
    for name in import_module(f"entangled_kernels.{room}").__all__
} | {name: f"entangled_kernels.{name}" for name in entangled_kernels.__all__}

SECTION_WITHOUT_PROSE = (
    "Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "Examples",
    "See Also",
)
# What is quoted, or else a sign that would be markup; an initial, as of an author, is no number of
# a list.
MARKUP = re.compile(
    r"``.*?``|`[^`]*`_?|(?<![\\\w])[*|](?=\S)|(?<=\w)_(?![\w`])|(?<=^[A-Z])\.(?= )"
)


def escape(line):
    """A line of a docstring in which *, | and a trailing _ stand for themselves, outside of quotes."""
    return MARKUP.sub(
        lambda found: found[0] if found[0].startswith("`") else f"\\{found[0]}", line
    )


def prepare_docstring(app, what, name, obj, options, lines):
    """Docstrings are plain text first: blocks that are set in are formulas, and signs are signs."""
    prepared, section, formula, before = [], "", False, ""
    for place, line in enumerate(lines):
        rule = lines[place + 1] if place + 1 < len(lines) else ""
        if line and set(rule) == {"-"} and len(rule) == len(line):
            section = line
        inset = len(line) - len(line.lstrip())
        if line and not inset:
            formula = False
        if (
            inset >= 4
            and not before
            and section not in SECTION_WITHOUT_PROSE
            and not formula
        ):
            formula = True
            prepared += ["::", ""]
        quoted = (
            formula or section == "Examples" or line.lstrip().startswith((">>>", "..."))
        )
        prepared.append(line if quoted else escape(line))
        before = line
    lines[:] = prepared


def skip_foreign_members(app, what, name, obj, skip, options):
    """Methods that scikit-learn gives every estimator are described there."""
    function = getattr(obj, "fget", None) or getattr(obj, "func", None) or obj
    home = getattr(function, "__module__", None)
    return (
        skip
        or name.endswith("_request")
        or (home is not None and not home.startswith(project_module))
    )


project_module = entangled_kernels.__name__


def find_by_name(app, env, node, contnode):
    """Lead `Name` to the page of a public name, from whatever module it is written in."""
    target = HOMES.get(node.get("reftarget", "").removeprefix("entangled_kernels."))
    found = env.get_domain("py").objects.get(target)
    if node.get("refdomain") != "py" or found is None:
        return None
    return make_refnode(
        app.builder, node["refdoc"], found.docname, found.node_id, contnode, target
    )


OUTSIDE = {
    "](../CONTRIBUTING.md": "](contributing.md",
    "](../README.md": "](index.md",
    "](../examples/README.rst": "](auto_examples/index.rst",
}


def lead_inside(app, name, content):
    """Links to files outside of this folder, which a forge shows, lead to their page of the site."""
    for outside, inside in OUTSIDE.items():
        content[0] = content[0].replace(outside, inside)
    content[0] = re.sub(
        r"\]\(\.\./examples/(\w+)\.py\)", r"](auto_examples/\1.rst)", content[0]
    )


def setup(app):
    """Connect the above."""
    app.connect("source-read", lead_inside)
    app.connect("autodoc-process-docstring", prepare_docstring, priority=400)
    app.connect("autodoc-skip-member", skip_foreign_members)
    app.connect("missing-reference", find_by_name)
