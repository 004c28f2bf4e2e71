"""Median prices of houses in 46 Texan cities by month from 2008; the test is what comes from 2013 on."""

from natural.sheet import MARKED, NO_SCRIPT, NUMBERS, claim, how

SHEET = {
    "imbalance": NUMBERS,
    "calibration": NUMBERS,
    "debugging": NO_SCRIPT,
    "missing": claim(
        {"listings": ("MAR", ["city", "inventory"], MARKED), "inventory": ("MAR", ["city", "listings"], MARKED)},
        "Missing together in 118 of 131 rows (0.95); by city 0.51 and 0.50 out of fold: a few cities don't report.",
    ),
    "encoding": claim(
        {"city": ("nominal", how("OneHotEncoder")), "month": ("cyclic", how("none"))},
        "City tells 0.92 of the price. The alphabetical order of cities tells a linear model nothing.",
    ),
    "eda": claim(
        {
            "relations": {"city": "values", "sales": "monotone", "listings": "monotone", "inventory": "monotone"},
        },
        "Out of fold: city 0.92, sales 0.57 (rank correlation 0.45), listings 0.54 (0.40), inventory 0.34 "
        "(0.30); date 0.12,"
        "year 0.10, month 0.08. KS: year and date 1, inventory 0.38, listings 0.16; month 0.095 and sales 0.07 "
        "are no drift.",
    ),
    "cv": claim(
        {
            "time": {"column": "date", "test_after_train": True},
            "method": how("TimeSeriesSplit", time_column="date", n_splits=5),
        },
        "All test rows are from 2013 on, all training rows before; all 46 cities are in both tables.",
    ),
    "scaling": claim(
        {"sales": "log1p", "listings": "log1p", "inventory": "log1p"},
        "Skewness 3.9, 3.9, 3.7; outliers 11.5, 8.9, 6.5 %. year, month, date are flat.",
        undecided="absurd everything",
    ),
    "leakage": claim([], "Nothing loses its skill on the test.", undecided="naive", nothing=True),
    "metric": claim(),
    "ensembling": claim(),
    "features": claim(
        {
            "tells": {},
            "pairs": [("listings", "inventory"), ("sales", "listings"), ("sales", "inventory")],
        },
        "All tell: city 0.92 to year 0.10 (z = 5.3); month 0.08 (z = 4) is open. Skewness of the target 0.55 "
        "and errors"
        "absolute: no transform. Within cities the price rises with the date (t = 6.9).",
        undecided="naive",
    ),
    "shift": claim(
        {"target": 153_000.0, "changes": "year", "recent": 0.3},
        "Prices rise by 4.9 % in 2012, after four flat years; the middle of the test is 1.75 years later: about "
        "153,000"
        "against 134,900 in training. Levels by city change along the years: trained on the last three tenths, "
        "a ridge regression errs by 13,400 in the test, on all rows by 18,300.",
    ),
}
