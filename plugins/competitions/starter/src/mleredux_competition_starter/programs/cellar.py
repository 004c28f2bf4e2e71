"""The environment of `wine-tasting`: measurements of a wine have a cost, and its cultivar must be named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mleredux_competition_starter.tables import read_table

COST = 0.03
CULTIVARS = ("cultivar_1", "cultivar_2", "cultivar_3")


class Tasting:
    """One wine per episode: the row `seed` of `cellar.csv`.

    An observation is a dictionary of the measurements made so far. An action is the name of a measurement (reward
    -0.03) or of a cultivar, which ends the episode (reward 1 if it is the wine's, else 0).

    Args:
        folder: The folder of the public or the private files.
    """

    def __init__(self, folder: Path) -> None:
        header, rows = read_table(folder / "cellar.csv")
        self.wines = [dict(zip(header, row, strict=True)) for row in rows]
        self.measurements = tuple(name for name in header if name not in ("id", "cultivar"))
        self._wine: dict[str, str] = {}
        self._known: dict[str, float] = {}

    def reset(self, *, seed: int) -> tuple[dict[str, float], dict[str, Any]]:
        """Start an episode with a new wine."""
        self._wine, self._known = self.wines[seed % len(self.wines)], {}
        return {}, {}

    def step(self, action: Any) -> tuple[dict[str, float], float, bool, bool, dict[str, Any]]:
        """Measure, or name the cultivar; an episode is truncated when all measurements have been made.

        Raises:
            ValueError: The action is neither a new measurement nor a cultivar.
        """
        if action in CULTIVARS:
            return dict(self._known), float(action == self._wine["cultivar"]), True, False, {}
        if action not in self.measurements or action in self._known:
            raise ValueError("That is not an action.")
        self._known[action] = float(self._wine[action])
        return dict(self._known), -COST, False, False, {}
