"""Miles per gallon of cars from 1970 to 1978; the test has those from 1979 to 1982."""

from natural.sheet import MEDIAN, NO_SCRIPT, NUMBERS, claim, how

ENGINE = ("Cylinders", "Displacement", "Horsepower", "Weight_in_lbs", "Acceleration")
SHEET = {
    "imbalance": NUMBERS,
    "calibration": NUMBERS,
    "debugging": NO_SCRIPT,
    "missing": claim(
        {"Horsepower": ("MCAR", [], MEDIAN)},
        "2 of 280 rows: nothing decides.",
        undecided="naive absurd everything opposite",
        nothing=True,
    ),
    "encoding": claim(
        {
            "Name": ("nominal", how("drop")),
            "Year": ("datetime", how("DatetimeEncoder")),
            "Origin": ("nominal", how("OneHotEncoder")),
        },
        "212 names in 280 rows, 85 % of the test's are new.",
    ),
    "eda": claim(
        {
            "types": {"Year": "date"},
            "relations": {
                **dict.fromkeys(ENGINE, "monotone"),
                "Origin": "values",
                "Name": "values",
                "Year": "monotone",
            },
        },
        "Out of fold: Weight 0.92, Displacement 0.91, Cylinders 0.89, Horsepower 0.87, Origin 0.61, "
        "Acceleration 0.55, Name 0.40, Year 0.27."
        "Cars of the test are smaller: KS 0.21 to 0.40.",
        undecided="everything",
    ),
    "cv": claim(
        {
            "time": {"column": "Year", "test_after_train": True},
            "method": how("TimeSeriesSplit", time_column="Year", n_splits=5),
        },
        "All test rows are from 1979 on, all training rows before.",
    ),
    "scaling": claim({}, "Skewness at most 0.83, no outliers.", undecided="naive", nothing=True),
    "leakage": claim([], "Nothing loses its skill.", undecided="naive", nothing=True),
    "metric": claim(),
    "ensembling": claim(),
    "features": claim(
        {
            "tells": {},
            "pairs": [
                ("Acceleration", "Origin"),
                ("Weight_in_lbs", "Year"),
                ("Displacement", "Year"),
                ("Cylinders", "Year"),
                ("Horsepower", "Year"),
            ],
        },
        "All tell. Given weight, a car of the next year runs 2.2 % farther (least squares). Acceleration and "
        "Origin together"
        "0.73 against 0.61.",
        undecided="naive",
    ),
    "shift": claim(
        {"target": 27.0, "changes": "Year", "drop": [], "recent": 0.3},
        "Least squares of log miles by weight and year expects 27.0 of the test rows' weights and years, "
        "against 20.7 in"
        "training (it expected 21.8 of 1976 to 1978 from the years before; 23.0 came). Trained on the last "
        "three tenths, a ridge regression errs by 4.5 in the test, on all rows by 5.7; without Year by 7.5.",
    ),
}
