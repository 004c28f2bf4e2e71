"""Files that one pass writes together land under their names, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import pytest
from mleredux.errors import DataError
from mleredux_competition_mlebench.blocks import Preparation, Workspace, Zip
from mleredux_competition_mlebench.blocks.one_pass import one_pass


def halves(even: IO[bytes], odd: IO[bytes]) -> None:
    for number in range(10):
        (odd if number % 2 else even).write(b"%d\n" % number)


def test_each_file_lands_in_its_place(tmp_path: Path) -> None:
    passes = []

    def writer(even: IO[bytes], odd: IO[bytes]) -> None:
        passes.append(1)
        halves(even, odd)

    def recipe(w: Workspace) -> None:
        even, odd = one_pass(writer, 2)
        w.private("deep/even.txt", even)
        w.public("odd.zip", Zip({"odd.txt": odd}))

    Preparation(recipe)(tmp_path, tmp_path / "public", tmp_path / "private")
    assert (tmp_path / "private/deep/even.txt").read_bytes() == b"0\n2\n4\n6\n8\n"
    assert (tmp_path / "private/deep/even.txt").stat().st_mode & 0o777 == 0o644
    assert Workspace(tmp_path / "public").tree("odd.zip").read("odd.txt") == b"1\n3\n5\n7\n9\n"
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 2
    assert passes == [1]


def test_a_pass_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def writer(even: IO[bytes], odd: IO[bytes]) -> None:
        halves(even, odd)
        raise ValueError("record 11 is no number")

    def recipe(w: Workspace) -> None:
        even, odd = one_pass(writer, 2)
        w.public("even.txt", even)
        w.private("odd.txt", odd)

    with pytest.raises(DataError, match="record 11"):
        Preparation(recipe)(tmp_path, tmp_path / "public", tmp_path / "private")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
