"""What readers of native logs stand on: any JSON in, values that a rollout may hold out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux_rollout import InvalidRollout, Step, Trajectory, dump_rollout, parse_rollout
from mleredux_rollout.models import AgentInfo
from mleredux_rollout.native import as_count, as_number, as_text, as_time, parse_native, read_native

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(ANY)
def test_any_value_becomes_what_a_step_may_hold(value: object) -> None:
    given_value = parse_native(json.dumps(value).encode())
    number, count, time = as_number(given_value), as_count(given_value), as_time(given_value)
    assert number is None or math.isfinite(number)
    step = Step(
        step_id=1, source="agent", message=as_text(given_value), timestamp=time, extra={"n": number, "c": count}
    )
    document = Trajectory(agent=AgentInfo(name="a", version="1"), steps=[step])
    assert parse_rollout(dump_rollout(document)).steps[0].extra == step.extra


def test_unpaired_surrogates_and_nan_are_let_through() -> None:
    found = parse_native(b'{"out": "\\ud800x", "metric": NaN}')
    assert (as_text(found["out"]), as_number(found["metric"])) == ("?x", None)


def test_long_texts_lose_their_middle() -> None:
    text = as_text("a" * 500 + "b" * 500, limit=100)
    assert text == "a" * 50 + "\n… [900 characters left out] …\n" + "b" * 50


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"9" * 10_000, b"\xff\xfe", b"[" + b"," * 4_000_001])
def test_what_is_not_json_is_one_error(data: bytes) -> None:
    with pytest.raises(InvalidRollout):
        parse_native(data)


def test_a_log_that_is_no_file_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("folder", "none.json"):
        with pytest.raises(InvalidRollout):
            read_native(tmp_path, name)


def test_links_out_of_the_output_are_not_followed(tmp_path: Path) -> None:
    output, secret = tmp_path / "output", tmp_path / "secret"
    (output / "logs").mkdir(parents=True)
    secret.mkdir()
    (secret / "journal.json").write_text('{"nodes": []}')
    (output / "logs" / "journal.json").symlink_to(secret / "journal.json")
    (output / "logs" / "folder").symlink_to(secret)
    for name in ("logs/journal.json", "logs/folder/journal.json", "../secret/journal.json"):
        with pytest.raises(InvalidRollout):
            read_native(output, name)
