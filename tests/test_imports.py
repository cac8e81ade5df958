"""Imports point one way: cli -> explore -> persist, lab -> systems -> common.

In a system: explorer -> figures -> learners -> theory -> task. The source is parsed, not imported, so an import
inside a function counts like one at the top.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import attnlab

SOURCE = Path(attnlab.__file__).parent
SYSTEMS = tuple(path.name for path in SOURCE.iterdir() if (path / "task.py").exists() or (path / "task").exists())
HEAVY = ("jax", "matplotlib", "sklearn", "scipy.stats")

# Each layer may import itself and the layers before it; systems do not know each other.
LAYERS = ("common", "system", "lab", "persist", "explore", "cli")
# What a room of a system must not reach, directly or through others. Files beside the rooms are "beside".
CLOSED = {
    "task": ("learners", "theory", "figures"),
    "learners": ("figures",),  # a learner may use the formulas of theory
    "theory": ("learners", "figures"),
    "figures": ("explorer",),
    "explorer": (),
    "beside": ("figures", "explorer"),
}


def module_name(path: Path, root: Path) -> str:
    parts = [root.name, *path.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Tree:
    """The modules of a package and what each imports from it."""

    def __init__(self, root: Path) -> None:
        self.package = root.name
        self.files = {module_name(path, root): path for path in sorted(root.rglob("*.py"))}
        self.imports = {name: set(self._imported(name, path)) for name, path in self.files.items()}

    def _imported(self, name: str, path: Path) -> Iterator[str]:
        """Modules of the package that the file names; a lazy package's public name counts as the module it is from."""
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name.split(".")[0] == self.package)
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(node, name, path)
                if origin.split(".")[0] == self.package:
                    yield from (self._home(origin, alias.name) for alias in node.names)

    def _origin(self, node: ast.ImportFrom, name: str, path: Path) -> str:
        """The absolute name behind ``from``."""
        if not node.level:
            return node.module or ""
        parts = name.split(".")
        parts = parts[: len(parts) - node.level + (path.stem == "__init__")]
        return ".".join([*parts, node.module] if node.module else parts)

    def _home(self, origin: str, public: str) -> str:
        """The module that ``from origin import public`` loads."""
        if f"{origin}.{public}" in self.files:
            return f"{origin}.{public}"
        stub = self.files[origin].with_suffix(".pyi") if origin in self.files else None
        if stub and stub.stem == "__init__" and stub.exists():
            for node in ast.parse(stub.read_text()).body:
                if isinstance(node, ast.ImportFrom) and public in {a.asname or a.name for a in node.names}:
                    return self._origin(node, origin, stub)
        # The version is the one thing that the root itself holds.
        return "" if (origin, public) == (self.package, "__version__") else origin

    def paths_from(self, start: str, within: str) -> Iterator[list[str]]:
        """One chain of imports to each module under ``within`` that loading ``start`` loads."""
        chains, seen = [[start]], {start}
        while chains:
            chain = chains.pop()
            loaded = set(self.imports.get(chain[-1], ())) | {chain[-1].rpartition(".")[0]}
            for module in sorted(loaded - seen):
                if f"{module}.".startswith(within):
                    seen.add(module)
                    chains.append([*chain, module])
                    yield chains[-1]


def layer(module: str) -> tuple[str, str]:
    """The layer of a module, and the system it belongs to, if any."""
    top = module.split(".")[1] if "." in module else ""
    if top in SYSTEMS:
        return "system", top
    return ("cli" if top.startswith(("cli", "__main__")) else top), ""


def room(module: str) -> str:
    """The room of a system's module."""
    first = [*module.split("."), ""][2]
    return first if first in CLOSED else "beside"


def violations(root: Path) -> list[str]:
    """Every import that points the wrong way, as a sentence."""
    tree, found = Tree(root), []
    for module in tree.files:
        here, system = layer(module)
        if not here:
            continue
        if here not in LAYERS:
            found.append(f"{module} belongs to no layer")
            continue
        for target in sorted(tree.imports[module] - {""}):
            there, other = layer(target)
            allowed = LAYERS[: LAYERS.index(here) + 1]
            if there not in allowed or (here == "system" and there == "system" and system != other):
                found.append(f"{module} imports {target}")
            # A lazy package opens every room at once.
            elif (
                here == "system"
                and target == f"{tree.package}.{system}"
                and room(module) not in ("figures", "explorer")
            ):
                found.append(f"{module} imports its whole system")
    for system in SYSTEMS:
        within = f"{tree.package}.{system}."
        for module in tree.files:
            if f"{module}.".startswith(within):
                closed = CLOSED.get(room(module), ())
                chains = [c for c in tree.paths_from(module, within) if room(c[-1]) in closed]
                found += [f"{' -> '.join(c)} reaches {room(c[-1])}" for c in chains[:1]]
    return found


def test_imports_point_one_way():
    assert not violations(SOURCE)


