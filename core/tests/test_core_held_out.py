"""Copies of held-out files among the files of an agent: each kind of copy, in each way into a sandbox."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mleredux._core.stages import held_out
from mleredux._core.stages.held_out import Search
from mleredux._core.stages.steps import _refuse_copies
from mleredux.errors import AgentBroken
from mleredux.models import Agent, Build
from mleredux.models.agent import AgentFolder
from mleredux.models.events import Warned

SECRET = "id,y\n" + "".join(f"{number},{random.Random(number).random()}\n" for number in range(200))


def zipped(*contents: bytes, stored: bool = False) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("notes.txt", "nothing")
        for number, content in enumerate(contents):
            archive.writestr(f"a/{number}.bin", content)
    return file.getvalue()


def tarred(content: bytes, mode: str = "w", form: int = tarfile.PAX_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode, format=form) as archive:  # type: ignore[call-overload]
        for name, data in (("empty", b""), ("weights/ü.bin", content)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "copy": lambda content: content,
    "zip": zipped,
    "zip without compression": lambda content: zipped(content, stored=True),
    "zip behind a program": lambda content: b"#!/bin/sh\nexit\n" + zipped(content),
    "tar": tarred,
    "old tar": lambda content: tarred(content, form=tarfile.USTAR_FORMAT),
    "GNU tar": lambda content: tarred(content, form=tarfile.GNU_FORMAT),
    "tar.gz": lambda content: tarred(content, "w:gz"),
    "tar.bz2": lambda content: tarred(content, "w:bz2"),
    "tar.xz": lambda content: tarred(content, "w:xz"),
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "tar in zip": lambda content: zipped(b"PK", tarred(content)),
    "zip in tar.gz": lambda content: tarred(zipped(content), "w:gz"),
    "gz in zip": lambda content: zipped(gzip.compress(content)),
}


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A prepared folder."""
    for name, text in (("private/answers.csv", SECRET), ("private/tiny", "1"), ("public/train.csv", f"{SECRET}!")):
        (tmp_path / "prepared" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "prepared" / name).write_text(text)
    (tmp_path / "prepared/private/train.csv").write_text(f"{SECRET}!")
    return tmp_path / "prepared"


@pytest.mark.attack
@pytest.mark.parametrize("way", [*WAYS, "hard link"])
def test_copies_are_found_however_they_are_packed(way: str, prepared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "agent" / "deep"
    folder.mkdir(parents=True)
    if way == "hard link":
        os.link(prepared / "private" / "answers.csv", folder / "x.py")
    else:
        (folder / "x.py").write_bytes(WAYS[way](SECRET.encode()))
        (folder / "public").write_bytes(WAYS[way](f"{SECRET}!".encode()))
        (folder / "other").write_bytes(WAYS[way](SECRET.encode()[::-1]))
        (folder / "tiny").write_bytes(WAYS[way](b"1"))
    search = Search(prepared / "private")
    [(name, private)] = search.within(tmp_path / "agent")
    assert (name.partition("!")[0], private) == ("deep/x.py", "answers.csv")
    assert search.not_searched == {}


def bomb() -> bytes:
    return gzip.compress(gzip.compress(bytes(1 << 20)) * 40)


def encrypted() -> bytes:
    content = bytearray(zipped(SECRET.encode()))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.rfind(mark) + place
        content[at] |= 1
    return bytes(content)


UNREADABLE = {
    "bomb": (bomb, "unpacked"),
    "encrypted": (encrypted, "encrypted"),
    "damaged": (lambda: zipped(SECRET.encode())[:-200] + zipped()[-22:], "damaged"),
    "cut": (lambda: gzip.compress(SECRET.encode())[:-100], "damaged"),
    "7z": (lambda: b"7z\xbc\xaf\x27\x1c" + bytes(100), "7z"),
    "many": (lambda: zipped(*(b"" for _ in range(300))), "members"),
    "nested": (lambda: gzip.compress(gzip.compress(gzip.compress(gzip.compress(SECRET.encode())))), "levels"),
}


@pytest.mark.attack
@pytest.mark.parametrize("kind", UNREADABLE)
def test_archives_that_are_not_searched_are_named(
    kind: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_out, "_UNPACKED_BYTES", 16 << 20)
    monkeypatch.setattr(held_out, "_MEMBERS", 200)
    make, why = UNREADABLE[kind]
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "a.bin").write_bytes(make())
    search = Search(prepared / "private")
    assert list(search.within(tmp_path / "agent")) == []
    [(name, reason)] = search.not_searched.items()
    assert name.startswith("a.bin") and why in reason


@pytest.mark.attack
@pytest.mark.parametrize("place", ["context", "folder", "tool"])
def test_an_agent_with_a_copy_in_any_of_its_folders_is_refused(toy: Any, place: str, tmp_path: Path) -> None:
    run = toy.run("copy")
    answers = toy.data.find(toy.task()).private / "answers.csv"
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: skill\ndescription: Helps.\n---\n")
    build = {"context": Build(context=folder), "folder": Build(folder=AgentFolder(path=folder)), "tool": Build()}[place]
    agent = Agent(id="own", title="Own", command=("true",), build=build)
    grants = run.spec.grants.model_copy(update={"tools": (str(folder),) if place == "tool" else ()})
    started: Any = SimpleNamespace(spec=run.spec.model_copy(update={"grants": grants}), emit=run.emit)
    context: Any = SimpleNamespace(run=started, agent=agent, task=toy.task(), catalogue=toy.catalogue, data=toy.data)
    (folder / "damaged.gz").write_bytes(gzip.compress(bytes(100))[:-9])
    _refuse_copies(context)
    assert [event.payload.path for event in run.events() if isinstance(event.payload, Warned)] == ["damaged.gz"]
    (folder / "model.zip").write_bytes(zipped(answers.read_bytes()))
    with pytest.raises(
        AgentBroken, match=r"model.zip!a/0.bin is identical to answers.csv, a held-out file of task toy"
    ):
        _refuse_copies(context)
