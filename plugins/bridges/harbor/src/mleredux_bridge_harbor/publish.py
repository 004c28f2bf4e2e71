"""Write a set of tasks as a folder that is ready for publication: a dataset of Harbor tasks, and two packages."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

from mleredux.errors import MlereduxError, NotApplicable, file_errors
from mleredux.models.formats import counted
from mleredux.plugin.command import current
from mleredux.plugin.files import FileLock

from mleredux_bridge_harbor.directory import origin, write_task
from mleredux_bridge_harbor.packages import PACKED, graders_of, pack_packages

PARTS = ("train", "evaluation")
CERTIFICATE, SUMS, UNFINISHED = "certificate.json", "SHA256SUMS", ".unfinished"
_VERSION = "1.0.0"
_GENERATED = re.compile(r"(?:synthetic|planted)(?:-[a-z]+)*?-(public-)?[0-9]+(?=@|$)")
_RESERVED = {*sys.stdlib_module_names, "mleredux", "verifiers"}
"""Modules that a package for verifiers would hide, or that would hide it."""


@dataclass(frozen=True)
class Plan:
    """The tasks of each part by id, and the name of the set."""

    name: str
    parts: dict[str, list[str]]

    @property
    def words(self) -> dict[str, str]:
        """Return the words to fill into templates."""
        module = re.sub(r"\W", "_", self.name.lower())
        return {"name": self.name, "package": module.replace("_", "-"), "module": module, "version": _VERSION}


def plan(tasks: Iterable[str], name: str, seeds: range, evaluation: float) -> Plan:
    """Return the tasks to publish: the last share of the seeds is for evaluation and uses the secret.

    Args:
        tasks: Ids; `SEED` stands for each seed, which is public in the training part.
        evaluation: Share of the seeds in the evaluation part.

    Raises:
        MlereduxError: A task does not exist, there is a `SEED` but no seeds, packages can't have the name, or two tasks
            would have the same folder on some file systems.
    """
    wanted = Plan(name, {part: [] for part in PARTS})
    if wanted.words["module"] in _RESERVED or not re.fullmatch("[A-Za-z](?:[A-Za-z0-9 ._-]{0,98}[A-Za-z0-9])?", name):
        raise MlereduxError(f"{name!r} can't be the name of a package.", hint="Use --name with 1 to 100 letters.")
    cut = len(seeds) - round(len(seeds) * evaluation)
    for task in tasks:
        if "SEED" not in task:
            wanted.parts[_part(task)].append(task)
            continue
        if not seeds:
            raise MlereduxError(f"{task} needs seeds.", hint="Specify a range, such as --seeds 1..100.")
        wanted.parts["train"] += [task.replace("SEED", f"public-{seed}") for seed in seeds[:cut]]
        wanted.parts["evaluation"] += [task.replace("SEED", str(seed)) for seed in seeds[cut:]]
    parts = {part: [*filter(_applies, dict.fromkeys(names))] for part, names in wanted.parts.items()}
    for names in parts.values():
        if len({_folder(task).lower() for task in names}) < len(names):
            raise MlereduxError("Two of the tasks would have the same folder.", hint="Publish them separately.")
    return Plan(name, parts)


def _folder(task: str) -> str:
    return re.sub("[@+]", "-", task)


def _part(task: str) -> str:
    """Return the part of a task: `train`, unless it is generated with the secret."""
    generated = _GENERATED.search(task)
    return PARTS[generated is not None and not generated[1]]


def _applies(task: str) -> bool:
    with suppress(NotApplicable):  # the technique, to the metric of a seed
        return bool(current().task(task))
    return False


def publish(wanted: Plan, folder: Path, certified: int, data_dir: Path | str | None = None) -> dict[str, Any]:
    """Write the folder, or complete it after an interruption; return the facts of each part.

    The set omits tasks that are not sound, tasks whose solution does not have the reward 1, and techniques that do not
    apply to the data of a seed.

    Args:
        certified: Number of generated tasks per part to certify, evenly spread.

    Raises:
        MlereduxError: The folder exists and is not an unfinished one, another program is writing it, a package is
            missing, a task can't be exported, or all are omitted.
    """
    with file_errors(MlereduxError, f"{folder} can't be created", "Choose a new folder."):
        folder.mkdir(parents=True, exist_ok=(folder / UNFINISHED).exists() or not any(folder.glob("*")))
        (folder / UNFINISHED).touch()
    with FileLock(folder / UNFINISHED).attempt() as acquired:
        if not acquired:
            raise MlereduxError(f"Another program is writing {folder}.", hint="Wait for it, or choose another folder.")
        return _published(wanted, folder, certified, data_dir)


def _published(wanted: Plan, folder: Path, certified: int, data_dir: Path | str | None) -> dict[str, Any]:
    """Write all files of a set to a locked folder."""
    facts = dict[str, Any]()
    for part in PARTS:
        names = wanted.parts[part]
        certificates = _certificates(_sample(names, certified), folder / "certificates", data_dir)
        sound = [name for name in names if certificates.get(name, {"sound": True})["sound"]]
        rows = list[dict[str, Any]]()
        paths = [folder / "tasks" / part / _folder(name) for name in sound]
        with ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:  # half of the time, they wait for a grade
            written = list(pool.map(partial(_written, data_dir=data_dir), sound, paths))
        for name, path in (pair for pair, there in zip(zip(sound, paths, strict=True), written, strict=True) if there):
            task = current().task(name)
            if name in certificates:
                (path / CERTIFICATE).write_text(json.dumps(certificates[name], indent=1) + "\n", encoding="utf-8")
            rows.append(
                {
                    "task": name,
                    "path": path.relative_to(folder).as_posix(),
                    "version": task.version,
                    "kind": task.kind,
                    "metric": task.metric.id,
                    "license": origin(task).license or "none",
                    "certified": name in certificates,
                    "sha256": hashlib.sha256(json.dumps(_sums(path)).encode()).hexdigest(),
                }
            )
        (folder / f"{part}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        wanted.parts[part] = [row["task"] for row in rows]
        for path in {*(folder / "tasks" / part).glob("*")} - {folder / row["path"] for row in rows}:
            shutil.rmtree(path)
        facts[part] = _facts(rows, names, certificates)
    if not any(wanted.parts.values()):
        shutil.rmtree(folder)
        raise MlereduxError("All tasks are left out.", hint="`mleredux export-task` shows the rewards of solutions.")
    shutil.rmtree(folder / "certificates", ignore_errors=True)
    _write_packages(wanted, folder)
    _write_registry(wanted, folder)
    (folder / "README.md").write_text(_card(wanted, facts), encoding="utf-8")
    (folder / "parts.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    (folder / UNFINISHED).unlink()
    (folder / SUMS).write_text("".join(f"{digest}  {path}\n" for path, digest in _sums(folder)), encoding="utf-8")
    return facts


def _written(name: str, path: Path, data_dir: Path | str | None, again: bool = True) -> bool:
    """Write a task directory with packed packages, unless it is there; return False for a task to leave out.

    Until all tasks are written, an empty hidden folder marks a task to leave out.

    Args:
        again: Whether to try again if the interpreter fails: in CPython before 3.11.8, and in 3.12 before 3.12.2,
            threads that parse programs at the same time share a counter of recursions.
    """
    draft = path.with_name(f".{path.name}")
    if path.exists() or (draft.exists() and not any(draft.iterdir())):
        return path.exists()
    shutil.rmtree(draft, ignore_errors=True)
    with suppress(NotApplicable):
        try:
            reward = write_task(name, draft, data_dir=data_dir, packed=True)
        except SystemError:
            if again:
                return _written(name, path, data_dir, again=False)
            raise
        if isinstance(reward, str) or reward in (None, 1):
            draft.rename(path)
        else:
            shutil.rmtree(draft)
            draft.mkdir()
    return path.exists()


def problems(folder: Path) -> Iterator[str]:
    """Yield a sentence for each file that differs from its checksum, and for each overlap of the two parts."""
    with file_errors(MlereduxError, f"{folder} is not a published folder", "Name one.", ValueError):
        lines = [line.split("  ", 1) for line in (folder / SUMS).read_text(encoding="utf-8").splitlines()]
        listed = {path: digest for digest, path in lines}
    present = dict(_sums(folder))
    changed = {path for path in listed.keys() | present.keys() if listed.get(path) != present.get(path)}
    yield from (f"{path} differs from the published file." for path in sorted(changed))
    if changed & {"parts.json", *(f"{part}.jsonl" for part in PARTS)}:
        return
    with file_errors(MlereduxError, f"{folder} is not a published folder", "Name one.", ValueError):
        facts = json.loads((folder / "parts.json").read_bytes())
        rows = {part: [json.loads(line) for line in (folder / f"{part}.jsonl").open()] for part in PARTS}
    for part in PARTS:
        for row in rows[part]:
            secret = facts["evaluation"]["commitment"] or ""
            if _part(row["task"]) != part:
                yield f"{row['task']} is in part {part}, but its seed is not."
            if part == "evaluation" and secret.removeprefix("sha256:")[:12] not in row["version"]:
                yield f"{row['task']} was not generated with the committed secret."
    contents = {part: set(_table_rows(folder / row["path"] for row in rows[part])) for part in PARTS}
    if shared := contents["train"] & contents["evaluation"]:
        yield f"The parts share {counted(len(shared), 'row')} of tables."


def _table_rows(folders: Iterable[Path]) -> Iterator[str]:
    """Yield the digests of rows of public tables, omitting the first column, and rows with few cells."""
    for folder in folders:
        for path in sorted((folder / "environment" / "data").glob("t*.csv")):
            with path.open(encoding="utf-8", newline="") as file:
                yield from (
                    hashlib.sha256("\0".join(row[1:]).encode()).hexdigest()
                    for row in csv.reader(file)
                    if "." in "".join(row[1:])
                )


def _sample(names: list[str], most: int) -> list[str]:
    known = [name for name in names if "planted" in current().task(name).tags]
    return known[:: max(1, -(-len(known) // most))] if most else []


def _certificates(names: list[str], folder: Path, data_dir: Path | str | None) -> dict[str, dict[str, Any]]:
    """Return certificates by task, as made by `mleredux certify`."""
    paths = [folder / f"{name}.json" for name in names]
    if missing := [name for name, path in zip(names, paths, strict=True) if not path.is_file()]:
        command = [sys.executable, "-m", "mleredux", "certify", *missing, "--output", str(folder)]
        place = {"MLEREDUX_DATA_ROOT": str(data_dir)} if data_dir is not None else {}
        ended = subprocess.run(command, env={**os.environ, **place}, capture_output=True, text=True)
    if not all(path.is_file() for path in paths):
        raise MlereduxError(
            f"The tasks can't be certified: {ended.stderr.strip()}",
            hint="Install mleredux-audit-floor, or use --certify 0.",
        )
    return {name: json.loads(path.read_bytes()) for name, path in zip(names, paths, strict=True)}


def _facts(rows: list[dict[str, Any]], names: list[str], certificates: dict[str, dict[str, Any]]) -> dict[str, Any]:
    fields = [each["fields"] for name, each in certificates.items() if current().task(name).kind == "competition"]
    notes = [current().task(row["task"]).note or "" for row in rows]
    commitments = {match[0] for note in notes if (match := re.search(r"sha256:[0-9a-f]{64}", note))}
    return {
        "tasks": len(rows),
        "certified": sum(row["certified"] for row in rows),
        "left_out": len(names) - len(rows),
        "skill": [field["difficulty"]["p"] for field in fields],
        "discrimination": [field["discrimination"]["value"] for field in fields],
        "commitment": min(commitments, default=None),
    }


def _card(wanted: Plan, facts: dict[str, Any]) -> str:
    from huggingface_hub import DatasetCard, DatasetCardData

    lines = []
    for part, content in facts.items():
        skill, order = content["skill"], content["discrimination"]
        spread = f"{statistics.fmean(skill):.2f} ({statistics.pstdev(skill):.2f})" if skill else "–"
        ordered = f"{statistics.fmean(order):.2f}" if order else "–"
        counts = f"{content['tasks']} | {content['certified']} | {content['left_out']}"
        seeds = "secret" if part == "evaluation" else "public"
        lines.append(f"| {part} | {counts} | {spread} | {ordered} | {seeds} |")
    licenses = {origin(current().task(name)).license or "other" for names in wanted.parts.values() for name in names}
    files = [{"split": part, "path": f"{part}.jsonl"} for part in PARTS if facts[part]["tasks"]]
    data = DatasetCardData(
        license=sorted(name.lower() for name in licenses),
        pretty_name=wanted.name,
        tags=["harbor", "machine-learning", "agents", "synthetic"],
        configs=[{"config_name": "default", "data_files": files}],
    )
    text = _filled("card", wanted, count=sum(map(len, wanted.parts.values())), rows="\n".join(lines))
    return str(DatasetCard(f"---\n{data.to_yaml()}\n---\n\n{text}"))


def _write_packages(wanted: Plan, folder: Path) -> None:
    words, train = wanted.words, wanted.parts["train"]
    module, space = folder / "verifiers" / words["module"], folder / "openenv"
    for written in (module.parent, space):
        shutil.rmtree(written, ignore_errors=True)
    if not train:
        return
    module.mkdir(parents=True)
    space.mkdir()
    owners = {owner for name in train for owner in graders_of(current().task(name))}
    needed = json.dumps(sorted({*owners, "mleredux-bridge-verifiers", "verifiers>=0.4,<0.5"}))
    (module.parent / "pyproject.toml").write_text(_filled("pyproject", wanted, needed=needed), encoding="utf-8")
    (module / "__init__.py").write_text(_filled("verifiers", wanted), encoding="utf-8")
    (module / "tasks.json").write_text(json.dumps(train, indent=1) + "\n", encoding="utf-8")
    for name, template in (("openenv.yaml", "openenv"), ("README.md", "space"), ("Dockerfile", "Dockerfile")):
        (space / name).write_text(_filled(template, wanted), encoding="utf-8")
    (space / "tasks.txt").write_text("".join(f"{name}\n" for name in train), encoding="utf-8")
    pinned, archive = pack_packages(frozenset({*owners, "mleredux-bridge-openenv"}))
    (space / "requirements.txt").write_text(
        "".join(f"{line}\n" for line in [*pinned, "openenv>=0.10,<0.11"]), encoding="utf-8"
    )
    (space / PACKED).write_bytes(archive)


def _write_registry(wanted: Plan, folder: Path) -> None:
    datasets = []
    for part in PARTS:
        rows = [json.loads(line) for line in (folder / f"{part}.jsonl").open(encoding="utf-8")]
        tasks = [{"name": f"mleredux/{Path(row['path']).name}", "path": row["path"]} for row in rows]
        if tasks:
            name = f"{wanted.words['package']}-{part}"
            about = f"The part {part} of {wanted.name}."
            datasets.append({"name": name, "version": _VERSION, "description": about, "tasks": tasks})
    (folder / "registry.json").write_text(json.dumps(datasets, indent=1) + "\n", encoding="utf-8")


def _filled(template: str, wanted: Plan, **words: Any) -> str:
    path = Path(__file__).with_name("published") / f"{template}.txt"
    return Template(path.read_text(encoding="utf-8")).substitute(wanted.words | words)


def _sums(folder: Path) -> list[tuple[str, str]]:
    """Return the paths of all files but the checksums, and their SHA-256, or an empty one if they are not regular."""
    paths = sorted(path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    regular = {path: path.is_file() and not path.is_symlink() for path in paths if path != folder / SUMS}
    sums = [hashlib.sha256(path.read_bytes()).hexdigest() if known else "" for path, known in regular.items()]
    return [(path.relative_to(folder).as_posix(), digest) for path, digest in zip(regular, sums, strict=True)]
