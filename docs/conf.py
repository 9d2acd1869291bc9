"""The site of the documentation, which `make docs` builds: configuration, and two steps that the theme lacks."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
# Kernels of notebooks find this checkout and the commands of this environment.
os.environ["PYTHONPATH"] = str(ROOT)
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # Optuna's bars need no widgets
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

import jahs  # noqa: E402
from jahs.explorer import read_subject, write_page  # noqa: E402
from jahs.release import EMBEDDED  # noqa: E402

project, author, copyright = "JAHS", "The JAHS authors", "The JAHS authors"  # noqa: A001
version = release = jahs.__version__

# The checkout is the source, so that relative links mean the same here and in a plain viewer of Markdown.
root_doc = "README"
SECTIONS: Final = (
    "index",
    "site/guides",
    "site/notebooks",
    "concepts",
    "site/studies",
    "site/data",
    "site/reference",
    "site/project",
)
include_patterns = [
    "*.md",
    "*/README.md",
    "integrations/*/*.md",
    "docs/*.md",
    "docs/**/*.md",
    "docs/site/*.rst",
    "docs/site/**/*.rst",
]
exclude_patterns = [".*", "build", "dist", "docs/package.md", "jahs", "out", "tests"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
python_use_unqualified_type_names = True
toc_object_entries = False
napoleon_use_ivar = True
default_role = "py:obj"  # backticks in docstrings

nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = nb_execution_show_tb = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_output_stderr = "remove-warn"  # and a warning ends the build

html_theme = "pydata_sphinx_theme"
html_title = f"JAHS {version}"  # on every page
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "footer_end": [],
    "footer_start": ["copyright"],
    "header_links_before_dropdown": 6,  # the others are below "More"
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
}


class Explorers(Directive):
    """The explorer of each embedded release, in a frame."""

    def run(self) -> list[nodes.Node]:
        """Return the frames; `add_pages` writes the pages in them."""
        frame = (
            '<h2>{0}</h2><p><a href="../../explorers/{0}.html">Open it alone</a></p>'
            '<iframe class="explorer" src="../../explorers/{0}.html" title="Explorer of {0}" loading="lazy"></iframe>'
        )
        return [nodes.raw("", "".join(frame.format(task) for task in EMBEDDED), format="html")]


def add_contents(_app: Sphinx, name: str, source: list[str]) -> None:
    """Give the first page the table of contents, which a plain viewer of Markdown would show as code."""
    if name == root_doc:
        source[0] += "\n".join(
            ["", "```{toctree}", ":hidden:", *(f"docs/{section}" for section in SECTIONS), "```", ""]
        )


def mark_code(_app: Sphinx, what: str, _name: str, _it: object, _options: object, lines: list[str]) -> None:
    """Mark the indented examples in a module's docstring as code; readers of the source need no mark."""
    for i in reversed(range(2, len(lines))) if what == "module" else ():
        if lines[i].startswith("    ") and not lines[i - 1] and not lines[i - 2].startswith("    "):
            lines[i:i] = ["::", ""]


def add_pages(app: Sphinx, failed: Exception | None) -> None:
    """Write the explorers, and let the site open at its first page."""
    if failed is None:
        out = Path(app.outdir)
        shutil.copyfile(out / f"{root_doc}.html", out / "index.html")
        (out / "explorers").mkdir(exist_ok=True)
        for task in EMBEDDED:
            write_page(read_subject(task), out / "explorers" / f"{task}.html")


def setup(app: Sphinx) -> None:
    """Connect these steps."""
    app.add_directive("explorers", Explorers)
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-docstring", mark_code)
    app.connect("build-finished", add_pages)
