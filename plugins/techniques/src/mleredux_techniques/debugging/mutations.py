"""Faults for a correct script, derived from its syntax tree: the form of a line determines which changes make it wrong.

Each change combines a place and an operation, so that no list of wrong lines exists; other operations preserve a line's
behavior, so that an unusual look does not make a line suspicious.
"""

from __future__ import annotations

import ast
import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_OPERATIONS = tomllib.loads(Path(__file__).with_name("mutations.toml").read_text(encoding="utf-8"))
ROWS, LABELS, COLUMNS, TREATED, SAME = (
    tuple(_OPERATIONS[name]) for name in ("rows", "labels", "columns", "treated", "same")
)
UNUSUAL = 0.5
"""Share of places that get an operation that changes nothing."""


@dataclass(frozen=True)
class Place:
    """An expression of a script, with wrong replacements for each kind of fault.

    Attributes:
        line: Line number, from 1.
        start, end: Columns of the expression.
        wrong: Kind and text of each wrong replacement.
        same: Equivalent replacements.
    """

    line: int
    start: int
    end: int
    wrong: tuple[tuple[str, str], ...]
    same: tuple[str, ...] = ()


def unusual(text: str, rng: np.random.Generator) -> str:
    """Return an equivalent script with some of its lines written differently."""
    lines, used = text.split("\n"), set[int]()
    for place in sorted(places(text), key=lambda place: -place.start):
        if place.same and place.line not in used and rng.random() < UNUSUAL:
            used.add(place.line)
            lines[place.line - 1] = _put(lines[place.line - 1], place, str(rng.choice(place.same)))
    return "\n".join(lines)


def mutants(text: str) -> list[tuple[int, str, str]]:
    """Return all faults of a script: line, kind, and the wrong line."""
    lines = text.split("\n")
    candidates = [
        (place.line, kind, _put(lines[place.line - 1], place, wrong))
        for place in places(text)
        for kind, wrong in place.wrong
    ]
    return list(dict.fromkeys(candidates))


def _put(line: str, place: Place, text: str) -> str:
    return line[: place.start] + text + line[place.end :]


def places(text: str) -> Iterator[Place]:
    """Return the expressions of a script that can be made wrong, judged by their form."""
    tree, lines = ast.parse(text), [line.encode() for line in text.split("\n")]
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr | ast.keyword) or node.lineno != node.end_lineno:
            continue
        node_text = _text(node, lines)
        wrong = _crashes(node, node_text)
        same: tuple[str, ...] = ()
        if isinstance(node, ast.Call):
            more, same = _of_call(node, lines, node_text)
            wrong += more
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and isinstance(node.ctx, ast.Load):
            if isinstance(node.value, ast.Name) and node.value.id in ("X", "y"):  # reorder rows
                operations = LABELS if node.value.id == "y" else ROWS
                wrong += _each("misaligned_rows", ("{}", *operations), ast.unparse(node.value))
                wrong += _each("misaligned_rows", operations, node_text)
                same = (f"np.take({node.value.id}, {node.slice.id}, axis=0)", *_same(node_text))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq) and len(node_text) < 30:
            left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
            wrong += [
                ("wrong_split", form.format(left, right)) for form in ("{} != {}", "~({} == {})", "({} - {}) != 0")
            ]
            same = (f"{right} == {left}", f"~({left} != {right})", f"({left} - {right}) == 0")
        yield Place(node.lineno, node.col_offset, node.end_col_offset or 0, tuple(wrong), same)
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign | ast.For):
            yield from _of_statement(statement, lines)


def _text(node: ast.expr | ast.keyword, lines: list[bytes]) -> str:
    """Return the source of a node on one line; `ast.get_source_segment` would split the script again for each."""
    return lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()


def _each(kind: str, operations: tuple[str, ...], text: str) -> list[tuple[str, str]]:
    return [(kind, operation.replace("{}", text)) for operation in operations]


def _same(text: str) -> tuple[str, ...]:
    """Return compositions of two operations that change nothing."""
    return tuple(outer.replace("{}", inner.replace("{}", text)) for outer, inner in itertools.product(SAME, repeat=2))


def _crashes(node: ast.AST, text: str) -> list[tuple[str, str]]:
    """Return expressions that raise an error: misspelled names, attributes and arguments."""
    if isinstance(node, ast.Attribute):
        before, name, after = text[: -len(node.attr)], node.attr, ""
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and len(node.id) > 1:
        before, name, after = "", node.id, ""
    elif isinstance(node, ast.keyword) and node.arg and node.arg not in ("key", "columns"):
        before, name, after = "", node.arg, text[len(node.arg) :]
    else:
        return []
    misspelled = name + name[-1] + "_", name[:-1] + "_" + name[-1], "_" + name
    return [("crash", f"{before}{form}{after}") for form in misspelled]


