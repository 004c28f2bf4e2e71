"""Raw data and leaderboards from Kaggle, through the official `kaggle` package (the extra `kaggle`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar


@dataclass(frozen=True)
class KaggleData:
    """A competition's files as the `fetch` of a task: `fetch(raw)`.

    Attributes:
        competition: Kaggle's name for the competition.
        md5: MD5 of the archive with all files, if published.
        others: URLs of files that are not on Kaggle, by raw file name.
    """

    competition: str
    md5: str | None = None
    others: tuple[tuple[str, str], ...] = ()
    neutral_order: ClassVar[bool] = True
    """Files are created in neutral order."""

    def __call__(self, raw: Path) -> None:
        """Download and unpack; a partial download stays in the folder `download` next to `raw` and can be resumed.

        Raises:
            DataError: Credentials or consent are missing, Kaggle can't be reached, or its files are damaged; the
                message states what to do.
        """
        from mleredux_competition_mlebench.kaggle.download import fetch_data

        fetch_data(self, raw)

    def check(self) -> None:
        """Ask Kaggle whether this account may download the data; nothing is downloaded.

        Raises:
            DataError: The account may not download the data, or Kaggle can't be reached.
        """
        from mleredux_competition_mlebench.kaggle.download import check_access

        check_access(self)


@dataclass(frozen=True)
class KaggleLeaderboard:
    """A competition's final leaderboard as the `fetch_leaderboard` of a task.

    Attributes:
        competition: Kaggle's name for the competition.
        public: Whether the task is ranked by Kaggle's public leaderboard.
    """

    competition: str
    public: bool = False

    def __call__(self, path: Path) -> None:
        """Write `rank,score`, best first, without names.

        Raises:
            DataError: As for the data.
        """
        from mleredux_competition_mlebench.kaggle.download import fetch_leaderboard

        fetch_leaderboard(self, path)
