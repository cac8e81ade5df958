"""Wrong signs in what decides: does some test notice? ``python -m benchmarks.mutations`` writes docs/mutations.md.

Each target is a function that decides a result. Arithmetic operators, signs, comparisons and numbers in it are changed
one at a time, in a forked process, and the tests named with it are run: a mutant that passes them has survived.
"""

from __future__ import annotations

import argparse
import ast
import copy
import datetime
import importlib
import inspect
import json
import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DATA, PAGE = ROOT / "docs/data/mutations.json", ROOT / "docs/mutations.md"
PYTEST = ("-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", "--tb=no", "-qqq")
SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
}


@dataclass(frozen=True)
class Target:
    """A function, what it decides, and the tests that must notice a change."""

    what: str
    module: str
    function: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """Module and function."""
        return f"{self.module}.{self.function}"

    @property
    def file(self) -> Path:
        """Its source, relative to the repository."""
        path = Path("src", *self.module.split("."))
        return path / "__init__.py" if (ROOT / path).is_dir() else path.with_suffix(".py")


INTERVALS = ("tests/common/test_intervals.py",)
PLANNER = ("tests/lab/plans/test_crossing.py",)
TARGETS = (
    Target("output function of softmax", "attnlab.aim.channels.measurement", "Measurement.g", ("tests/aim/channels",)),
    Target("shrinkage of eigenvalues", "attnlab.aim.spectrum.eigenvalue_cubic", "denoised", ("tests/aim/spectrum",)),
    Target("overlap map", "attnlab.slr.theory.dynamics", "descend", ("tests/slr/test_dynamics.py",)),
    Target("bound on the loss", "attnlab.mha.certificate", "empirical_bernstein", ("tests/mha/test_certificate.py",)),
    Target("excess risk bound", "attnlab.rfa.theory.bounds", "excess_risk_bound", ("tests/rfa/test_theory.py",)),
    Target("half of an interval", "attnlab.common.intervals", "half_width", INTERVALS),
    Target("spread of replicates", "attnlab.common.intervals", "spread", (*INTERVALS, "tests/common/test_claim.py")),
    Target("interval of a mean", "attnlab.common.intervals", "Replicates.interval", INTERVALS),
    Target("interval of a ratio", "attnlab.common.intervals", "LogRatio.interval", INTERVALS),
    Target("jackknife", "attnlab.common.intervals", "Jackknife.interval", INTERVALS),
    Target("dependent trials", "attnlab.common.intervals", "Share.effective", INTERVALS),
    Target("interval of a share", "attnlab.common.intervals", "Share.interval", INTERVALS),
    Target("extreme over settings", "attnlab.common.composed", "Extreme.interval", INTERVALS),
    Target("replicates that decide", "attnlab.common.power", "replicates_needed", ("tests/common/test_power.py",)),
    Target("threshold", "attnlab.common.claim", "Threshold.decide", ("tests/common/test_claim.py",)),
    Target("verdict", "attnlab.common.claim", "Claim._decide", ("tests/common/test_claim.py",)),
    Target("several claims", "attnlab.lab.claims.multiplicity", "holm", ("tests/lab/claims/test_multiplicity.py",)),
    Target("planner: next size", "attnlab.lab.plans.crossing", "next_size", PLANNER),
    Target("planner: crossing", "attnlab.lab.plans.crossing", "first_below", PLANNER),
)


@dataclass(frozen=True)
class Mutant:
    """One change of a target."""

    target: Target
    line: int
    change: str
    source: str


class _Site(ast.NodeTransformer):
    """Changes the n-th place that can be changed, and says how."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.seen, self.line, self.change = wanted, -1, 0, ""

    def _here(self, node: ast.expr) -> bool:
        self.seen += 1
        if self.seen == self.wanted:
            self.line = node.lineno
        return self.seen == self.wanted

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Another operator."""
        if type(node.op) in SWAPS and self._here(node):
            before, node.op = ast.unparse(node), SWAPS[type(node.op)]()
            self.change = f"{before} → {ast.unparse(node)}"
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """No sign."""
        if isinstance(node.op, ast.USub) and self._here(node):
            self.change = f"{ast.unparse(node)} → {ast.unparse(node.operand)}"
            return node.operand
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """The opposite comparison."""
        if type(node.ops[0]) in SWAPS and self._here(node):
            before, node.ops[0] = ast.unparse(node), SWAPS[type(node.ops[0])]()
            self.change = f"{before} → {ast.unparse(node)}"
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """One more."""
        if type(node.value) in (int, float) and self._here(node):
            self.change = f"{node.value} → {node.value + 1}"
            return ast.copy_location(ast.Constant(node.value + 1), node)
        return node


def function_of(tree: ast.Module, name: str) -> ast.FunctionDef:
    """The definition of ``f`` or ``Class.f``."""
    scope: ast.AST = tree
    for part in name.split("."):
        kinds = (ast.FunctionDef, ast.ClassDef)
        found = [n for n in ast.iter_child_nodes(scope) if isinstance(n, kinds) and n.name == part]
        if not found:
            raise LookupError(f"there is no {name}")
        scope = found[0]
    assert isinstance(scope, ast.FunctionDef)
    return scope


def plain(function: ast.FunctionDef) -> str:
    """The source of a function without its decorators."""
    function.decorator_list = []
    return ast.unparse(ast.fix_missing_locations(function))


