"""``python -m benchmarks [--only rfa,aim] [--json out.json]``: the same as ``attnlab bench``."""

from __future__ import annotations

import sys

from attnlab.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench"]
    main()
