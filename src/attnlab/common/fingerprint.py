"""A fingerprint of the code that a cell runs, so that a stored result is known to come from the present code.

The rule: the fingerprint of a function or class is a hash of

1. the version of attnlab;
2. its own definition and the definitions in the same file that it uses, when the file is a figure's or the user's own
   (such files also hold drawings, captions and claims, which change no result); of any other file, the whole file;
3. every module of its package and of attnlab that these import, directly or through others, as whole files.

Comments, docstrings and layout do not count, nor do attnlab's modules that describe figures, claims and drawings. Other
packages do not count; their versions are stored beside. A name that a package's ``__init__`` does not show to come from
one of its modules counts all modules of that package.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
import inspect
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LIBRARY = "attnlab"
# Rooms whose files hold more than what computes a cell.
MIXED = ("figures", "arena")
# Modules that say what a figure, a claim or a picture is; no result of a cell depends on them.
_OF_FIGURES = ("table", "figure", "drawing", "reference", "claim", "records")
_OF_CLAIMS = ("statistics", "kinds", "quantities", "intervals", "composed", "power")
DESCRIPTIONS = frozenset(f"{LIBRARY}.common.{name}" for name in _OF_FIGURES + _OF_CLAIMS)


def fingerprint(*items: Any) -> str:
    """Sixteen hexadecimal digits for the code of functions, classes or objects; see the module for the rule.

    >>> from attnlab.slr import Task
    >>> fingerprint(Task) == fingerprint(Task(d=8, L=2)) != fingerprint(fingerprint)
    True
    """
    return _of_roots(frozenset(map(_root, items)))


def library_version() -> str:
    """The version of attnlab, whose package imports this one."""
    return str(importlib.import_module(LIBRARY).__version__)


@functools.cache
def _of_roots(roots: frozenset[Any]) -> str:
    """Computed once: every cell of a figure needs it."""
    return _digest([f"{LIBRARY} {library_version()}", *sorted(text for root in roots for text in _reached(root))])


def _root(item: Any) -> Any:
    """The function or class behind a partial, a wrapper or an object."""
    while isinstance(item, functools.partial):
        item = item.func
    item = inspect.unwrap(item) if callable(item) else item
    # what an object holds is no code: its class stands for it
    return item if inspect.isclass(item) or inspect.isfunction(item) else type(item)


@functools.cache
def _reached(root: Any) -> frozenset[str]:
    """The texts that count for one function or class."""
    path = source_file(root)
    if path is None:
        return frozenset({_bytecode(root)})
    module: str = root.__module__
    if _file(module) != path:  # a user's file, which no import finds
        module = ""
    if module and not set(module.split(".")) & set(MIXED):
        return frozenset(_text(name) for name in _closure(frozenset({module})))
    # a method or an inner function counts with the whole definition that holds it
    texts, imported = _used(path, module, root.__qualname__.split(".")[0])
    return texts | {_text(name) for name in _closure(imported)}


def source_file(root: Any) -> Path | None:
    """The file of a function or class; None for what was typed at a prompt."""
    functions = [root, *vars(root).values()] if inspect.isclass(root) else [root]
    codes = [f.__code__ for f in map(_plain_function, functions) if f is not None]
    found = [Path(code.co_filename) for code in codes]
    known = _file(root.__module__)
    # A class may hold methods made elsewhere (dataclass, decorators): its module's file is taken where there is one.
    return known if known is not None else next((path for path in found if path.is_file()), None)


def _plain_function(item: Any) -> types.FunctionType | None:
    item = getattr(item, "__func__", getattr(item, "fget", getattr(item, "func", item)))
    return item if isinstance(item, types.FunctionType) else None


def _used(path: Path, module: str, name: str) -> tuple[frozenset[str], frozenset[str]]:
    """The definitions of a file that one of them uses, and the modules that these import."""
    tree = _parsed(path)
    defined = _definitions(tree)
    if name not in defined:  # a lambda has no name: the whole file counts
        defined = {name: tree.body}
    # imports inside functions count too: heavy modules are imported where they are used
    imports = {alias: home for node in ast.walk(tree) for alias, home in _aliases(node, module, path)}
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        here = waiting.pop()
        if here not in seen and here in defined:
            seen.add(here)
            waiting += [n.id for node in defined[here] for n in ast.walk(node) if isinstance(n, ast.Name)]
    nodes = [node for key in sorted(seen) for node in defined[key]]
    names = {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}
    homes = {home for alias in names & imports.keys() for home in imports[alias]}
    return frozenset(map(_serial, nodes)), frozenset(homes)


def _definitions(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """The statements that give each name of a module its value."""
    found: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            # imports count by the modules behind them, see _used
            continue
        else:
            names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        for name in names:
            found.setdefault(name, []).append(node)
    return found


def _closure(modules: frozenset[str]) -> frozenset[str]:
    """The modules and all that they import, through any number of steps."""
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in seen | DESCRIPTIONS:
            seen.add(module)
            waiting += _imports(module)
    return frozenset(seen)


@functools.cache
def _imports(module: str) -> frozenset[str]:
    """The modules of its package and of attnlab that a module imports."""
    path = _file(module)
    if path is None:
        return frozenset()
    nodes = ast.walk(_parsed(path))
    return frozenset(home for node in nodes for _, homes in _aliases(node, module, path) for home in homes)


def _aliases(node: ast.AST, module: str, path: Path) -> Iterator[tuple[str, list[str]]]:
    """What an import binds, with the modules it comes from."""
    # a plug-in's own modules count beside attnlab's
    packages = {LIBRARY, module.split(".")[0]}
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] in packages:
                yield alias.asname or alias.name.split(".")[0], _homes(alias.name, "")
    elif isinstance(node, ast.ImportFrom):
        origin = _origin(node, module, path)
        if origin.split(".")[0] in packages:
            for alias in node.names:
                yield alias.asname or alias.name, _homes(origin, alias.name)


def _origin(node: ast.ImportFrom, module: str, path: Path) -> str:
    """The absolute name behind ``from``."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    # one dot in an __init__ is the package itself, in a module its parent
    parts = parts[: len(parts) - node.level + (path.stem == "__init__")]
    return ".".join([*parts, node.module] if node.module else parts)


