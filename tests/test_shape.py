"""The shape of the code: files of one idea, short functions, few arguments of a learner."""

import ast
from pathlib import Path

import pytest

import attnlab

SOURCE = Path(attnlab.__file__).parent
FILES = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
# Lines of a file, and of a function without its docstring.
LONGEST_FILE, LONGEST_FUNCTION = 300, 50


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring and its decorators."""
    first, documented = function.body[0], ast.get_docstring(function) is not None
    docstring = first.end_lineno - first.lineno + 1 if documented else 0
    return function.end_lineno - function.lineno + 1 - docstring


def functions(text: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_no_file_is_long():
    long = {name: lines for name, text in FILES.items() if (lines := len(text.splitlines())) > LONGEST_FILE}
    assert long == {}


def test_no_function_is_long():
    long = {
        f"{name}: {function.name}": lines
        for name, text in FILES.items()
        for function in functions(text)
        if (lines := length(function)) > LONGEST_FUNCTION
    }
    assert long == {}


def test_functions_are_short_as_a_rule():
    lengths = sorted(length(function) for text in FILES.values() for function in functions(text))
    assert lengths[len(lengths) // 2] <= 10


@pytest.mark.parametrize("docstring", ["", '    """Say\n    it."""\n'])
def test_a_docstring_is_not_counted(docstring):
    (function,) = functions(f"def f():\n{docstring}    return 1\n")
    assert length(function) == 2
