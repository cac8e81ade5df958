"""Sphinx configuration; warnings are errors (see the Makefile)."""

import attnlab

project = "attnlab"
author = "The attnlab developers"
copyright = "2026, The attnlab developers"
version = release = attnlab.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "data"]
html_theme = "furo"
html_title = "attnlab"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "ignore_pattern": "__init__",
    "abort_on_example_error": True,
    "plot_gallery": "True",
}
suppress_warnings = ["config.cache"]
