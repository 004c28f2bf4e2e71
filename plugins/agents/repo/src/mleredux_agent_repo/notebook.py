"""Runs a notebook's code cells in order: given to `python -c` in the agent's environment, without mleredux.

Shell and magic lines (`!pip …`, `%matplotlib …`) and cells of other languages (`%%bash`) are skipped.
"""

import json
import linecache
import sys
from pathlib import Path

path = Path(sys.argv[1])
sys.argv = sys.argv[1:]
sys.path[0] = str(path.parent)
names = {"__name__": "__main__", "__file__": str(path), "display": print}
with path.open(encoding="utf-8") as file:
    cells = json.load(file)["cells"]
for number, cell in enumerate(cells, 1):
    source = "".join(cell["source"])
    if cell["cell_type"] != "code" or source.startswith("%%"):
        continue
    lines = [("#" if line.lstrip()[:1] in ("%", "!") else "") + line for line in source.splitlines(True)]
    shown = f"{path.name}[{number}]"
    linecache.cache[shown] = (len(source), None, lines, shown)
    exec(compile("".join(lines), shown, "exec"), names)