def write(root: Path, files: dict[str, str]) -> Path:
    """A small package in which all is well, with some files replaced."""
    good = {
        "__init__.py": "__version__ = '1'",
        "common/__init__.py": "",
        "common/seeds.py": "import numpy",
        "slr/__init__.py": "import lazy_loader",
        "slr/__init__.pyi": "from . import theory as theory\nfrom .task import Task\nfrom .learners import L as L",
        "slr/task.py": "from attnlab.common.seeds import generator",
        "slr/spectrum.py": "from .task import Task",
        "slr/learners/__init__.py": "from .amp import L",
        "slr/learners/amp.py": "from ..spectrum import edges\nfrom attnlab.slr import Task",
        "slr/theory.py": "from attnlab.slr import spectrum\nfrom attnlab import __version__",
        "slr/figures.py": "from attnlab.slr import theory\nfrom attnlab.slr.learners import L",
        "aim/__init__.py": "",
        "aim/task.py": "",
        "lab/__init__.py": "",
        "lab/registry.py": "from attnlab import slr, aim\nimport attnlab.common.seeds",
        "persist.py": "from attnlab.lab import registry",
        "cli.py": "from attnlab import lab, persist",
    }
    for name, text in (good | files).items():
        path = root / "attnlab" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "attnlab"


def test_a_good_tree_has_no_violations(tmp_path):
    assert violations(write(tmp_path, {})) == []


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("common/seeds.py", "from attnlab.slr.task import Task", "attnlab.common.seeds imports attnlab.slr.task"),
        ("common/seeds.py", "from ..lab import registry", "attnlab.common.seeds imports attnlab.lab.registry"),
        ("common/seeds.py", "import attnlab", "attnlab.common.seeds imports attnlab"),
        ("slr/task.py", "import attnlab.aim.task", "attnlab.slr.task imports attnlab.aim.task"),
        ("slr/task.py", "from attnlab import aim", "attnlab.slr.task imports attnlab.aim"),
        ("slr/figures.py", "def run():\n    from attnlab.lab import run", "attnlab.slr.figures imports attnlab.lab"),
        ("lab/registry.py", "import attnlab.cli", "attnlab.lab.registry imports attnlab.cli"),
        ("lab/registry.py", "from attnlab import persist", "attnlab.lab.registry imports attnlab.persist"),
        ("slr/theory.py", "import attnlab.slr as slr", "attnlab.slr.theory imports its whole system"),
        ("slr/task.py", "from attnlab import slr", "attnlab.slr.task imports its whole system"),
        ("utils.py", "", "attnlab.utils belongs to no layer"),
        ("slr/task.py", "from .theory import risk", "attnlab.slr.task -> attnlab.slr.theory reaches theory"),
        ("slr/theory.py", "from .figures import FIGURES", "attnlab.slr.theory -> attnlab.slr.figures reaches figures"),
        ("slr/spectrum.py", "from . import figures", "attnlab.slr.spectrum -> attnlab.slr.figures reaches figures"),
        (
            "slr/theory.py",
            "def f():\n    from attnlab.slr.learners import L",
            "attnlab.slr.theory -> attnlab.slr.learners reaches learners",
        ),
        ("slr/theory.py", "from attnlab.slr import L", "attnlab.slr.theory -> attnlab.slr.learners reaches learners"),
        (
            "slr/learners/amp.py",
            "from ..figures import FIGURES",
            "attnlab.slr.learners.amp -> attnlab.slr.figures reaches figures",
        ),
        (
            "slr/spectrum.py",
            "from .learners.amp import L",
            "attnlab.slr.theory -> attnlab.slr.spectrum -> attnlab.slr.learners.amp reaches learners",
        ),
        (
            "slr/__init__.py",
            "from .figures import FIGURES",
            "attnlab.slr.task -> attnlab.slr -> attnlab.slr.figures reaches figures",
        ),
    ],
)
def test_a_wrong_import_is_found(file, text, said, tmp_path):
    assert said in violations(write(tmp_path, {file: text}))


def heavy_after(code: str) -> list[str]:
    """The heavy packages that a fresh Python has loaded after running ``code``."""
    report = f"print([name for name in {HEAVY} if name in sys.modules])"
    command = [sys.executable, "-c", f"import sys\n{code}\n{report}"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return ast.literal_eval(run.stdout.splitlines()[-1])


def test_importing_attnlab_loads_nothing_heavy():
    assert heavy_after("import attnlab; attnlab.rfa, attnlab.mha, attnlab.slr, attnlab.aim, attnlab.lab") == []


def test_the_report_of_figures_imports_no_learners():
    # 120 MB of a driver whose cells are computed by workers
    assert not {"sklearn", "jax"} & set(heavy_after("import attnlab.lab.page"))


@pytest.mark.parametrize(
    "words",
    [["--help"], ["list"], ["theory", "aim.mmse", "--alpha", "0.2", "--rho", "0.5"]],
    ids=lambda words: words[0],
)
def test_a_command_loads_nothing_heavy_that_it_does_not_need(words):
    run_main = "from attnlab.cli import main\ntry: main()\nexcept SystemExit as end: assert not end.code"
    assert heavy_after(f"sys.argv = {['attnlab', *words]}\n{run_main}") == []


def test_heavy_modules_would_be_noticed():
    assert "sklearn" in heavy_after("import sklearn.base")
