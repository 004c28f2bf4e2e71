"""Find the files next to a script that belong to it: modules that it imports, and files that it names."""

from __future__ import annotations

import ast
import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from mleredux_rollout.scopes import UNKNOWN, Scope
from mleredux_rollout.texts import MAX_TEXT, code_cells

REQUIREMENTS = "requirements.txt"
LEFT_OUT = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".pytest_cache"})
"""Folders that never belong to a program."""
MAX_NAMED = 1 << 20
"""Maximum size in bytes of a file that is not a program, or of a folder, that a script names."""
_OMITTED = (
    "{name} next to {script} is left out: with a script, only programs, and files and folders of up to 1 MB that it "
    "names are copied. Specify the folder as the agent to include everything."
)
_PROGRAMS = (".py", ".ipynb", ".sh", ".bash", ".r", ".jl", ".pl", ".rb", ".js", ".lua")
_WORD = re.compile(r"[\w.+-]+")
_MAGIC = re.compile(r"(?m)^([ \t]*)(?:[%!?]|[\w ,.*\[\]]+=[ \t]*[%!]|.*\?[ \t]*$)(?:.*\\\n)*.*$")
"""A line that only IPython understands: `!ls`, `files = !ls`, `%time f()`, `f?`."""
_CELL_MAGIC = re.compile(r"\s*%%(?!(?:time|timeit|capture|prun)\b)")
"""The start of a notebook cell that is not Python."""
_LOADERS = ("import_module", "__import__", "run_path", "run_module", "spec_from_file_location", "iter_modules")
_IMPORTED = re.compile(r"(?:\bimport|\bfrom|-m|%run(?:\s+-\w+)*|%load_ext|%aimport)\s+(\w+)")
_COMPUTED = re.compile(r"(?:\*|[%}]\w*|\$\w+)[\w.-]*\.(?:py|sh|ipynb)\b")
"""A program name that is known only at run time: `*.py`, `{}.py`, `stage_$i.py`."""


@dataclass
class _Needs:
    """A program's needs: names of modules, words that may be file names, and whether it chooses modules at run time."""

    modules: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    unclear: bool = False


@dataclass(frozen=True)
class Beside:
    """The files next to a script.

    Attributes:
        names: Names of files and folders in the script's folder that belong to it, with the script itself.
        remarks: A sentence for each other file or folder that the script names, by its name.
    """

    names: frozenset[str]
    remarks: dict[str, str]


def find_beside(script: Path) -> Beside:
    """Find the files and folders in a script's folder that belong to it.

    These are modules and packages that it imports, directly or indirectly; programs and small files whose names occur
    in its text; small folders whose name occurs there, as does the name of a file in them; and `requirements.txt`. If
    it may choose modules at run time, all modules and packages next to it belong to it. Links out of the folder
    count only if they lead to programs or packages. Nothing is executed.
    """
    present = {path.name: path for path in script.parent.iterdir() if path.name not in LEFT_OUT}
    beside = {name: path for name, path in present.items() if _belongs(path)}
    names, words, waiting = {script.name}, set[str](), [script]
    while waiting:
        for program in _programs(waiting.pop()):
            needs = _needs_of(program)
            words |= needs.words
            added = _names(needs, beside) - names
            names |= added
            waiting += [beside[name] for name in added]
    names |= {REQUIREMENTS} & beside.keys()
    omitted = sorted(name for name in words & present.keys() - names if present[name].is_dir() or _is_input(name))
    return Beside(frozenset(names), {name: _OMITTED.format(name=name, script=script.name) for name in omitted})


def files_beside(script: Path) -> frozenset[str]:
    """Return the names of the files and folders that belong to a script, as `find_beside` finds them."""
    return find_beside(script).names


def _belongs(path: Path) -> bool:
    """Return whether a path is a file or folder; for a link out of its folder, whether it is a program or package."""
    target = Path(os.path.realpath(path))  # `resolve` refuses circles
    if not path.is_symlink() or target.is_relative_to(path.parent.resolve()):
        return path.is_file() or path.is_dir()
    return (target.is_file() and target.suffix.lower() in _PROGRAMS) or (target / "__init__.py").is_file()


def _programs(place: Path) -> Iterator[Path]:
    """Yield a program, or the programs of a package."""
    if not place.is_dir():
        yield place
        return
    for path in sorted(place.rglob("*.py")):
        if not LEFT_OUT.intersection(path.relative_to(place).parts):
            yield path


