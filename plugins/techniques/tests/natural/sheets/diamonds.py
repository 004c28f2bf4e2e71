"""Diamonds: prices by carat, cut, color, clarity and dimensions; a random test."""

from natural.sheet import NO_GAPS, NO_SCRIPT, NUMBERS, claim, how, ordered

SHEET = {
    "imbalance": NUMBERS,
    "missing": NO_GAPS,
    "debugging": NO_SCRIPT,
    "calibration": NUMBERS,
    "encoding": claim(
        {
            "cut": ordered("Fair", "Good", "Very Good", "Premium", "Ideal"),
            "color": ordered("J", "I", "H", "G", "F", "E", "D"),
            "clarity": ordered("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
        },
        "Grades of the trade. Mean residuals of log price given log carat rise with each step: clarity -0.65 to 0.32, "
        "color -0.31 (J) to 0.08 (D), cut -0.26 to 0.06 (Very Good and Premium, 0.00 and -0.03, are exchanged).",
        undecided="blind naive",
        nothing=True,
    ),
    "eda": claim(
        {"relations": {"carat": "monotone", "x": "monotone", "y": "monotone", "z": "monotone"}},
        "Rank correlations with the price 0.96, 0.96, 0.96, 0.95. table, clarity, color, cut, depth: "
        "out-of-fold skill of"
        "0.18, 0.20, 0.13, 0.12, 0.11 by themselves, between 0.1 and 0.2: open. No KS distance above 0.05. One z of 0.",
        undecided="everything",
    ),
    "cv": claim(
        {"method": how("KFold", n_splits=5, shuffle=True)},
        "A random split; no column repeats by groups, 0 duplicates of 2,081 rows.",
        undecided="naive",
        nothing=True,
    ),
    "scaling": claim(
        {},
        "Skewness 0.27 to 0.69, of carat 1.01 (open); at most 4.2 % outliers.",
        undecided="naive",
        nothing=True,
    ),
    "leakage": claim(
        [], "carat, x, y, z tell as much on the test: they are the size.", undecided="naive", nothing=True
    ),
    "metric": claim(),
    "ensembling": claim(),
    "features": claim(
        {
            "tells": {},
            "pairs": [
                ("color", "clarity"),
                ("carat", "clarity"),
                ("carat", "color"),
                ("clarity", "x"),
                ("color", "x"),
                ("clarity", "y"),
                ("color", "y"),
                ("clarity", "z"),
                ("color", "z"),
            ],
            "transform": "log1p",
        },
        "All tell: carat 0.96 to cut 0.12 (z = 5.5); depth 0.11 (z = 4.9) is open. Residuals of log price given "
        "log carat"
        "differ by clarity and color by 0.97 and 0.39. Log price is linear in log carat, and the metric is in "
        "logarithms.",
        undecided="naive",
    ),
    "shift": claim({}, "A random split: all distances below 0.05.", undecided="naive", nothing=True),
}
