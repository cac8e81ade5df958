"""
Notebook 2: run a figure, read its numbers, export them
=======================================================

A figure of a paper with other settings, as a table, as a picture, and as a file for LaTeX.
"""

# %%
# ``lab.run`` shows progress while it computes. The result prints as a table of verdicts and the picture.
# Changed settings have numbers and no verdicts: thresholds are registered for the figure's own settings.

from attnlab import lab

result = lab.run("slr.manifold", set={"d": 100, "seeds": 3})
result

# %%
# The records, one row for each run.

records = result.to_pandas()
records[["d", "L", "lam", "run", "kappa", "nu", "risk"]].head()

# %%
# The table behind the picture: every point, line and band with its series and its source.

import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
lab.report([result], folder)
table = lab.load(folder / "slr.manifold.csv")
table.groupby(["panel", "kind", "source"]).size()

# %%
# The same for a paper: a booktabs table and a pgfplots picture stand beside the CSV file.

print(sorted(path.name for path in folder.glob("slr.manifold.*")))
print((folder / "slr.manifold.tex").read_text()[:400])
