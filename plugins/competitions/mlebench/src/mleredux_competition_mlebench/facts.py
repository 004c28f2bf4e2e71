"""Facts about each competition: read from the data file, stated nowhere else."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, cast

PACKAGE = Path(__file__).resolve().parent


@cache
def all_facts() -> dict[str, dict[str, Any]]:
    """Return the facts by competition id; `scripts/make_facts.py` defines the keys."""
    return cast("dict[str, dict[str, Any]]", json.loads((PACKAGE / "facts.json").read_text(encoding="utf-8")))


@cache
def private_ids(competition: str) -> dict[str, Any]:
    """Return which ids a private split replaces: `new_ids`, a pattern of cells (see `NewIds`), `True` for whole cells,
    or `False` if the published preparation numbers test rows itself; `kept_ids`, by which rows can be looked up."""
    ids = json.loads((PACKAGE / "private_ids.json").read_text(encoding="utf-8"))
    return cast("dict[str, Any]", ids.get(competition, {}))


@cache
def faults() -> dict[str, dict[str, str]]:
    """Return by competition id what is `wrong` with a published task, and what was `done` in its corrected variant."""
    return tomllib.loads((PACKAGE / "fixed.toml").read_text(encoding="utf-8"))


def classes(competition: str) -> tuple[str, ...]:
    """Return the fixed classes of a competition, in their official order."""
    return tuple(all_facts()[competition]["classes"])


def board(competition: str) -> Path:
    """Return the final leaderboard: a compressed CSV with the column `score`, best first."""
    return PACKAGE / "boards" / f"{competition}.csv.gz"


def module_name(competition: str) -> str:
    """Return the name of the package folder that declares a competition."""
    name = competition.lower().replace("-", "_")
    return f"c{name}" if name[0].isdigit() else name
