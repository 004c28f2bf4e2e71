"""The search tree of an agent, from its steps: which solution was derived from which."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mleredux.models.formats import number

MOST = 400
"""Maximum number of nodes drawn."""
_WIDE, _HIGH, _EDGE = 30, 46, 18


class Node(NamedTuple):
    """A solution: the step that created it (counted from 1), its ids, and the agent's measurements of it."""

    step: int
    name: str
    parent: str
    metric: float | None
    is_buggy: bool


class Place(NamedTuple):
    """A node in the drawing, below the node at `(from_x, from_y)`."""

    node: Node
    x: int
    y: int
    from_x: int
    from_y: int
    kind: str
    title: str


class Tree(NamedTuple):
    """A drawing with its size in pixels."""

    places: list[Place]
    width: int
    height: int


def drawn(listed: Iterable[Node]) -> Tree | None:
    """Lay out a tree with one row per generation and leaves side by side; return None if no node has a parent.

    A node whose parent is itself or a later node is treated as a root.
    """
    nodes: dict[str, Node] = {}
    children: dict[str, list[str]] = {}
    depths: dict[str, int] = {}
    for node in listed:
        if node.name in nodes or len(nodes) >= MOST:
            continue
        parent = node.parent if node.parent in nodes else ""
        nodes[node.name] = node
        depths[node.name] = depths[parent] + 1 if parent else 0
        children.setdefault(parent, []).append(node.name)
    if not any(depths.values()):
        return None
    columns = _columns(children)
    places = []
    for name, node in nodes.items():
        parent = node.parent if node.parent in nodes and depths[name] else name
        here, above = _at(columns[name], depths[name]), _at(columns[parent], depths[parent])
        kind = "bad" if node.is_buggy else "good" if node.metric is not None else "plain"
        note = "with an error" if node.is_buggy else "" if node.metric is None else f"metric {number(node.metric)}"
        places.append(Place(node, *here, *above, kind, f"Step {node.step}{', ' + note if note else ''}"))
    wide = max(place.x for place in places) + _EDGE
    return Tree(places, wide, max(place.y for place in places) + _EDGE)


def _columns(children: dict[str, list[str]]) -> dict[str, float]:
    """Return the column of each node: leaves side by side in traversal order, others centered above their children."""
    walk, waiting = list[str](), list(reversed(children.get("", [])))
    while waiting:
        walk.append(waiting.pop())
        waiting += reversed(children.get(walk[-1], []))
    leaves = (name for name in walk if not children.get(name))
    columns = {name: float(place) for place, name in enumerate(leaves)}
    for name in reversed(walk):
        if own := children.get(name):
            columns[name] = (columns[own[0]] + columns[own[-1]]) / 2
    return columns


def _at(column: float, depth: int) -> tuple[int, int]:
    return round(_EDGE + _WIDE * column), _EDGE + _HIGH * depth
