"""Measure the size of the project against `budgets.toml`: `python tests/budget.py [--write [--raise]]`.

Without options, print what is wrong. `--write` lowers each ceiling to the present figure, and drops exceptions that are
no longer needed; with `--raise`, ceilings also rise to figures that have grown, which are printed: a merge of several
branches needs that once, a change hardly ever.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("budgets.toml")
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
GENERATED = {"_sync"}
"""Folders that are made at build time."""
MAPPED = 8
"""A package of more modules has a map."""
HEADER = """\
# How large the project may be; `tests/test_budget.py` holds it. These figures may only fall: after code is removed,
# write the new ones by `python tests/budget.py --write`. Code is lines without blank lines, comments and docstrings.
"""


def lines_of_code(text: str) -> int:
    """Return the number of lines of a module's source without blank lines, comments and docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def sources(root: Path, *folders: str) -> Iterator[Path]:
    """Yield the Python files below folders, relative to the root, without environments and generated files."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root).parts
            hidden = any(part.startswith(".") or part in ("build", "dist", "node_modules") for part in parts)
            if not hidden and not GENERATED & set(parts):
                yield path.relative_to(root)


def public_names(root: Path) -> int:
    """Return how many names plugins may import: `X` in `import X as X`, and assigned ones, of `mleredux.plugin`."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (root / "core/src/mleredux/plugin").glob("*.py")]
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assigned = [node for tree in trees for node in tree.body if isinstance(node, ast.Assign)]
    aliases = sum(name.name == name.asname for node in imports for name in node.names)
    return aliases + sum(not ast.unparse(node.targets[0]).startswith("_") for node in assigned)


def hooks(root: Path) -> int:
    """Return how many hooks plugins may implement."""
    tree = ast.parse((root / "core/src/mleredux/hookspecs.py").read_text(encoding="utf-8"))
    return sum(isinstance(node, ast.FunctionDef) and node.name.startswith("mleredux_") for node in tree.body)


def unmapped(folder: Path) -> bool:
    """Return whether a package of many modules lacks a map: a docstring that names each module and inner package."""
    members = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    members |= {path.parent.name for path in folder.glob("*/__init__.py")}
    if len(list(folder.glob("*.py"))) <= MAPPED or not (folder / "__init__.py").exists():
        return False
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    return not members <= set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", text))))


@dataclass(frozen=True)
class Budget:
    """A table of `budgets.toml`: the ceiling of each thing named in it, and of all others.

    Attributes:
        title: The table's name.
        figures: The present figure of each thing that can have a ceiling.
        limit: The ceiling of things that the table does not name; None if it must name all.
        unit: A noun for messages.
        slack: Whether a figure may be a little below its ceiling, by 1 % and 20 lines.
    """

    title: str
    figures: dict[str, int]
    limit: int | None
    unit: str
    slack: bool = False

    def lowest(self, ceiling: int) -> int:
        """Return the smallest figure for which a ceiling is still right."""
        return ceiling - ceiling // 100 - 20 if self.slack else ceiling

    def faults(self, ceilings: dict[str, int]) -> Iterator[str]:
        """Yield a sentence for each thing that is above its ceiling, or whose ceiling must fall."""
        for name, figure in self.figures.items():
            ceiling = ceilings.get(name, self.limit)
            if ceiling is None or figure > ceiling:
                yield f"{name} has {figure:,} {self.unit}; its ceiling is {ceiling or 0:,}. Make it smaller."
            elif name in ceilings and self.limit is not None and figure <= self.limit:
                yield f"{name} has {figure:,} {self.unit}, within the limit of all: remove its line in [{self.title}]."
            elif name in ceilings and figure < self.lowest(ceiling):
                yield f"{name} has only {figure:,} {self.unit}: write {figure} in [{self.title}], where {ceiling} is."
        for name in ceilings.keys() - self.figures.keys():
            yield f"{name} does not exist: remove its line in [{self.title}]."

    def lowered(self, ceilings: dict[str, int], rise: bool) -> dict[str, int]:
        """Return the ceilings at the present figures, without exceptions that are not needed; see `--write`."""
        figures = {name: figure for name, figure in self.figures.items() if self.limit is None or figure > self.limit}
        if rise:
            return figures
        return {name: min(figures[name], ceiling) for name, ceiling in ceilings.items() if name in figures}


def measured(root: Path, limits: dict[str, int]) -> list[Budget]:
    """Return the budgets with the figures of the tree at `root`."""
    code: Counter[str] = Counter()
    lines: dict[str, int] = {}
    modules: Counter[str] = Counter()
    for path in sources(root, "core", "kits", "plugins", "examples", "tests", "benchmarks", "docs"):
        text = (root / path).read_text(encoding="utf-8")
        lines[path.as_posix()] = text.count("\n")
        if "src" in path.parts:
            code["/".join(path.parts[: path.parts.index("src")])] += lines_of_code(text)
            modules[path.parent.as_posix()] += 1
    whole = {"all": sum(code.values()), "core": code.pop("core", 0)}
    maps = {folder: 1 for folder in modules if unmapped(root / folder)}
    return [
        Budget("code", whole, None, "lines of code", slack=True),
        Budget("distributions", dict(code), limits["distribution"], "lines of code", slack=True),
        Budget("folders", dict(modules), limits["folder"], "modules"),
        Budget("files", lines, limits["file"], "lines"),
        Budget("contract", {"hooks": hooks(root), "names": public_names(root)}, None, "members"),
        Budget("unmapped", maps, 0, "missing map: name each module in the docstring of its `__init__`"),
    ]


def faults(root: Path, table: dict[str, Any]) -> list[str]:
    """Return a sentence for everything in the tree that the table of budgets does not allow, and the reverse."""
    return [fault for each in measured(root, table["limits"]) for fault in each.faults(table.get(each.title, {}))]


def written(limits: dict[str, int], tables: dict[str, dict[str, int]]) -> str:
    """Return the text of `budgets.toml`."""
    parts = [HEADER]
    for title, table in {"limits": limits, **tables}.items():
        rows = table.items() if title == "limits" else sorted(table.items())
        parts.append(f"[{title}]\n" + "".join(f'"{name}" = {value}\n' for name, value in rows))
    return "\n".join(parts)


def main() -> int:
    """Check the tree, or write its figures; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="lower the ceilings to the present figures")
    parser.add_argument("--raise", dest="rise", action="store_true", help="let them rise, too")
    options = parser.parse_args()
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    if options.write:
        tables = {}
        for budget in measured(ROOT, table["limits"]):
            old = table.get(budget.title, {})
            tables[budget.title] = new = budget.lowered(old, options.rise)
            for name in sorted(new):
                if new[name] > old.get(name, budget.limit or 0):
                    print(f"[{budget.title}] {name}: {old.get(name, budget.limit)} -> {new[name]}")
        TABLE.write_text(written(table["limits"], tables), encoding="utf-8")
        table |= tables
    wrong = faults(ROOT, table)
    print("\n".join(wrong) or "within the budget")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
