"""Held-back rows within a run: a competition whose agent can get scores on a part of the training table."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

from mleredux.errors import NotApplicable
from mleredux.plugin.command import current
from mleredux.plugin.task import Competition, Task

from mleredux_techniques._kit.data.discovery import discover
from mleredux_techniques._kit.data.tables import find_tables
from mleredux_techniques._kit.planting.competition import SAMPLE, TEST, write_tables
from mleredux_techniques._kit.planting.shadow import HeldOutCompetition, hold_back, shadow_competition

VARIANT, PUBLIC, INNER = "dev", "dev", "inner"
_VERSION = "2"


def find_dev(name: str) -> HeldOutCompetition | None:
    """Return the task of a name such as `wine+dev` or `wine+planted-7-dev`; None for other names."""
    whole = name[: -len(VARIANT) - 1]
    return dev_competition(current().task(whole)) if name == _name(whole) else None


def _name(base: str) -> str:
    return f"{base}{'-' if '+' in base else '+'}{VARIANT}"


def dev_competition(base: Task) -> HeldOutCompetition:
    """Return the task `base+dev`, with the metric, the test set and the medals of its base.

    Raises:
        NotApplicable: The base is not a competition.
    """
    fields = {name: getattr(base, name) for name in Competition.model_fields if name not in _OWN}
    return HeldOutCompetition(
        **fields,
        differences="dev.md.j2",
        id=_name(base.id),
        version=f"{base.version}+{VARIANT}{_VERSION}",
        title=f"{base.title}, with scores on held-out rows",
        prepare=partial(_prepare, base=base),
        base=base,
        inner=shadow_competition(base),
        note=f"Trained without a fifth of the training rows of {base.id}, on which the agent could get scores.",
    )


_OWN = frozenset(
    {
        *("id", "version", "title", "prepare", "base", "inner", "note", "kind", "fetch", "check_fetch", "raw_id"),
        *("checksums", "variants", "sets", "known_leaks"),
    }
)
"""Fields that the variant does not take from its base."""


def _prepare(raw: Path, public: Path, private: Path, *, base: Task) -> None:
    """Write the base's test set and answers, the remaining training rows, and the held-out ones as a competition.

    Raises:
        NotApplicable: The competition's data does not consist of a training and a test table with ids, or some of its
            test rows have no label.
    """
    inner = private / INNER
    for folder in (inner / "public", inner / "private", public / PUBLIC):
        folder.mkdir(parents=True)
    held = hold_back(base, raw, inner / "public", inner / "private")
    dataset, _source = discover(base, raw, images=False)
    sample = raw / "public" / (base.submission.sample or "")
    tables = {*find_tables(raw / "public"), sample}
    if not sample.is_file() or any(path.is_file() and path not in tables for path in (raw / "public").rglob("*")):
        raise NotApplicable(f"No rows can be held out from {base.id}, because its rows refer to other files.")
    write_tables(replace(dataset, train=held.train), public)
    shutil.copyfile(sample, public / sample.name)
    for name in (TEST, SAMPLE):
        shutil.copyfile(inner / "public" / name, public / PUBLIC / name)
    shutil.copytree(raw / "private", private, dirs_exist_ok=True)
