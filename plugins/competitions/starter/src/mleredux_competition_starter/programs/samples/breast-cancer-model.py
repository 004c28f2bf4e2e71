"""A model that gives each tumor the same probability, its only weight."""

import json


class Model:
    def __init__(self, share: float) -> None:
        self.share = share

    def predict(self, rows: list[dict[str, str]]) -> list[float]:
        return [self.share for _ in rows]


def load(folder: str) -> Model:
    with open(f"{folder}/weights.json") as file:
        return Model(**json.load(file))
