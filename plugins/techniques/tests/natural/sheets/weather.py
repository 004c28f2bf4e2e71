"""Weather of Seattle by day, 2012 to 2014; the test is 2015. The way the weather is recorded changed meanwhile."""

from natural.sheet import NO_GAPS, NO_SCRIPT, claim, how

SHEET = {
    "missing": NO_GAPS,
    "debugging": NO_SCRIPT,
    "imbalance": claim(
        ["TunedThresholdClassifierCV"],
        "534 to 23 rows, ratio 23. Balanced accuracy of linear model, forest, neighbors: 0.37, 0.47, 0.38 as it "
        "is, 0.54,"
        "0.55, 0.53 with thresholds (paired t 6.5, 2.7, 5.4).",
        refuted="naive opposite",
    ),
    "encoding": claim({"date": ("datetime", how("DatetimeEncoder"))}, "One date a day.", refuted="naive"),
    "eda": claim(
        {
            "types": {"date": "date"},
            "relations": {
                "precipitation": "monotone",
                "temp_max": "monotone",
                "temp_min": "monotone",
                "wind": "monotone",
            },
        },
        "Out of fold 0.61, 0.40, 0.30, 0.17; |2 AUC - 1| of the best class 0.68, 0.85, 0.84, 0.43. The date "
        "drifts; others"
        "have KS distances of at most 0.083.",
    ),
    "cv": claim(
        {
            "time": {"column": "date", "test_after_train": True},
            "method": how("TimeSeriesSplit", time_column="date", n_splits=5),
        },
        "All of 2015 is the test.",
    ),
    "scaling": claim(
        {"precipitation": "log1p"}, "Precipitation: skewness 3.3, outliers 14 %; wind 0.88, 2 %; temperatures neither."
    ),
    "leakage": claim(
        [],
        "precipitation tells fog or rain by its amount in both tables. What is lost on the test is lost by the "
        "change of"
        "labels, not by a leak.",
        undecided="naive",
        nothing=True,
    ),
    "metric": claim(),
    "calibration": claim(),
    "ensembling": claim(),
    "features": claim(
        {"tells": {}, "pairs": [("temp_max", "temp_min")]},
        "precipitation 0.61, temp_max 0.40, temp_min 0.30, wind 0.17 (z = 5.6). date: rain was 191 days of 2012 "
        "and 3 of 2014."
        "temp_max and temp_min together 0.43 against 0.40: the span of a day.",
        undecided="naive",
    ),
    "shift": claim(
        {
            "target": {"sun": 0.58, "fog": 0.41, "rain": 0.01, "drizzle": 0.0, "snow": 0.0},
            "changes": "date",
            "weights": "none",
            "recent": 0.34,
        },
        "Wet days are 'rain' in 2012 (191 rain, 5 fog) and 'fog' in 2014 (3 rain, 151 fog): the relation of "
        "precipitation"
        "with the label changes along the date; 2014 is what to expect: sun 0.58, fog 0.41, rain 0.01.",
        refuted="naive",
    ),
}
