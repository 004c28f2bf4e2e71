"""One source, two clients: the synchronous one is generated, and has the same nouns."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import mleredux_client
import pytest
from mleredux_client import AsyncClient, Client

PACKAGE = Path(__file__).parents[1]
PAIRS = [
    (getattr(mleredux_client, name), getattr(mleredux_client, name.removeprefix("Async")))
    for name in mleredux_client.__all__
    if name.startswith("Async")
]


def test_the_synchronous_client_is_current() -> None:
    checked = subprocess.run(
        [sys.executable, str(PACKAGE / "generate_sync.py"), "--check"], capture_output=True, text=True
    )
    assert checked.stdout == "current\n", checked.stderr


@pytest.mark.parametrize(("waiting", "plain"), PAIRS, ids=lambda kind: kind.__name__)
def test_both_have_the_same_methods_with_the_same_arguments(waiting: type, plain: type) -> None:
    names = {name.replace("aclose", "close") for name in dir(waiting) if not name.startswith("_")}
    assert names == {name for name in dir(plain) if not name.startswith("_")}
    for name in names:
        one, other = getattr(waiting, "aclose" if name == "close" else name), getattr(plain, name)
        if callable(one):
            assert list(inspect.signature(one).parameters) == list(inspect.signature(other).parameters)
            assert not inspect.iscoroutinefunction(other)


def test_nothing_of_the_other_world_is_left_in_the_synchronous_one() -> None:
    for path in (PACKAGE / "src/mleredux_client/_sync").glob("*.py"):
        text = path.read_text()
        assert "await" not in text and "asyncio" not in text and " Async" not in text, path


def test_every_public_thing_says_what_it_is() -> None:
    for kind in (AsyncClient, Client, mleredux_client.Run, mleredux_client.Artifacts, mleredux_client.Experiment):
        for name, member in inspect.getmembers(kind):
            if not name.startswith("_"):
                assert inspect.getdoc(member), f"{kind.__name__}.{name}"
