"""A user's file that can't be read is one error, which names the file once and states the reason in words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.data.medals import read_leaderboard
from mleredux.errors import MlereduxError
from mleredux_audit_findings.study import Study
from mleredux_gateway.config import load_config
from mleredux_gateway.prices import Prices
from mleredux_grading import read_jsonl

READERS: dict[str, Callable[[Path], Any]] = {
    "listed submissions": read_jsonl,
    "leaderboard": read_leaderboard,
    "plan of findings": Study,
    "gateway's configuration": lambda path: load_config({"MLEREDUX_GATEWAY_CONFIG": str(path)}),
    "price table": partial(Prices, None),
}
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "No such file or directory"),
    "a folder": (Path.mkdir, "Is a directory"),
    "not UTF-8": (lambda path: path.write_bytes(b"\xff\xfe" * 9), "codec can't decode"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("reader", READERS)
def test_an_unreadable_file_is_named_once_with_the_reason(tmp_path: Path, reader: str, damage: str) -> None:
    path, (make, reason) = tmp_path / "file.csv", DAMAGES[damage]
    make(path)
    with pytest.raises(MlereduxError) as error:
        READERS[reader](path)
    assert reason in error.value.message and "Errno" not in error.value.message
    assert error.value.message.count(str(path)) == 1, error.value.message
