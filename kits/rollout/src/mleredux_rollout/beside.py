"""Find the files next to a script that belong to it: modules that it imports, and files that it names."""

from __future__ import annotations

import ast
import fnmatch
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from mleredux_rollout.scopes import UNKNOWN, Scope
from mleredux_rollout.texts import MAX_TEXT, code_cells, parse_python

REQUIREMENTS = "requirements.txt"
LEFT_OUT = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".pytest_cache"})
"""Folders that never belong to a program."""
MAX_NAMED = 1 << 20
"""Maximum size in bytes of a file that is not a program, or of a folder, that a script names."""
_OMITTED = (
    "{name} next to {script} is left out: with a script, only programs, and files and folders of up to 1 MB that it "
    "names are copied. Specify the folder as the agent to include everything."
)
_MODULES = (".py", ".pyx", ".so")
_PROGRAMS = (".py", ".ipynb", ".sh", ".bash", ".r", ".jl", ".pl", ".rb", ".js", ".lua")
_MAX_SETTINGS = 64 << 10
"""Maximum size in bytes of a file that is not a program, and may name other files."""
_MOST_NAMED = 100
"""Maximum number of files that a pattern such as `fold_*.csv` adds."""
_WORD = re.compile(r"[\w.+-]+")
_VARIABLE = re.compile(r"%[-+ #0]*\d*[a-z]\b|%[sd]|\$?\{[^{}]*\}|\$\w+")
"""A part of a file name that is known only at run time: `%02d`, `{name}`, `$i`."""
_PATTERN = re.compile(r"[^\s/\\'\",=:;\0]*\*[^\s/\\'\",=:;\0]*")
_NAMED_PATTERN = re.compile(r".*\w.*\.\w+")
_MAGIC = re.compile(r"(?m)^([ \t]*)(?:[%!?]|[\w ,.*\[\]]+=[ \t]*[%!]|.*\?[ \t]*$)(?:.*\\\n)*.*$")
"""A line that only IPython understands: `!ls`, `files = !ls`, `%time f()`, `f?`."""
_CELL_MAGIC = re.compile(r"\s*%%(?!(?:time|timeit|capture|prun)\b)")
"""The start of a notebook cell that is not Python."""
_COMMENT = re.compile(r"(?m)^[ \t]*#+[ \t].*$")
"""A line of a program that is a comment in most languages without a parser here, such as shells, R and Perl."""
_LOADERS = ("import_module", "__import__", "run_path", "run_module", "spec_from_file_location", "iter_modules")
_FINDERS = ("resolve_name", "locate", "find_spec", "import_string", "load_source", "SourceFileLoader")
"""Functions that are also called for other purposes than to load a module that is next to the program."""
_IMPORTED = re.compile(r"(?:\bimport|\bfrom|%run(?:\s+-\w+)*|%load_ext|%aimport)\s+(\w+)")
_RUN = re.compile(r"""(?:(?<!\S)-m\s|_target_["']?:)\s*["']?(\w+)""")
"""A module in any text: `python -m module` in a Makefile, or a class in settings of Hydra."""
_OBJECT = re.compile(r"(?:^|\0)(\w+)(?:\.\w+)*:[\w.]+(?=$|\0)")
"""The name of an object in a module: `module.inner:function`."""
_IMPLIED = {"make": ("Makefile", "makefile", "GNUmakefile")}
"""Files that a command reads although it is called without their names."""
_COMPUTED = re.compile(r"(?:\*|[%}]\w*|\$\w+)[\w.-]*\.(?:py|sh|ipynb)\b")
"""A program name that is known only at run time: `*.py`, `{}.py`, `stage_$i.py`."""


@dataclass
class _Needs:
    """The needs of programs: names of modules, texts with file names, and whether modules are chosen at run time."""

    modules: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    text: str = ""
    unclear: bool = False

    def add(self, other: _Needs) -> None:
        """Add the needs of another program."""
        self.modules |= other.modules
        self.words |= other.words
        self.text += f"\n{other.text}"
        self.unclear |= other.unclear

    def mentions(self, name: str) -> bool:
        """Return whether a file name, which may contain blanks and brackets, occurs in the texts."""
        return self.words.issuperset(_WORD.findall(name)) and name in self.text

    def patterns(self) -> set[str]:
        """Return patterns of file names with a suffix, such as `fold_*.csv`; `*.csv` may refer to any data."""
        return {pattern for pattern in _PATTERN.findall(_VARIABLE.sub("*", self.text)) if _NAMED_PATTERN.match(pattern)}


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
    names, needs, waiting, omitted = {script.name}, _Needs(), [script], set[str]()
    while waiting:
        for program in _programs(waiting.pop()):
            needs.add(_needs_of(program, len(program.relative_to(script.parent).parts) - 1))
        matches, omitted = _names(needs, beside)
        waiting += [beside[name] for name in matches - names]
        names |= matches
    omitted |= {name for name in present.keys() - names if needs.mentions(name) and _is_input(present[name])}
    remarks = {name: _OMITTED.format(name=name, script=script.name) for name in sorted(omitted)}
    return Beside(frozenset(names), remarks)


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


