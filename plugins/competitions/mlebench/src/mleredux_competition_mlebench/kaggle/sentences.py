"""Error messages for failures of Kaggle downloads."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from mleredux.errors import DataError

SITE = "https://www.kaggle.com"
_AGAIN = "Run the same command again to resume the download."


class Refusal(Exception):
    """The reason for a failure, as plain data that a child process can report.

    Args:
        kind: A key of `_SENTENCES`.
        facts: The message's values; no secrets.
    """

    def __init__(self, kind: str, **facts: Any) -> None:
        super().__init__(kind)
        self.kind, self.facts = kind, facts


_SENTENCES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def as_error(refusal: Refusal, competition: str) -> DataError:
    """Return the refusal as a `DataError`."""
    texts = _SENTENCES[refusal.kind]
    facts = {"competition": competition, "site": SITE, "page": f"{SITE}/c/{competition}", **refusal.facts}
    return DataError(texts["problem"].format_map(facts), hint=texts["remedy"].format_map(facts))
