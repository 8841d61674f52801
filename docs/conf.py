"""Settings of the site. ``make docs`` copies the sources to build/docs, where generated pages may lie beside them."""

import re
import shutil
import sys
from importlib.metadata import files
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "docs"))  # gallery_order

from gsnmf import __version__  # noqa: E402

project = "gsnmf"
author = "The gsnmf developers"
copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
exclude_patterns = ["api/templates", "gallery/**/*.ipynb", "gallery/**/*.py"]
nitpicky = True
PRIVATE = [
    "applications.marker_genes",
    "applications.topic_modelling",
    "applications.unmixing",
    "convex.penalties",
    "convex.model",
    "diagnostics",
    "factorization",
    "model_selection",
    "nmf.alternating",
    "search",
    "weights",
]
"""Modules that docstrings name although they have no page."""
nitpick_ignore_regex = [("py:obj", rf"gsnmf\.({'|'.join(map(re.escape, PRIVATE))})(\.\w+)*")]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

templates_path = ["api/templates"]
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
default_role = "py:obj"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": "gsnmf",
    "abort_on_example_error": True,
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 10,
    "within_subsection_order": "gallery_order.place",
    "download_all_examples": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "gsnmf"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "gsnmf", "image_light": "_static/icon.svg", "image_dark": "_static/icon.svg"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
ALONE = ("index", "benchmarks", "reproduction", "faq", "glossary", "cite", "changelog")
"""Pages without others beside them."""
html_sidebars: dict[str, list[str]] = {page: [] for page in ALONE}
mathjax_path = "mathjax/tex-chtml.js"


def copy_mathjax(app: Sphinx) -> None:
    """Put MathJax into the site, from the package that brings it: pages load nothing from the network."""
    target = Path(app.outdir) / "_static" / "mathjax"
    for file in files("sphinx-mathjax-offline") or ():
        if file.name == "tex-chtml.js" or file.suffix == ".woff":
            place = target / str(file).split("/static/mathjax/")[1]
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), place)


def setup(app: Sphinx) -> None:
    """Connect what happens at build time."""
    app.connect("builder-inited", copy_mathjax)
