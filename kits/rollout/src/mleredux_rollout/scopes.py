"""Resolve expressions of a program: full names behind imports and aliases, and values of constant expressions."""

from __future__ import annotations

import ast
import base64
import binascii
import codecs
from collections.abc import Callable

UNKNOWN = "?"
"""Stands for a part of a string that is known only at run time."""
_MAX_VALUE = 1 << 20
_DEEPEST = 60
_JOINS = ("os.path.join", "posixpath.join", "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath")
_SAME = ("str", "os.fspath", "os.path.abspath", "os.path.realpath", "os.path.normpath", "os.path.expanduser")
_BASES = ("b64decode", "standard_b64decode", "urlsafe_b64decode", "b32decode", "b85decode")
_DECODERS: dict[str, Callable[[str], bytes]] = {
    **{f"base64.{name}": getattr(base64, name) for name in _BASES},
    **{f"binascii.{name}": getattr(binascii, name) for name in ("unhexlify", "a2b_base64")},
    "bytes.fromhex": bytes.fromhex,
}
_METHODS = ("lower", "upper", "strip", "lstrip", "rstrip", "title", "swapcase")
_IMPORTS = ("importlib.import_module", "__import__", "importlib.__import__")


class Scope:
    """Names of a program: its imports, aliases and constants. There is one for the whole program; nested scopes are not
    distinguished."""

    def __init__(self, tree: ast.AST) -> None:
        self.aliases: dict[str, str] = {}
        self.stars: list[str] = []
        self._values: dict[str, str] = {}
        assigned = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self.aliases |= {item.asname: item.name for item in node.names if item.asname}
            elif isinstance(node, ast.ImportFrom):
                origin = f"{node.module or ''}."
                self.stars += [node.module or "" for item in node.names if item.name == "*"]
                self.aliases |= {item.asname or item.name: origin + item.name for item in node.names}
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                assigned.append((node.targets[0].id, node.value))
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name) and node.value:
                assigned.append((node.target.id, node.value))
        for name, value in assigned * 2:  # a second pass resolves names used before their definition
            if (known := self.value(value)) is not None:
                self._values[name] = known
            elif (alias := self.name(value)) and alias != name and not alias.startswith(f"{name}."):
                self.aliases.setdefault(name, alias)

    def name(self, node: ast.expr, depth: int = 0) -> str | None:
        """Return the full name that an expression refers to: `importlib.import_module("a.b").c` is `a.b.c`."""
        if depth > _DEEPEST:
            return None
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.name(node.value, depth + 1)
            return f"{owner}.{node.attr}" if owner else None
        if isinstance(node, ast.Subscript):  # vars(module)["name"], module.__dict__["name"]
            holder, key = node.value, self.value(node.slice, depth + 1)
            if isinstance(holder, ast.Call) and self.name(holder.func, depth + 1) == "vars" and holder.args:
                owner = self.name(holder.args[0], depth + 1)
            elif isinstance(holder, ast.Attribute) and holder.attr == "__dict__":
                owner = self.name(holder.value, depth + 1)
            else:
                owner = "sys.modules" if self.name(holder, depth + 1) == "sys.modules" else None
            return (key if owner == "sys.modules" else f"{owner}.{key}") if owner and key else None
        if isinstance(node, ast.Call) and node.args:
            called, first = self.name(node.func, depth + 1), self.value(node.args[0], depth + 1)
            if called in _IMPORTS:
                return first
            if called in ("getattr", "builtins.getattr") and len(node.args) > 1:
                owner, key = self.name(node.args[0], depth + 1), self.value(node.args[1], depth + 1)
                return f"{owner}.{key}" if owner and key else None
        return None

    def value(self, node: ast.expr | None, depth: int = 0) -> str | None:
        """Return the string value of an expression, with `UNKNOWN` for variable parts; None if no part is known."""
        folded = self._fold(node, depth) if node is not None and depth <= _DEEPEST else None
        return folded if folded is None or len(folded) <= _MAX_VALUE else None

    def _fold(self, node: ast.expr, depth: int) -> str | None:
        deeper = depth + 1
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Constant(value=bytes(data)):
                return data.decode("latin-1")
            case ast.Name(id=name):
                return self._values.get(name)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self._joined([left, right], "", deeper)
            case ast.BinOp(op=ast.Div(), left=left, right=right):
                return self._joined([left, right], "/", deeper)
            case ast.BinOp(op=ast.Mod(), left=left, right=right):
                form: str | None = self.value(left, deeper)
                for item in right.elts if isinstance(right, ast.Tuple) else [right]:
                    form = form and form.replace("%s", self.value(item, deeper) or UNKNOWN, 1)
                return form
            case ast.JoinedStr(values=values):
                return self._joined(values, "", deeper)
            case ast.FormattedValue(value=inner):
                return self.value(inner, deeper)
            case ast.Subscript(value=inner, slice=ast.Slice(lower=None, upper=None, step=ast.UnaryOp(op=ast.USub()))):
                return (self.value(inner, deeper) or "")[::-1] or None
            case ast.Attribute(value=inner, attr="parent"):
                return _parent(self.value(inner, deeper))
            case ast.Attribute(value=inner, attr="__file__"):
                return f"{(self.name(inner, deeper) or UNKNOWN).replace('.', '/')}/__init__.py"
            case ast.Call():
                return self._call(node, deeper)
        return None

    def _call(self, node: ast.Call, depth: int) -> str | None:
        called = self.name(node.func, depth) or ""
        if called in _JOINS and node.args:
            return self._joined(node.args, "/", depth)
        if called in _SAME and node.args:
            return self.value(node.args[0], depth)
        if called == "os.path.dirname" and node.args:
            return _parent(self.value(node.args[0], depth))
        try:
            match called, node.args:
                case "chr", [ast.Constant(value=int(code)), *_]:
                    return chr(code)
                case "codecs.decode", [coded, codec, *_] if "rot" in (self.value(codec, depth) or ""):
                    return codecs.decode(self.value(coded, depth) or "", "rot13")
                case _, [coded, *_] if called in _DECODERS and (text := self.value(coded, depth)):
                    return _DECODERS[called](text).decode("utf-8", "replace")
        except (ValueError, OverflowError):
            return None
        return self._method(node, depth)

    def _method(self, node: ast.Call, depth: int) -> str | None:
        if not isinstance(node.func, ast.Attribute):
            return None
        owner, arguments = self.value(node.func.value, depth), [self.value(item, depth) for item in node.args]
        match node.func.attr, arguments:
            case "joinpath", [_, *_]:
                return self._joined([node.func.value, *node.args], "/", depth)
            case "join", [_] if owner is not None and isinstance(node.args[0], ast.List | ast.Tuple):
                return self._joined(node.args[0].elts, owner, depth)
            case "replace", [str(old), str(new)] if owner is not None and old:
                return owner.replace(old, new)
            case "decode" | "encode" | "resolve" | "absolute", _:
                return owner
            case method, [] if owner is not None and method in _METHODS:
                return str(getattr(owner, method)())
            case "format", _ if owner is not None:
                for argument in arguments:
                    owner = str(owner).replace("{}", argument or UNKNOWN, 1)
                return owner
        return None

    def _joined(self, nodes: list[ast.expr], between: str, depth: int) -> str | None:
        parts = [self.value(node, depth) for node in nodes]
        if all(part is None for part in parts):
            return None
        return between.join(UNKNOWN if part is None else part for part in parts)


def _parent(path: str | None) -> str:
    """Return the folder of a path."""
    head, slash, _ = (path or UNKNOWN).rpartition("/")
    return head if slash and UNKNOWN not in head else f"{path or UNKNOWN}/.."
