"""What is installed, read from source files: a listing imports no system, so that it appears at once.

A test compares it with the registry, which imports everything.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from attnlab.common.systems import systems
from attnlab.lab import own
from attnlab.lab.formulas.plain import plain


@dataclass
class Catalogue:
    """Names and one line each, of systems, figures, tasks and learners."""

    systems: dict[str, str] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    learners: dict[str, str] = field(default_factory=dict)


def catalogue() -> Catalogue:
    """Read the source of every installed system; what the user has added comes last."""
    found = Catalogue()
    for name, package in systems().items():
        folder = _folder(package)
        found.systems[name] = _summary(_parsed(folder / "__init__.py"))
        files = (*sorted(folder.glob("figures/*.py")), *folder.glob("figures.py"))
        found.figures |= _figures([_parsed(file) for file in files])
        for public, definition, file in _classes(package, folder):
            if (role := _role(definition)) == "task":
                found.tasks[f"{name}.{public}"] = _summary(definition)
            # a class that is no dataclass may be anything: only the files of learners hold learners
            elif "learners" in file.relative_to(folder).with_suffix("").parts and role == "learner":
                found.learners[f"{name}.{public}"] = _summary(definition)
    for kind, items in (("figure", found.figures), ("task", found.tasks), ("learner", found.learners)):
        for name, item in own.things[kind].items():
            items[name] = item.title if kind == "figure" else plain((item.__doc__ or "").split("\n")[0])
    return found


def _folder(package: str) -> Path:
    """Where a package lies; its parents are imported, the package itself is not."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the package {package} of an installed system is not there")
    return Path(spec.origin).parent


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())


def _figures(trees: list[ast.Module]) -> dict[str, str]:
    """Names and titles of the figures that files define, by ``Figure`` or by a function of theirs that returns one."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    # a function is known as a maker of figures by its return annotation
    makers = {n.name for n in nodes if isinstance(n, ast.FunctionDef) and getattr(n.returns, "id", "") == "Figure"}
    found = {}
    for call in nodes:
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in {"Figure", *makers}:
            # the first two arguments of Figure, given by place or by name
            given = dict(zip(("name", "title"), call.args, strict=False)) | {k.arg: k.value for k in call.keywords}
            # a text that is put together at run time is no constant, and cannot be read here
            name, title = (getattr(given.get(key), "value", None) for key in ("name", "title"))
            if name and title:
                found[str(name)] = str(title)
    return found


def _classes(package: str, folder: Path) -> Iterator[tuple[str, ast.ClassDef, Path]]:
    """The public classes of a system with the files that define them, by the package's stub."""
    stub = folder / "__init__.pyi"
    for node in _parsed(stub if stub.exists() else folder / "__init__.py").body:
        # ``from . import x`` names modules, not classes
        if not (isinstance(node, ast.ImportFrom) and node.module):
            continue
        inside = node.module if node.level == 1 else node.module.removeprefix(f"{package}.")
        place = folder.joinpath(*inside.split("."))
        file = place.with_suffix(".py") if place.with_suffix(".py").exists() else place / "__init__.py"
        if file.exists():
            defined = {n.name: n for n in _parsed(file).body if isinstance(n, ast.ClassDef)}
            yield from ((a.asname or a.name, defined[a.name], file) for a in node.names if a.name in defined)


def _role(definition: ast.ClassDef) -> str:
    """Task or learner; beside the learners stand dataclasses, which are parameters, and transformers."""
    methods = {n.name for n in definition.body if isinstance(n, ast.FunctionDef)}
    # as text, for it may be ``dataclass``, ``dataclasses.dataclass`` or a call of either
    if any("dataclass" in ast.unparse(decorator) for decorator in definition.decorator_list):
        return "task" if "sample" in methods else ""
    return "" if "transform" in methods else "learner"


def _summary(node: ast.Module | ast.ClassDef) -> str:
    return plain((ast.get_docstring(node) or "").split("\n")[0])