def mutants(target: Target) -> Iterator[Mutant]:
    """All changes of a target, one at a time; the signature and the docstring are left alone."""
    tree = ast.parse((ROOT / target.file).read_text())
    for n in range(10_000):
        changed = copy.deepcopy(tree)
        function, site = function_of(changed, target.function), _Site(n)
        first = int(ast.get_docstring(function) is not None)
        function.body[first:] = [site.visit(statement) for statement in function.body[first:]]
        if not site.change:
            return
        yield Mutant(target, site.line, site.change, plain(function))


def spread(found: Sequence[Mutant], most: int) -> list[Mutant]:
    """At most so many of them, evenly spread."""
    step = max(1.0, len(found) / most)
    return [found[int(i * step)] for i in range(min(most, len(found)))]


def place(function: Callable[..., Any], source: str) -> None:
    """Give a function the body of another source, wherever it has been imported to."""
    scope = dict(vars(sys.modules[function.__module__]))
    # annotations are not evaluated: compile takes that over from this file
    exec(compile(source, "<mutant>", "exec"), scope)
    function.__code__ = scope[function.__name__].__code__


def imported(target: Target) -> Callable[..., Any]:
    """The function that runs, without its decorators."""
    found: Any = importlib.import_module(target.module)
    for part in target.function.split("."):
        found = vars(found)[part]
    return inspect.unwrap(getattr(found, "fget", None) or found)


def passes(target: Target, source: str, seconds: int) -> bool:
    """Whether the target's tests pass with this source, which this process keeps from now on."""
    # of CPU time: on a busy machine a limit of the clock would end tests that pass, and count them as noticed
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    place(imported(target), source)
    return pytest.main([*PYTEST, "-x", *target.tests]) == 0


def survives(target: Target, source: str, seconds: int) -> bool:
    """The same in a process of its own, which has all imports already; beyond the time limit it counts as noticed."""
    process = multiprocessing.get_context("fork").Process(target=lambda: sys.exit(not passes(target, source, seconds)))
    process.start()
    process.join()
    return process.exitcode == 0


def entries(outcomes: Sequence[tuple[Mutant, bool]]) -> list[dict[str, Any]]:
    """What is kept of the mutants of one target."""
    return [{"line": mutant.line, "change": mutant.change, "survived": survived} for mutant, survived in outcomes]


def page(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """What is kept of all targets, as a page of the documentation."""
    found = [(name, outcome) for name, target in kept.items() for outcome in target["outcomes"]]
    noticed = sum(not outcome["survived"] for _, outcome in found)
    lines = [
        "# Mutation checks",
        "",
        "Operators, signs, comparisons and numbers of functions that decide a result are changed one at a time, at",
        "most twelve in each function, and the fast tests of that part are run. `make mutations` renews this page.",
        f"Of {len(found)} changes {noticed} made a test fail.",
        "",
        "| what | function | changes | noticed | run |",
        "|---|---|---|---|---|",
    ]
    for name, target in kept.items():
        survived = [outcome["survived"] for outcome in target["outcomes"]]
        cells = (target["what"], f"`{name}`", len(survived), survived.count(False), target["run"])
        lines.append(f"| {' | '.join(map(str, cells))} |")
    if waiting := [f"`{target.name}`" for target in TARGETS if target.name not in kept]:
        lines += ["", f"Not run yet: {', '.join(waiting)}."]
    left = [(name, outcome) for name, outcome in found if outcome["survived"]]
    if left:
        lines += ["", "Changes that no test noticed:", "", "| function | line | change |", "|---|---|---|"]
        lines += [f"| `{name}` | {o['line']} | `{o['change'].replace('|', chr(92) + '|')}` |" for name, o in left]
    return "\n".join(lines) + "\n"


def keep(
    kept: dict[str, dict[str, Any]], target: Target, outcomes: Sequence[tuple[Mutant, bool]]
) -> dict[str, dict[str, Any]]:
    """Write what is known of a target beside the others, and the page."""
    today = datetime.date.today().isoformat()
    known = kept | {target.name: {"what": target.what, "run": today, "outcomes": entries(outcomes)}}
    ordered = {each.name: known[each.name] for each in TARGETS if each.name in known}
    DATA.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(ordered))
    return ordered


def main() -> None:
    """Run the mutants of all targets, or of those whose function is named; outcomes are kept as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="*", help="only these functions")
    parser.add_argument("--most", type=int, default=12, help="changes of one function")
    parser.add_argument("--limit", type=int, default=120, help="CPU seconds for the tests of one mutant")
    options = parser.parse_args()
    kept = json.loads(DATA.read_text()) if DATA.exists() else {}
    for target in TARGETS:
        if options.functions and target.function not in options.functions:
            continue
        pytest.main([*PYTEST, "--collect-only", "-qq", *target.tests])  # imports, with the shapes checked
        tree = ast.parse((ROOT / target.file).read_text())
        if not survives(target, plain(function_of(tree, target.function)), options.limit):
            sys.exit(f"the tests of {target.name} fail, or take more than {options.limit} s, on the code as it is")
        outcomes = []
        for mutant in spread(list(mutants(target)), options.most):
            outcomes.append((mutant, survives(target, mutant.source, options.limit)))
            word = "SURVIVED" if outcomes[-1][1] else "noticed"
            print(f"{word} {target.function}:{mutant.line} {mutant.change}", flush=True)
            kept = keep(kept, target, outcomes)
    sys.exit(int(any(outcome["survived"] for target in kept.values() for outcome in target["outcomes"])))


if __name__ == "__main__":
    main()
