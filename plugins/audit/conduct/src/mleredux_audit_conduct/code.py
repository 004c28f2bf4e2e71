"""Names, calls and strings in Python code: its syntax tree with names resolved and constants folded."""

from __future__ import annotations

import ast
import builtins
import contextlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from mleredux_rollout import MAX_LINE, Scope, Text, parse_python

_SHELL = ("os.system(", "os.popen(", "os.exec", "subprocess.", "asyncio.create_subprocess_")
_EXECUTES = ("exec(", "eval(", "builtins.exec(", "builtins.eval(")
_DEEPEST = 3
"""Maximum depth of programs within programs."""
_MOST_PARTS = 200


class Unit(NamedTuple):
    """A piece of code that rules are applied to.

    Attributes:
        line: Line number, from 1.
        content: An import, a name or call with its qualified name (`pandas.read_csv('a.csv')`), a command, or a string.
    """

    line: int
    form: Literal["name", "shell", "string"]
    content: str


def units_of(text: Text) -> Sequence[Unit] | None:
    """Return the units of a program or of a notebook's cells; None if it is not Python or can't be parsed."""
    if not text.where.endswith((".py", ".ipynb")):
        return None
    return _units_of(text.content, text.where.endswith(".ipynb"))


@lru_cache(maxsize=32)  # several rules read a run's code, and runs of an experiment often have the same code
def _units_of(content: str, notebook: bool) -> Sequence[Unit] | None:
    lines = content.splitlines()
    commands = []
    if notebook:
        for number, line in enumerate(lines, start=1):
            code = line.lstrip()
            if code.startswith(("!", "%")):
                commands.append(Unit(number, "shell", code[1:MAX_LINE]))
                lines[number - 1] = line[: len(line) - len(code)] + "pass"
    tree = parse_python("\n".join(lines) if commands else content)
    with contextlib.suppress(ValueError, RecursionError, MemoryError):
        return tuple(sorted([*commands, *_units(tree)])) if tree else None
    return None


def _units(tree: ast.AST, depth: int = 0) -> Iterator[Unit]:
    scope = Scope(tree)
    docstrings, nodes = set(), list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield Unit(node.lineno, "name", ast.unparse(node)[:MAX_LINE])
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(node.value)
    for node in nodes:
        if isinstance(node, ast.Call | ast.Attribute):
            name = _written(node, scope)
            yield Unit(node.lineno, "name", name)
            if isinstance(node, ast.Call) and name.startswith(_SHELL):
                yield Unit(node.lineno, "shell", " ".join(part for part in _parts(node) if isinstance(part, str)))
            if isinstance(node, ast.Call) and name.startswith(_EXECUTES) and node.args:
                yield from _executed(node, scope, depth)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield Unit(node.lineno, "string", node.value[:MAX_LINE])
        if isinstance(node, ast.Call | ast.BinOp | ast.JoinedStr) and (value := scope.value(node)):
            yield Unit(node.lineno, "string", value[:MAX_LINE])


def _executed(call: ast.Call, scope: Scope, depth: int) -> Iterator[Unit]:
    """Return the units of an executed constant program."""
    inner = call.args[0]
    if isinstance(inner, ast.Call) and scope.name(inner.func) in ("compile", "builtins.compile") and inner.args:
        inner = inner.args[0]
    program = scope.value(inner)
    if program is not None and depth < _DEEPEST and (tree := parse_python(program)):
        for unit in _units(tree, depth + 1):
            yield unit._replace(line=call.lineno)


def _written(node: ast.expr, scope: Scope) -> str:
    """Return a name or call with its qualified name; of its arguments, only constants are included, keywords first."""
    if isinstance(node, ast.Call) and (name := scope.name(node)) is not None:
        return name[-MAX_LINE:]
    if isinstance(node, ast.Name):
        if node.id not in scope.aliases and len(scope.stars) == 1 and not hasattr(builtins, node.id):
            return f"{scope.stars[0]}.{node.id}"
        return scope.aliases.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_written(node.value, scope)}.{node.attr}"[-MAX_LINE:]
    if isinstance(node, ast.Subscript):
        return scope.name(node) or "_"
    if not isinstance(node, ast.Call):
        return "_"
    keywords = [
        f"{item.arg}={item.value.value!r:.100}" for item in node.keywords if isinstance(item.value, ast.Constant)
    ]
    shown = ", ".join([*keywords, *(f"{part!r:.200}" for part in _parts(node))])
    return f"{_written(node.func, scope)}({shown})"[-MAX_LINE:]


def _parts(call: ast.Call) -> Iterator[object]:
    """Return constants anywhere in the arguments."""
    for argument in [*call.args, *(item.value for item in call.keywords)]:
        for node in islice(ast.walk(argument), _MOST_PARTS):
            if isinstance(node, ast.Constant):
                yield node.value
