"""The reward of Harbor's verifier, as a submission that only this machine can create, and the grader that reads it."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import sys
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from mleredux.errors import InvalidSubmission
from mleredux.plugin.files import cache_dir, open_regular, write_once
from mleredux.plugin.grader import FormInput, Grader, GradingInput, Score

FILE = "reward.json"
_MOST = 1 << 20


def seal(task: str, rewards: dict[str, float] | None, message: str | None) -> str:
    """Return the submission: the verifier's rewards, signed.

    Args:
        task: The id of the task.
        rewards: The rewards by name; None if there are none.
        message: The reason why there are none.
    """
    rewards_document = {"task": task, "rewards": rewards, "message": message}
    return json.dumps({**rewards_document, "seal": _sign(rewards_document)})


def read_rewards(logs: Path) -> tuple[dict[str, float] | None, str | None]:
    """Read a verifier's `reward.json` or `reward.txt`, both of which are untrusted.

    Returns:
        The rewards by name, or None and an error message.
    """
    for name in ("reward.json", "reward.txt"):
        text = _text(logs / name)
        if text is None:
            continue
        try:
            document = json.loads(text) if name.endswith(".json") else {"reward": float(text.strip())}
        except (ValueError, RecursionError):
            return None, f"The verifier's {name} is not valid."
        if not isinstance(document, dict) or not document:
            return None, f"The verifier's {name} contains no named rewards."
        for key, value in document.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
                return None, f"The verifier's {name} has {value!r:.40} as {key!r:.40}, which is not a finite number."
        return {key: float(value) for key, value in document.items()}, None
    return None, "The verifier wrote no reward."


def _text(path: Path) -> str | None:
    try:
        with open_regular(path) as file:
            return file.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return None


def _score(grading: GradingInput) -> Score:
    document = _read(grading.submission.read_bytes())
    if document["task"] != grading.task.id:
        raise InvalidSubmission("This reward is for another task.")
    rewards = document["rewards"]
    if rewards is None:
        raise InvalidSubmission(str(document["message"]))
    value = rewards.get("reward", sum(rewards.values()) / len(rewards))
    return Score(value=value, details={"rewards": rewards})


def _check(form: FormInput) -> None:
    source: Path | BinaryIO = form.submission
    _read(source.read_bytes() if isinstance(source, Path) else source.read(_MOST))


def _read(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content[:_MOST])
        sealed = document.pop("seal")
        if hmac.compare_digest(sealed, _sign(document)):
            return dict(document)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise InvalidSubmission("The verifier writes the reward after the agent has ended; agents can't write it.")


def _sign(document: dict[str, Any]) -> str:
    return hmac.new(_key(), json.dumps(document, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def _key() -> bytes:
    return write_once(cache_dir() / "harbor" / ".key", partial(secrets.token_bytes, 32))


GRADER = Grader(id="reward", title="Reward from a verifier", direction="maximize", score=_score, check=_check)
