"""The listing read from source files is what the registry imports."""

import re
import subprocess
import sys

from attnlab.common.systems import systems
from attnlab.lab import registry
from attnlab.lab.catalogue import catalogue
from attnlab.lab.formulas.plain import plain


def test_the_catalogue_is_the_registry():
    found = catalogue()
    assert found.systems.keys() == systems().keys()
    assert found.figures == {name: figure.title for name, figure in registry.figures().items()}
    for here, there in ((found.tasks, registry.tasks()), (found.learners, registry.learners())):
        here = {name: text for name, text in here.items() if name[:4] != "own."}
        named = {name: plain(registry.summary(item)) for name, item in there.items() if name[:4] != "own."}
        assert here == named


def test_a_listing_imports_nothing_heavy():
    program = (
        "import sys; from attnlab.lab.catalogue import catalogue; catalogue(); "
        "print(sorted({'jax', 'matplotlib', 'scipy', 'sklearn'} & sys.modules.keys()))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_no_raw_mathematics():
    texts = [text for group in vars(catalogue()).values() for text in group.values()]
    assert not [text for text in texts if re.search(r"[\\`$|^_]|Σ|sqrt", text)]


def test_everything_listed_has_a_description_without_markup():
    found = catalogue()
    described = found.systems | found.figures | found.tasks | found.learners
    assert not [name for name, line in described.items() if not line.strip() or "\\" in line or ":math:" in line]
