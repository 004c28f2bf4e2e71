"""List the imports that break the layers of `.importlinter`: `python tests/layers.py [--write [--raise]]`.

Each contract of layers has exceptions, `ignore_imports`, to be removed one by one. Without options, print imports
that are not listed (`+`), and listed ones that no longer exist (`-`). `--write` removes the latter; with `--raise`, the
former are added, too: a merge of several branches needs that once, a change hardly ever. Exceptions with `*` stay.
"""

from __future__ import annotations

import argparse
import configparser
import re
import sys
from pathlib import Path

import grimp

CONTRACTS = Path(__file__).parents[1] / ".importlinter"


def violations(graph: grimp.ImportGraph, layers: list[list[str]]) -> set[str]:
    """Return the imports, as `importer -> imported`, of modules in a lower layer of those in a higher one."""
    rank = {module: -level for level, layer in enumerate(layers) for module in layer}

    def level(module: str) -> int | None:
        return next((rank[each] for each in _ancestors(module) if each in rank), None)

    return {
        f"{module} -> {imported}"
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if (low := level(module)) is not None and (high := level(imported)) is not None and low < high
    }


def _ancestors(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1)]


def main() -> int:
    """Compare the exceptions with the imports, or write them; return 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="remove exceptions that are no longer needed")
    parser.add_argument("--raise", dest="rise", action="store_true", help="add those that are, too")
    options = parser.parse_args()
    contracts = configparser.ConfigParser()
    text = CONTRACTS.read_text(encoding="utf-8")
    contracts.read_string(text)
    graph = grimp.build_graph(*contracts["importlinter"]["root_packages"].split())
    differ = False
    for name, contract in contracts.items():
        if contract.get("type") == "layers":
            layers = [re.findall(r"[\w.]+", line) for line in contract["layers"].strip().splitlines()]
            actual = violations(graph, layers)
            lines = contract.get("ignore_imports", "").strip().splitlines()
            patterns = [line for line in lines if "*" in line]
            listed = set(lines).difference(patterns)
            differ |= actual != listed
            for sign, imports in (("+", actual - listed), ("-", listed - actual)):
                print("".join(f"{sign} {line}\n" for line in sorted(imports)), end="")
            text = _replaced(text, name, [*patterns, *sorted(actual if options.rise else actual & listed)])
    if options.write:
        CONTRACTS.write_text(text, encoding="utf-8")
    return 1 if differ and not options.write else 0


def _replaced(text: str, section: str, imports: list[str]) -> str:
    """Return the text of the contracts with other exceptions in a section, where they stand last."""
    start = text.index(f"[{section}]")
    end = text.find("\n[", start)
    body = text[start : end if end >= 0 else len(text)].rstrip("\n")
    body = body.partition("\nignore_imports =")[0].rstrip("\n")
    body += "".join(["\nignore_imports =", *(f"\n    {line}" for line in imports)]) if imports else ""
    return text[:start] + body + "\n" + (text[end:] if end >= 0 else "")


if __name__ == "__main__":
    sys.exit(main())
