"""What Python code names, calls and says: its syntax tree with imports resolved, without comments and docstrings."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

from mleredux_audit_conduct.texts import MAX_LINE, Text

_SHELL = ("os.system(", "os.popen(", "os.exec", "subprocess.", "asyncio.create_subprocess_")
_MOST_PARTS = 200


class Unit(NamedTuple):
    """A piece of code that rules are applied to.

    Attributes:
        line: From 1.
        content: An import, a name or call with its whole name (`pandas.read_csv('a.csv')`), a command, or a string.
    """

    line: int
    form: Literal["name", "shell", "string"]
    content: str


def units_of(text: Text) -> list[Unit] | None:
    """The pieces of a program or of a notebook's cells; None where it is not Python, or can't be parsed."""
    if not text.where.endswith((".py", ".ipynb")):
        return None
    lines = text.content.splitlines()
    commands = []
    if text.where.endswith(".ipynb"):
        for number, line in enumerate(lines, start=1):
            code = line.lstrip()
            if code.startswith(("!", "%")):
                commands.append(Unit(number, "shell", code[1:MAX_LINE]))
                lines[number - 1] = line[: len(line) - len(code)] + "pass"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an agent's odd escapes are not ours to tell
            tree = ast.parse("\n".join(lines) if commands else text.content)
        return sorted([*commands, *_units(tree)])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _units(tree: ast.AST) -> Iterator[Unit]:
    aliases: dict[str, str] = {}
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            origin = f"{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
            aliases |= {item.asname or item.name: origin + item.name for item in node.names if item.asname or origin}
            yield Unit(node.lineno, "name", ast.unparse(node)[:MAX_LINE])
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call | ast.Attribute):
            name = _written(node, aliases)
            yield Unit(node.lineno, "name", name)
            if isinstance(node, ast.Call) and name.startswith(_SHELL):
                yield Unit(node.lineno, "shell", " ".join(part for part in _parts(node) if isinstance(part, str)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield Unit(node.lineno, "string", node.value[:MAX_LINE])


def _written(node: ast.expr, aliases: dict[str, str]) -> str:
    """A name or call with its whole name; of arguments, constants only, those with keywords first."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_written(node.value, aliases)}.{node.attr}"[-MAX_LINE:]
    if not isinstance(node, ast.Call):
        return "_"
    keywords = [
        f"{item.arg}={item.value.value!r:.100}" for item in node.keywords if isinstance(item.value, ast.Constant)
    ]
    shown = ", ".join([*keywords, *(f"{part!r:.200}" for part in _parts(node))])
    return f"{_written(node.func, aliases)}({shown})"[-MAX_LINE:]


def _parts(call: ast.Call) -> Iterator[object]:
    """Constants anywhere in the arguments."""
    for argument in [*call.args, *(item.value for item in call.keywords)]:
        for node in islice(ast.walk(argument), _MOST_PARTS):
            if isinstance(node, ast.Constant):
                yield node.value