def _homes(origin: str, name: str) -> list[str]:
    """The modules that ``from origin import name`` takes the name from."""
    if name and _file(f"{origin}.{name}"):
        return _homes(f"{origin}.{name}", "")  # the name is a module, or a package in turn
    path = _file(origin)
    if path is None or path.stem != "__init__":
        return [origin] if path else []
    shown = _shown(origin)
    if name in shown:
        return shown[name]
    if not name and shown:
        # ``import package`` may use any of its public names
        return sorted({home for homes in shown.values() for home in homes} | {origin})
    # The root holds the version only; another package may find its modules by itself.
    return [] if origin == LIBRARY else [f"{origin}.{file.stem}" for file in sorted(path.parent.glob("[!_]*.py"))]


@functools.cache
def _shown(package: str) -> dict[str, list[str]]:
    """The public names of a package and the modules they come from, by its stub or its ``__init__``."""
    path = _file(package)
    if path is None or package == LIBRARY:
        return {}
    stub = path.with_suffix(".pyi")
    nodes = _parsed(stub if stub.exists() else path).body
    return {
        alias.asname or alias.name: _homes(_origin(node, package, path), alias.name)
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        # with the dot behind, for the name of one package may begin another's
        if f"{_origin(node, package, path)}.".startswith(f"{package}.")
    }


@functools.cache
def _file(module: str) -> Path | None:
    """The file of an importable module, found without importing it."""
    top, *rest = module.split(".")
    folder = _folder(top)
    if folder is None:
        return None
    if folder.is_file():
        return folder if not rest else None
    place = folder.joinpath(*rest)
    # in the order in which Python looks: a package hides a module of its name
    candidates = (place / "__init__.py", place.with_suffix(".py"))
    return next((path for path in candidates if path.is_file()), None)


@functools.cache
def _folder(package: str) -> Path | None:
    """The folder of a package, or the file of a module that is alone."""
    try:
        spec = importlib.util.find_spec(package)
    except (ValueError, ImportError):
        return None
    if spec is None or spec.origin is None:
        return None
    origin = Path(spec.origin)
    return origin.parent if spec.submodule_search_locations else origin


@functools.cache
def _text(module: str) -> str:
    path = _file(module)
    return f"{module}:{_serial(_parsed(path))}" if path else module


def _parsed(path: Path) -> ast.Module:
    """The syntax tree of a file without docstrings, as the file is now: a user's own may be edited and loaded again."""
    status = path.stat()
    return _parsed_once(path, status.st_mtime_ns, status.st_size)


@functools.cache
def _parsed_once(path: Path, written: int, size: int) -> ast.Module:
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            # a body that was a docstring alone counts as ``pass``
            node.body = [statement for statement in node.body if not _is_text(statement)] or [ast.Pass()]
    return tree


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _serial(node: Any) -> str:
    """A syntax tree as text that is the same under every Python: fields that are empty are left out."""
    if isinstance(node, ast.AST):
        # newer Pythons add fields, such as type_params, that are empty in older code; ctx follows from the place
        fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []) and name != "ctx")
        return f"{type(node).__name__}({','.join(f'{name}={_serial(value)}' for name, value in fields)})"
    return f"[{','.join(map(_serial, node))}]" if isinstance(node, list) else repr(node)


def _bytecode(root: Any) -> str:
    """What stands for the source of something typed at a prompt: the instructions of its functions."""
    items = vars(root).items() if inspect.isclass(root) else [(root.__name__, root)]
    functions = {name: f for name, item in items if (f := _plain_function(item)) is not None}
    return ";".join(f"{name}:{_instructions(f.__code__)}" for name, f in sorted(functions.items()))


def _instructions(code: types.CodeType) -> str:
    # the text of a code object holds its address in memory, which differs in every process
    nested = [_instructions(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    # instructions refer to constants and names by their number only
    return f"{code.co_code.hex()}{code.co_names}{nested}"


def _digest(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
