"""The record of calls: complete, small, without secrets, also after a kill."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux._core.store import Run
from mleredux_gateway.record import Record, read_calls
from mleredux_gateway.secrets import Mask, run_token
from mleredux_llm_protocols import Splitter

SECRET = "sk-planted-5f1d0c77e2"


def end(record: Record, call: int, request: dict[str, Any], response: Any = None) -> None:
    record.end({"call": call, "kind": "chat"}, request, response)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.lists(st.sampled_from([{"role": "user", "content": letter * 99} for letter in "abc"]), max_size=5)
REQUESTS = st.fixed_dictionaries({"messages": MESSAGES}, optional={"tools": JSON, "system": JSON, "input": MESSAGES})


@settings(max_examples=60, deadline=None)
@given(requests=st.lists(REQUESTS, max_size=8))
def test_requests_are_read_back_unchanged(requests, tmp_path_factory):
    folder = tmp_path_factory.mktemp("record")
    record = Record(folder, lambda text: text)
    for number, request in enumerate(requests, start=1):
        end(record, number, request)
    assert [call["request"] for call in read_calls(folder / "calls.jsonl")] == requests


def test_a_growing_conversation_grows_the_record_by_new_messages_only(tmp_path):
    record = Record(tmp_path, lambda text: text)
    messages = []
    letters = random.Random(0)
    for number in range(1, 101):
        messages.append({"role": "user", "content": "".join(letters.choices(string.ascii_letters, k=1000))})
        end(record, number, {"model": "m", "messages": messages, "tools": [{"name": "x" * 5000}]})
    assert (tmp_path / "calls.jsonl").stat().st_size < 150_000, "5 MB were sent"
    last = list(read_calls(tmp_path / "calls.jsonl"))[-1]
    assert last["request"] == {"model": "m", "messages": messages, "tools": [{"name": "x" * 5000}]}


def test_secrets_are_masked_in_all_their_forms(tmp_path):
    quoted = 'a"quoted\\secret'
    mask = Mask([SECRET, quoted, "short"])
    record = Record(tmp_path, mask.text)
    end(record, 1, {"messages": [SECRET, {"key": f"x{SECRET}y"}], quoted: "short"}, {SECRET: quoted})
    written = (tmp_path / "calls.jsonl").read_text()
    assert SECRET not in written and "secret" not in written
    (call,) = read_calls(tmp_path / "calls.jsonl")
    assert call["request"] == {"messages": ["*****", {"key": "x*****y"}], "*****": "short"}
    assert mask.data(f"Bearer {SECRET}".encode()) == b"Bearer *****"


def test_a_partial_line_after_a_kill_is_skipped_and_repaired(tmp_path):
    record = Record(tmp_path, lambda text: text)
    end(record, 1, {"messages": ["a"]})
    with (tmp_path / "calls.jsonl").open("ab") as file:
        file.write(b'{"call": 2, "requ')
    assert [call["call"] for call in read_calls(tmp_path / "calls.jsonl")] == [1]
    again = Record(tmp_path, lambda text: text)
    assert again.next == 2
    end(again, 2, {"messages": ["b"]})
    assert [call["call"] for call in read_calls(tmp_path / "calls.jsonl")] == [1, 2]


def test_a_call_has_its_texts_and_usage_and_no_headers(opened, planted_key):
    agent = opened()
    agent.say("echo", temperature=0.5)
    agent.close()
    (call,) = agent.calls()
    assert call["request"]["messages"] == [{"role": "user", "content": "echo"}]
    assert call["request"]["temperature"] == 0.5
    assert call["response"]["choices"][0]["message"]["content"] == "The key is *****, I think."
    assert (call["model"], call["kind"], call["upstream"], call["status"]) == ("priced", "chat", "scripted", 200)
    assert call["host"].startswith("127.0.0.1:") and call["seconds"] > 0 and call["time"].startswith("20")
    written = (agent.run.path / "llm" / "calls.jsonl").read_text()
    assert planted_key not in written and agent.token not in written and "Authorization" not in written


def test_tokens_of_runs_are_distinct_and_stable(tmp_path):
    assert run_token(b"a" * 32, "run-1") == run_token(b"a" * 32, "run-1")
    assert len({run_token(salt, run) for salt in (b"a" * 32, b"b" * 32) for run in ("run-1", "run-2")}) == 4


SERVE = """
import sys, time
from pathlib import Path
from mleredux.models import Agent
from mleredux._core.store import Run
from mleredux_gateway.endpoint import open_gateway
agent = Agent(id="talker", version="3", title="Talks", command=("true",))
gateway = open_gateway(Run(Path(sys.argv[1])), agent, Path(sys.argv[2]))
print(gateway.url, gateway.secrets[0], flush=True)
time.sleep(600)
"""


@pytest.fixture
def killed(opened, tmp_path) -> Run:
    """A run whose program was killed after one call, in the middle of another."""
    first = opened(llm_calls=3)
    first.close()
    run: Run = first.run
    socket = str(Path(f"/tmp/mleredux-killed-{os.getpid()}.sock"))
    program = subprocess.Popen([sys.executable, "-c", SERVE, str(run.path), socket], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        url, token = program.stdout.readline().split()
        body = {"model": "priced", "messages": [{"role": "user", "content": "hello"}]}
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            assert client.post("/v1/chat/completions", json=body).status_code == 200
            dripping = {**body, "messages": [{"role": "user", "content": "dripping"}], "stream": True}
            with client.stream("POST", "/v1/chat/completions", json=dripping) as answer:
                next(answer.iter_bytes())
                program.send_signal(signal.SIGKILL)
                program.wait()
    finally:
        program.kill()
        program.wait()
        Path(socket).unlink(missing_ok=True)
    return run


def test_after_a_kill_budgets_continue_from_the_record_with_the_interrupted_call(killed, opened):
    again = opened(run=killed)
    left = httpx.get(f"{again.gateway.url}/budget", headers={"X-Api-Key": again.token}, timeout=60).json()
    assert left["llm_calls"] == {"used": 2, "limit": 3}
    again.say()
    use = again.close()
    assert (use.calls, use.failed) == (3, 1)
    calls = again.calls()
    assert [call["call"] for call in calls] == [1, 2, 3]
    assert calls[1]["error"] == "The program was terminated during this call." and calls[1]["prompt_tokens"] > 0
    assert use.prompt_tokens == 200 + calls[1]["prompt_tokens"]
    assert json.loads((killed.path / "llm" / "trajectory.json").read_text())["final_metrics"]["extra"]["llm_calls"] == 3


@settings(max_examples=60, deadline=None)
@given(
    events=st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), min_size=1), max_size=6),
    line=st.sampled_from(["\n", "\r\n"]),
    cuts=st.lists(st.integers(0, 400), max_size=6),
)
def test_events_of_a_stream_are_complete_however_they_are_chunked(events, line, cuts):
    sent = "".join(f"data: {event}{line}{line}" for event in events).encode()
    places = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    frames = Splitter()
    came = [frame for start, end in itertools.pairwise(places) for frame in frames.feed(sent[start:end])]
    assert b"".join(came) + frames.rest() == sent
    assert [frame.decode().strip("\r\n").removeprefix("data: ") for frame in came] == events
