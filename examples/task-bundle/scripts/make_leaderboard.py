"""Makes `leaderboard.csv`: reference models of ten kinds, each fitted on the train table and scored on the answers.

    python scripts/make_leaderboard.py

Needs scikit-learn and pandas.
"""

from __future__ import annotations

import tempfile

import mleredux
import pandas as pd
from bike_hours.task import HERE, task
from mleredux.plugin.task import thresholds
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

MODELS = [
    *(DummyRegressor(strategy=strategy) for strategy in ("mean", "median")),
    *(Ridge(alpha) for alpha in (0.1, 1, 10, 100)),
    *(make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge(alpha)) for alpha in (0.3, 1, 3)),
    *(make_pipeline(StandardScaler(), KNeighborsRegressor(k, weights="distance")) for k in (1, 3, 5, 9, 15)),
    *(DecisionTreeRegressor(max_depth=depth, random_state=0) for depth in (2, 3, 4, 6, 8, 12)),
    *(RandomForestRegressor(100, max_depth=depth, random_state=0) for depth in (4, 8, 16)),
    *(
        HistGradientBoostingRegressor(max_iter=rounds, learning_rate=rate, random_state=0)
        for rounds in (50, 150, 400)
        for rate in (0.03, 0.1)
    ),
]


def main() -> None:
    """Fit, score, sort, write."""
    with tempfile.TemporaryDirectory() as folder:
        prepared = mleredux.prepare(task.id, data_dir=folder)
        train, test = pd.read_csv(prepared.public / "train.csv"), pd.read_csv(prepared.public / "test.csv")
        answers = pd.read_csv(prepared.private / task.answers)
    columns = ["hour", "weekday", "sky", "temperature"]
    code = {"clear": 0, "cloudy": 1, "rain": 2}
    x, x_test = (table[columns].assign(sky=table["sky"].map(code)) for table in (train, test))
    scores = []
    for model in MODELS:
        predicted = model.fit(x, train["bikes"]).predict(x_test)
        scores.append(((predicted - answers["bikes"]) ** 2).mean() ** 0.5)
    pd.DataFrame({"score": sorted(scores)}).to_csv(HERE / "leaderboard.csv", index=False, float_format="%.5f")
    print(thresholds([round(score, 5) for score in sorted(scores)]))


if __name__ == "__main__":
    main()
