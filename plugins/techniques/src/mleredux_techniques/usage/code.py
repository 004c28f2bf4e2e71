"""What programs do about folds and categories, by their syntax trees; nothing is executed.

Only what runs counts: no comments, strings, imports, `if False`, functions that nothing names, or splitters that are
made and never asked for folds. Imports under other names are followed, variables by what is assigned to them.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mleredux_rollout import Scope, Text

GROUPED = frozenset({"GroupKFold", "StratifiedGroupKFold", "GroupShuffleSplit", "LeaveOneGroupOut", "LeavePGroupsOut"})
ORDERED = frozenset({"TimeSeriesSplit"})
BOTH = frozenset({"GroupTimeSeriesSplit"})
RANDOM = frozenset(
    {"KFold", "StratifiedKFold", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit", "StratifiedShuffleSplit"}
)
SPLITTERS = GROUPED | ORDERED | BOTH | RANDOM
SCORERS = frozenset(
    {"train_test_split", "cross_val_score", "cross_validate", "cross_val_predict", "GridSearchCV", "RandomizedSearchCV"}
)
"""Functions that split by themselves; with `cv=` as that splitter does."""
ENCODERS = frozenset(
    {"OneHotEncoder", "TargetEncoder", "CountEncoder", "CatBoostEncoder", "TableVectorizer", "get_dummies"}
    | {"CatBoostClassifier", "CatBoostRegressor", "LeaveOneOutEncoder", "WOEEncoder", "BinaryEncoder"}
)
WHOLE = frozenset({"TableVectorizer", "get_dummies", "CatBoostClassifier", "CatBoostRegressor"})
"""Those of them that take a whole table, if they are given no columns."""
_SORTS = frozenset({"sort_values", "argsort", "sort", "lexsort", "nsmallest", "nlargest"})
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n(.*?)^\s*\2\s*$", re.M | re.S)
_DEEPEST = 6


class Folds(NamedTuple):
    """One way of validating.

    Attributes:
        kind: The splitter's or function's name.
        columns: What its groups are made of.
        where: Text and line.
    """

    kind: str
    columns: frozenset[str]
    where: str


class Found(NamedTuple):
    """What all programs do.

    Attributes:
        sorted_by: Columns that rows are sorted or cut by.
        encoded: Columns that are encoded as names, with the place.
        general: The place of an encoder that is given no columns by name, so that it takes all texts.
    """

    folds: tuple[Folds, ...]
    sorted_by: frozenset[str]
    encoded: dict[str, str]
    general: str | None


def read(texts: Iterable[Text]) -> Found:
    """What programs and commands of a run do; texts that are not Python are skipped."""
    folds: list[Folds] = []
    ordered: set[str] = set()
    encoded: dict[str, str] = {}
    general: str | None = None
    for text in texts:
        if text.kind == "log":
            continue
        for source in (text.content, *(body for _, _, body in _HEREDOC.findall(text.content))):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    program = Program(ast.parse(source), text.where)
                folds += program.folds()
                ordered |= program.ordered()
                for columns, place in program.encodings():
                    encoded |= {name: place for name in columns if name not in encoded}
                    general = general or (place if not columns else None)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
    return Found(tuple(folds), frozenset(ordered), encoded, general)


class Program:
    """One program: the parts that run, and what its variables are."""

    def __init__(self, tree: ast.Module, where: str) -> None:
        self.scope, self.where = Scope(tree), where
        self.nodes = list(_live(tree))
        self.assigned: dict[str, list[ast.expr]] = defaultdict(list)
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.assigned[target.id].append(node.value)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name) and node.value:
                self.assigned[node.target.id].append(node.value)
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]

    def folds(self) -> Iterator[Folds]:
        """Splitters that are asked for folds, functions that split, and splitters that a settings object names."""
        for call in self.calls:
            method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if method == "split" and isinstance(call.func, ast.Attribute):
                groups = _argument(call, "groups", 2)
                for kind in self._splitters(call.func.value):
                    yield self._found(kind, [groups] if groups else self._unique(call), call)
            elif (name := self._last(call)) in SCORERS:
                splitter, groups = _argument(call, "cv", None), _argument(call, "groups", None)
                kinds = self._splitters(splitter) if splitter else set()
                for kind in kinds or {name}:
                    yield self._found(kind, [groups] if groups else self._unique(call), call)
        for node in self.nodes:
            if isinstance(node, ast.Dict):
                told = {self.scope.value(key): value for key, value in zip(node.keys, node.values, strict=True) if key}
                if (kind := self.scope.value(told.get("name")) or "") in SPLITTERS:
                    yield self._found(kind, [told[key] for key in ("groups", "time_column") if key in told], node)

    def ordered(self) -> set[str]:
        """Columns that rows are sorted by or compared with a limit, and those that settings name as the time."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Call) and self._last(node) in _SORTS:
                found |= self.names([node])
            elif isinstance(node, ast.Compare) and any(
                isinstance(one, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for one in node.ops
            ):
                found |= self.names([node.left, *node.comparators])
            elif isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                found |= self.names([value for key, value in pairs if self.scope.value(key) == "time_column"])
        return found

    def encodings(self) -> Iterator[tuple[set[str], str]]:
        """Columns of each encoder (none: all texts), and its place."""
        held: set[int] = set()
        for node in self.nodes:
            if isinstance(node, ast.Tuple) and any(self._encodes(part) for part in node.elts):
                held |= {id(inner) for part in node.elts for inner in ast.walk(part)}
                rest = [part for part in node.elts if not self._encodes(part)]
                named = len(rest) > 1 or self._encodes(node.elts[-1])  # the first part is the step's name
                yield self._columns(rest[1:] if named else rest), self._place(node)
            elif isinstance(node, ast.Dict):
                values = zip(map(self.scope.value, node.keys), node.values, strict=True)
                names = {key for key, value in values if key and {*self._constants(value)} & ENCODERS}
                if names - {"name", "encoders"}:
                    yield names, self._place(node)
        for call in self.calls:
            name = self._last(call)
            if name == "astype" and {*self._constants(*call.args)} & {"category", "str"}:
                yield self.names([call.func]), self._place(call)
            elif name in WHOLE:
                columns = [one.value for one in call.keywords if one.arg in ("columns", "cols", "cat_features")]
                yield self._columns(columns), self._place(call)
            elif isinstance(call.func, ast.Attribute) and name in ("fit_transform", "fit") and call.args:
                if self._encodes(call.func.value) and id(call.func.value) not in held:
                    yield self._columns(call.args[:1]), self._place(call)
            elif name == "make_pipeline" and id(call) not in held and any(map(self._encodes, call.args)):
                yield set(), self._place(call)

    def _columns(self, nodes: list[ast.expr]) -> set[str]:
        """The columns that expressions select; none where they select by type, or all."""
        found = self.names(nodes)
        return set() if found & {"select_dtypes", "make_column_selector", "dtype", "dtypes"} else found

    def names(self, nodes: Iterable[ast.expr]) -> set[str]:
        """Texts and attributes in expressions, variables by what is assigned to them: names of columns, if they are."""
        found: set[str] = set()
        todo = [(node, 0) for node in nodes]
        seen: set[int] = set()
        while todo:
            node, depth = todo.pop()
            if id(node) in seen or depth > _DEEPEST:
                continue
            seen.add(id(node))
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Name) and len(self.assigned[node.id]) == 1:
                todo.append((self.assigned[node.id][0], depth + 1))
            todo += [(inner, depth) for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.expr)]
            if isinstance(node, ast.Call):
                found.add(self._last(node))
                todo += [(one.value, depth) for one in node.keywords]
        return found

    def _splitters(self, node: ast.expr, depth: int = 0) -> set[str]:
        """The splitters that an expression may be."""
        if depth > _DEEPEST:
            return set()
        if isinstance(node, ast.Call) and (name := self._last(node)) in SPLITTERS:
            return {name}
        if isinstance(node, ast.Name):
            return {kind for value in self.assigned[node.id] for kind in self._splitters(value, depth + 1)}
        if isinstance(node, ast.IfExp):
            return self._splitters(node.body, depth + 1) | self._splitters(node.orelse, depth + 1)
        return set()

    def _encodes(self, node: ast.expr) -> bool:
        """Whether an expression makes an encoder, in a pipeline or by a variable too."""
        values = self.assigned[node.id] if isinstance(node, ast.Name) else [node]
        values = [value for value in values if isinstance(value, ast.Call) and self._last(value) != "ColumnTransformer"]
        inner = (one for value in values for one in ast.walk(value))
        return any(isinstance(one, ast.Call) and self._last(one) in ENCODERS for one in inner)

    def _unique(self, call: ast.Call) -> list[ast.expr]:
        """The arguments, if they are the different groups themselves: `split(df["unit"].unique())`."""
        return [argument for argument in call.args[:1] if "unique" in self.names([argument])]

    def _found(self, kind: str, groups: Iterable[ast.expr], node: ast.expr) -> Folds:
        return Folds(kind, frozenset(self.names(groups)), self._place(node))

    def _last(self, call: ast.Call) -> str:
        """The last part of the whole name of what is called."""
        name = self.scope.name(call.func) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")
        return name.rpartition(".")[2]

    def _constants(self, *nodes: ast.expr) -> Iterator[str]:
        for node in nodes:
            for one in ast.walk(node):
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    yield one.value
                elif isinstance(one, ast.Name):
                    yield one.id

    def _place(self, node: ast.expr) -> str:
        return f"{self.where}, line {node.lineno}"


def _argument(call: ast.Call, name: str, place: int | None) -> ast.expr | None:
    for one in call.keywords:
        if one.arg == name:
            return one.value
    return call.args[place] if place is not None and len(call.args) > place else None


def _live(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that may run: not below a constant false condition, nor in functions that nothing live names."""
    defined: dict[str, list[ast.AST]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined[node.name].append(node)
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            todo += node.decorator_list
            continue
        yield node
        if isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Constant):
            todo += node.body if node.test.value else node.orelse
            continue
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
        for function in defined.pop(name, ()) if name else ():
            todo += ast.iter_child_nodes(function)
        todo += ast.iter_child_nodes(node)