def _of_call(node: ast.Call, lines: list[bytes], own: str) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """Return the wrong forms of a call, and the equivalent ones."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    held = [_text(part, lines) for part in node.args]
    if name == "fit" and len(held) == 2:
        return _of_fit(own[: own.rindex(".fit(")], *held)
    if name in ("predict", "predict_proba"):
        columns = _each("misaligned_columns", COLUMNS, own) if name == "predict_proba" else []
        return [*_each("misaligned_rows", ROWS, own), *columns], _same(own)
    if name == "to_numpy" and not node.args and not node.keywords and "ID" in own:
        return _each("misaligned_rows", LABELS, own), _same(own)
    if name in ("min", "max") and isinstance(node.func, ast.Name):
        other = "max" if name == "min" else "min"
        scores, place = held[0], 0 if name == "min" else -1
        ordered = f"sorted({scores}, key={scores}.get)"
        wrong = [
            f"{other}({scores}, key={scores}.get)",
            f"{ordered}[{-1 - place}]",
            f"{name}({scores}, key=lambda one: -{scores}[one])",
        ]
        same = (f"{ordered}[{place}]", f"{other}({scores}, key=lambda one: -{scores}[one])")
        return [("metric_direction", form) for form in wrong], same
    return [], ()


def _of_fit(model: str, x: str, y: str) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    pairs = [("misaligned_rows", f"{model}.fit({x}, {rows})") for _kind, rows in _each("", LABELS, y)]
    pairs += [("misaligned_rows", f"{model}.fit({rows}, {y})") for _kind, rows in _each("", ROWS, x)]
    if "[" in x:
        mask = x.partition("[")[2].strip("~]")
        forms = ("", "[:]", f"[{mask}]", f"[{mask} | ~{mask}]", f"[~~{mask}]", f"[{mask} == {mask}]")
        pairs += [("wrong_split", f"{model}.fit(X{form}, y{form})") for form in forms]
        return pairs, (f"{model}.fit(X[{mask} == 0], y[{mask} == 0])", f"{model}.fit(np.asarray({x}), np.asarray({y}))")
    for part in ("[:20]", "[-20:]", "[::25]", "[len(X) // 2 : len(X) // 2 + 20]"):
        pairs.append(("wrong_split", f"{model}.fit(X{part}, y{part})"))
    return pairs, (f"{model}.fit(X[:], y[:])", f"{model}.fit(X.copy(), y.copy())")


def _of_statement(node: ast.Assign | ast.For, lines: list[bytes]) -> Iterator[Place]:
    """Return the wrong forms of loop iterables, and of values assigned to test features, scores and names."""
    value = node.iter if isinstance(node, ast.For) else node.value
    if value.lineno != value.end_lineno:
        return
    own = _text(value, lines)
    target = ast.unparse(node.target if isinstance(node, ast.For) else node.targets[0])
    wrong: list[tuple[str, str]] = []
    same: tuple[str, ...] = ()
    if isinstance(node, ast.For):
        if "FOLDS" in own or "unique" in own:
            wrong = [("fold_off_by_one", f"list({own}){part}") for part in ("[1:]", "[:-1]", "[::2]", "[1::2]", "[:2]")]
            if own.startswith("range("):
                ends = ("0", "FOLDS") if own == "range(FOLDS)" else ("1", "FOLDS + 1")
                shifts = itertools.product(("", " + 1", " + 2"), ("", " - 1", " - 2"))
                forms = [f"range({ends[0]}{low}, {ends[1]}{high})" for low, high in shifts]
                wrong += [("fold_off_by_one", form) for form in forms[1:]]
                same = (forms[0], f"reversed({own})")
            same += (f"list({own})",)
    elif target == "X_test":
        wrong = _each("inconsistent_preprocessing", TREATED, own)
        if isinstance(value, ast.BinOp):
            drawn = itertools.product(itertools.permutations(("mean", "spread")), "-+*/", "-+*/")
            forms = [f"(X_test {first} {a}) {second} {b}" for (a, b), first, second in drawn]
            wrong += [("inconsistent_preprocessing", form) for form in forms if form != own]
            same = ("X_test / spread - mean / spread", "-(mean - X_test) / spread")
        elif ".transform(" in own:
            others = ("X_test", "scaler.inverse_transform(X_test)", "scaler.transform(scaler.transform(X_test))")
            wrong += [("inconsistent_preprocessing", form) for form in others]
            same = ("(X_test - scaler.mean_) / scaler.scale_", "scaler.transform(X_test.copy())")
    elif target.endswith("[name]"):
        wrong = [("metric_direction", form.format(own)) for form in ("-({})", "-1 * ({})", "1 - ({})", "-3 * ({})")]
        same = (f"float({own})", f"({own}) + 0")
    if wrong or same:
        yield Place(value.lineno, value.col_offset, value.end_col_offset or 0, tuple(wrong), same)
