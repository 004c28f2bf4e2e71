"""Rewards of verifiers, which are untrusted: finite numbers by name, or one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from mleredux_bridge_harbor.reward import read_rewards


@pytest.mark.parametrize(
    ("name", "text", "rewards"),
    [
        ("reward.txt", "0.5", {"reward": 0.5}),
        ("reward.json", '{"a": 1, "b": 0.25}', {"a": 1.0, "b": 0.25}),
        ("reward.txt", "nan", None),
        ("reward.txt", "9" * 5_000_000, None),
        ("reward.json", f'{{"a": {"9" * 400}}}', None),
        ("reward.json", f'{{"a": {"9" * 5_000}}}', None),
        ("reward.json", '{"a": null}', None),
        ("reward.json", '{"a": 1, "b": true}', None),
        ("reward.json", '{"a": 1, "b": "0.5"}', None),
        ("reward.json", '{"a": NaN}', None),
        ("reward.json", '{"a": 1, "b": -Infinity}', None),
        ("reward.json", '{"a": {"b": 1}}', None),
        ("reward.json", "{}", None),
        ("reward.json", "[1]", None),
        ("reward.json", "[" * 100_000, None),
    ],
)
def test_only_finite_numbers_count(tmp_path: Path, name: str, text: str, rewards: dict[str, float] | None) -> None:
    (tmp_path / name).write_text(text)
    found, message = read_rewards(tmp_path)
    assert found == rewards
    assert (message is None) == (rewards is not None)
    assert message is None or message.startswith(f"The verifier's {name} ")
    if text.startswith('{"a": 1, "b"') and message is not None:
        assert message.endswith("as 'b', which is not a finite number."), "the sentence names the reward"
