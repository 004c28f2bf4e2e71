"""Contents of scenario files, and the reporting of mistakes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import mleredux_scripted_llm
import pytest
from mleredux.errors import MlereduxError
from mleredux_scripted_llm import ScriptedLlm, load_scenario

EXAMPLE = Path(mleredux_scripted_llm.__file__).parent / "example" / "scenario.yaml"


def ask(url: str, *said: str, key: str = "k", conversation: str | None = None) -> str:
    """Return the reply's text; turns alternate between user and model."""
    messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(said)]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    headers |= {"X-Conversation": conversation} if conversation else {}
    body = json.dumps({"model": "m", "messages": messages}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/chat/completions", body, headers)) as answer:
        text: str = json.load(answer)["choices"][0]["message"]["content"]
        return text


def test_the_example_goes_from_a_bug_to_a_fix_to_an_improvement() -> None:
    with ScriptedLlm(EXAMPLE) as llm:
        draft = ask(llm.url, "Solve the competition.")
        fix = ask(llm.url, "Solve the competition.", draft, "Traceback: FileNotFoundError")
        better = ask(llm.url, "Solve the competition.", fix, "validation metric: 0.10")
        end = ask(llm.url, "Solve the competition.", better, "validation metric: 0.9")
    assert "trian.csv" in draft and "to_csv" in fix
    assert "A metric of 0.10" in better and "RandomForest" in better
    assert end == "DONE"
    assert llm.used == ["draft", "fix", "improvement", "end"]


def test_conversations_do_not_disturb_one_another() -> None:
    rules = {"rules": [{"replies": [{"text": "first"}, {"text": "second"}]}, {"reply": {"text": "over"}}]}
    with ScriptedLlm(rules) as llm:
        assert [ask(llm.url, "hello", key=key) for key in "aabab"] == ["first", "second", "first", "over", "second"]
        assert ask(llm.url, "hello", key="a", conversation="another") == "first"


@pytest.mark.parametrize(
    ("rule", "said", "fits"),
    [
        ({"when": {"any": ["alpha", "beta"]}}, ["alpha", "x", "beta"], True),
        ({"when": {"any": ["alpha", "beta"]}}, ["alpha", "x", "gamma"], False),
        ({"when": {"last": "alpha"}}, ["alpha", "x", "beta"], False),
        ({"when": {"last": "^two$"}}, ["one\ntwo\nthree"], True),
        ({"when": {"last": "one.*three"}}, ["one\ntwo\nthree"], True),
        ({"when": {"last": "one"}, "unless": {"last": "two"}}, ["one two"], False),
        ({"when": {"has_tools": False, "protocol": "openai-chat", "stream": False, "calls": 0}}, ["x"], True),
        ({"when": {"has_tools": True}}, ["x"], False),
        ({"when": {"model": "^n"}}, ["x"], False),
        ({"when": {"system": "x"}}, ["x"], False),
        ({"times": 0}, ["x"], False),
    ],
)
def test_conditions(rule: dict[str, Any], said: list[str], fits: bool) -> None:
    with ScriptedLlm({"rules": [{**rule, "reply": {"text": "yes"}}, {"reply": {"text": "no"}}]}) as llm:
        assert ask(llm.url, *said) == ("yes" if fits else "no")


def test_the_last_of_several_replies_can_repeat() -> None:
    with ScriptedLlm({"rules": [{"replies": [{"text": "a"}, {"text": "b"}], "repeat": True}]}) as llm:
        assert [ask(llm.url, "x") for _ in range(4)] == ["a", "b", "b", "b"]


def test_placeholders_in_inserted_texts_are_not_filled(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x <<name>> << 3\n")
    rules = {"rules": [{"when": {"last": "(?P<name>b)"}, "reply": {"text": "<<file:code.py>> <<name>> <<unknown>>"}}]}
    with ScriptedLlm(rules, folder=tmp_path) as llm:
        assert ask(llm.url, "abc") == "x <<name>> << 3 b <<unknown>>"


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ([{"when": {"last": "("}, "reply": {"text": "x"}}], "not a valid regular expression"),
        ([{"when": {"lost": "x"}, "reply": {"text": "x"}}], "rules.0.when.lost"),
        ([{"reply": {"text": "x"}, "replies": [{"text": "x"}]}], "either `reply` or `replies`"),
        ([{"reply": {}}], "a reply needs"),
        ([{"when": {"after": "b"}, "reply": {"text": "x"}}], "no rule is named b"),
        ([{"reply": {"text": "<<file:absent.py>>"}}], "absent.py"),
    ],
)
def test_mistakes_are_reported_with_their_location(rules: list[dict[str, Any]], told: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(json.dumps({"rules": rules}))
    with pytest.raises(MlereduxError, match="scenario.yaml.*" + told.replace(".", r"\.")):
        load_scenario(path)


def test_other_keys_are_refused() -> None:
    with ScriptedLlm({"rules": [{"reply": {"text": "yes"}}]}, key="sk-1") as llm:
        assert ask(llm.url, "x", key="sk-1") == "yes"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(llm.url, "x", key="sk-2")


def test_the_command_serves_until_it_is_stopped() -> None:
    command = [sys.executable, "-m", "mleredux", "scripted-llm", str(EXAMPLE), "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}, **pipes) as program:  # type: ignore[call-overload]
        try:
            url = program.stdout.readline().strip()
            assert "trian" in ask(url, "Begin.")
            assert "rule draft" in program.stderr.readline()
        finally:
            program.send_signal(signal.SIGTERM)
        assert program.wait(10) == 0