def _names(needs: _Needs, beside: dict[str, Path]) -> set[str]:
    matches = set()
    for name, path in beside.items():
        module = name.partition(".")[0] if path.is_file() else name
        if path.is_dir():
            is_package = (path / "__init__.py").is_file()
            wanted = module in needs.modules or (needs.unclear and is_package)
            wanted = wanted and next(path.rglob("*.py"), None) is not None
            # sys.path.append("src"), open("conf/settings.json")
            named = name in needs.words and (_has_modules(path) or _has_inputs(path, needs.words))
        else:
            is_program = path.suffix.lower() in _PROGRAMS
            wanted = path.suffix in (".py", ".so") and (module in needs.modules or needs.unclear)
            named = name in needs.words and _is_input(name) and (is_program or path.stat().st_size <= MAX_NAMED)
        if wanted or named:
            matches.add(name)
    return matches


def _is_input(name: str) -> bool:
    """Return whether a word may be the name of a file that a script reads."""
    return "." in name and not name.startswith("submission")


def _has_inputs(folder: Path, words: set[str]) -> bool:
    """Return whether a folder is small, and a file in it is named by one of the words."""
    size, is_named = 0, False
    for path in folder.rglob("*"):
        size += path.lstat().st_size + 1
        if size > MAX_NAMED:
            return False
        is_named |= path.name in words and _is_input(path.name)
    return is_named


def _has_modules(folder: Path) -> bool:
    """Return whether a folder has modules, or packages with modules."""
    return any(next(folder.glob(pattern), None) is not None for pattern in ("*.py", "*/*.py"))


def _has_first_line(program: Path) -> bool:
    with program.open("rb") as file:
        return file.read(2) == b"#!"


def _needs_of(program: Path) -> _Needs:
    if program.suffix.lower() not in _PROGRAMS and not _has_first_line(program):
        return _Needs()
    with program.open("rb") as file:
        cells = code_cells(program.name, file.read(MAX_TEXT + 1))
    if program.suffix not in (".py", ".ipynb"):
        return _of_text("\n".join(cells))
    needs = _Needs()
    if program.suffix == ".ipynb":
        parts = [_split(cell) for cell in cells]
        cells, needs = [code for code, _ in parts], _of_text("\n".join(magics for _, magics in parts))
    text = "\n".join(cells)
    tree = _parse(text)
    if tree is None:
        return _Needs(needs.modules, needs.words | _of_text(text).words, unclear=True)
    scope = Scope(tree)
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            needs.modules |= {item.name.partition(".")[0] for item in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module] if node.module else [item.name for item in node.names]
            needs.modules |= {name.partition(".")[0] for name in modules}
        elif isinstance(node, ast.Call):
            _add_call(needs, scope, node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            named = _of_text(node.value)
            needs.words |= named.words | {node.value}
            needs.modules |= named.modules
            needs.unclear |= named.unclear or node.value in _PROGRAMS
        elif isinstance(node, ast.List | ast.Tuple):  # [sys.executable, "-m", "package.module"]
            texts = [scope.value(item) or "" for item in node.elts]
            needs.modules |= {name.partition(".")[0] for flag, name in pairwise(texts) if flag == "-m"}
        elif isinstance(node, ast.JoinedStr):
            last = node.values[-1] if node.values else None
            ending = str(last.value) if isinstance(last, ast.Constant) else ""
            needs.unclear |= ending.endswith(_PROGRAMS) and "/" not in ending
    return needs


def _parse(text: str) -> ast.Module | None:
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.parse(text)
    return None


def _split(cell: str) -> tuple[str, str]:
    """Split a cell of a notebook into Python code and lines that only IPython understands."""
    if _parse(cell):
        return cell, ""
    if _CELL_MAGIC.match(cell):
        return "", cell
    return _MAGIC.sub(r"\1pass", cell), "\n".join(line[0] for line in _MAGIC.finditer(cell))


def _add_call(needs: _Needs, scope: Scope, call: ast.Call) -> None:
    """Add a module that a call loads by name."""
    called = (scope.name(call.func) or "").rpartition(".")[2]
    if called not in _LOADERS:
        return
    value = scope.value(call.args[0]) if call.args else None
    if value is None or UNKNOWN in value:
        needs.unclear = True
    else:
        needs.modules.add(value.lstrip(".").partition(".")[0])


def _of_text(text: str) -> _Needs:
    """Return the needs of text that is not a Python program, from its words."""
    return _Needs(set(_IMPORTED.findall(text)), set(_WORD.findall(text)), _COMPUTED.search(text) is not None)