def _names(needs: _Needs, beside: dict[str, Path]) -> tuple[set[str], set[str]]:
    """Return the names that belong to the programs, and patterns that match too many or too large files."""
    matches, omitted = {REQUIREMENTS} & beside.keys(), set()
    for name, path in beside.items():
        if path.is_dir():
            is_package = (path / "__init__.py").is_file()
            wanted = (name in needs.modules or (needs.unclear and is_package)) and any(path.rglob("*.py"))
            # sys.path.append("src"), open("conf/settings.json")
            modules = itertools.chain.from_iterable(map(path.glob, ("*.py", "*/*.py")))  # not listed unless needed
            named = needs.mentions(name) and (any(modules) or _has_inputs(path, needs))
        else:
            is_program = path.suffix.lower() in _PROGRAMS
            wanted = path.suffix in _MODULES and (name.partition(".")[0] in needs.modules or needs.unclear)
            named = needs.mentions(name) and _is_input(path) and (is_program or path.stat().st_size <= MAX_NAMED)
        if wanted or named:
            matches.add(name)
    for pattern in needs.patterns():
        files = [name for name in fnmatch.filter(beside, pattern) if beside[name].is_file() and _is_input(beside[name])]
        if len(files) > _MOST_NAMED or sum(beside[name].stat().st_size for name in files) > MAX_NAMED:
            omitted.add(pattern)
        else:
            matches.update(files)
    return matches, omitted


def _is_input(path: Path) -> bool:
    """Return whether a script may read a file or folder that it names: it is not an earlier submission."""
    return path.is_dir() or path.suffix in _PROGRAMS or path.name.partition(".")[0] != "submission"


def _has_inputs(folder: Path, needs: _Needs) -> bool:
    """Return whether a folder is small, and a file in it is named."""
    size, is_named = 0, False
    for path in folder.rglob("*"):
        size += path.lstat().st_size + 1
        if size > MAX_NAMED:
            return False
        is_named |= path.is_file() and _is_input(path) and needs.mentions(path.name)
    return is_named


def _needs_of(program: Path, depth: int) -> _Needs:
    """Return the needs of a program, or of a text that may name files.

    Args:
        program: The file.
        depth: Number of folders between the script's folder and the file, which are packages.
    """
    with program.open("rb") as file:
        data = file.read(MAX_TEXT + 1)
    if program.suffix not in (".py", ".ipynb"):
        is_program = program.suffix.lower() in _PROGRAMS or data.startswith((b"#!", b"\xef\xbb\xbf#!"))
        if b"\0" in data or (len(data) > _MAX_SETTINGS and not is_program):
            return _Needs()
        text = data.decode("utf-8", "replace")
        return _of_text(_COMMENT.sub("", text) if is_program else text, is_program=is_program)
    cells, needs = code_cells(program.name, data), _Needs()
    if program.suffix == ".ipynb":
        parts = [_split(cell) for cell in cells]
        cells, needs = [code for code, _ in parts], _of_text("\n".join(magics for _, magics in parts))
    text = "\n".join(cells)
    tree = parse_python(text)
    if tree is None:
        needs.add(replace(_of_text(text), modules=set(), unclear=True))
        return needs
    scope = Scope(tree)
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            needs.modules |= {item.name.partition(".")[0] for item in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.level == 0 or node.level > depth):
            modules = [node.module] if node.module else [item.name for item in node.names]
            needs.modules |= {name.partition(".")[0] for name in modules}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in documented:
            texts.append(os.fsdecode(node.value))
        elif isinstance(node, ast.List | ast.Tuple):  # [sys.executable, "-m", "package.module"]
            words = [scope.value(item) or "" for item in node.elts]
            needs.modules |= {name.partition(".")[0] for flag, name in itertools.pairwise(words) if flag == "-m"}
        elif isinstance(node, ast.JoinedStr | ast.BinOp | ast.Call):
            value = scope.value(node) or ""
            texts += {value, value.replace(UNKNOWN, "*")}
            if isinstance(node, ast.Call):
                _add_call(needs, scope, node, depth)
            elif isinstance(node, ast.JoinedStr):
                last = node.values[-1] if node.values else None
                ending = str(last.value) if isinstance(last, ast.Constant) else ""
                needs.unclear |= ending.endswith(_PROGRAMS) and "/" not in ending
    # Path(__file__).with_suffix(".json")
    suffixes = [name + text for text in texts if re.fullmatch(r"\.\w+", text) for name in (program.stem, program.name)]
    needs.add(_of_text("\0".join(texts)))
    needs.add(_of_text("\0".join(suffixes), is_program=False))
    needs.unclear |= not set(_PROGRAMS).isdisjoint(texts)
    return needs


def _split(cell: str) -> tuple[str, str]:
    """Split a cell of a notebook into Python code and lines that only IPython understands."""
    if parse_python(cell):
        return cell, ""
    if _CELL_MAGIC.match(cell):
        return "", cell
    return _MAGIC.sub(r"\1pass", cell), "\n".join(line[0] for line in _MAGIC.finditer(cell))


def _add_call(needs: _Needs, scope: Scope, call: ast.Call, depth: int) -> None:
    """Add a module that a call loads by name."""
    called = (scope.name(call.func) or "").rpartition(".")[2]
    value = scope.value(call.args[0]) if call.args else None
    if called not in _LOADERS + _FINDERS:
        return
    if value is None or UNKNOWN in value:
        needs.unclear |= called in _LOADERS
    elif not 0 < len(value) - len(name := value.lstrip(".")) <= depth:
        needs.modules.add(re.split("[.:]", name)[0])


def _of_text(text: str, *, is_program: bool = True) -> _Needs:
    """Return the needs of text that is not a Python program, or of texts in one, separated by null characters."""
    modules, words = set(_RUN.findall(text)), set(_WORD.findall(text))
    if is_program:
        modules |= {*_IMPORTED.findall(text), *_OBJECT.findall(text)}
    implied = [name for command in words & _IMPLIED.keys() for name in _IMPLIED[command]]
    names = "\0".join([text, text.replace("\\", ""), *implied])  # my\ data.csv
    return _Needs(modules, words.union(implied), names, is_program and _COMPUTED.search(text) is not None)
