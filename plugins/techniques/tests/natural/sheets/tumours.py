"""Estrogen receptors of breast tumours, by age, treatment, size, grade and progesterone receptors; a random test."""

from natural.sheet import NO_GAPS, NO_SCRIPT, NUMBERS, claim, how, ordered

SHEET = {
    "imbalance": NUMBERS,
    "calibration": NUMBERS,
    "missing": NO_GAPS,
    "debugging": NO_SCRIPT,
    "encoding": claim(
        {
            "horTh": ("binary", how("OrdinalEncoder")),
            "menostat": ("binary", how("OrdinalEncoder")),
            "tgrade": ordered("I", "II", "III"),
        },
        "Grades: medians of 68, 43.5 and 8 fall with each step.",
    ),
    "eda": claim(
        {"relations": {"progrec": "monotone", "tgrade": "values", "menostat": "values", "age": "monotone"}},
        "Out of fold 0.57, 0.30, 0.24, 0.20 (ranks 0.27); horTh 0.12 is open; tsize and pnodes nothing.",
    ),
    "cv": claim({"method": how("KFold", n_splits=5, shuffle=True)}, "A random split.", undecided="naive", nothing=True),
    "scaling": claim(
        {"tsize": "log1p", "pnodes": "log1p", "progrec": "log1p"},
        "Skewness 1.7, 2.5, 5.0; outliers 5.9, 6.3, 10.5 %; age neither.",
        undecided="absurd everything",
    ),
    "leakage": claim([], "Nothing loses its skill.", undecided="naive", nothing=True),
    "metric": claim(),
    "ensembling": claim(),
    "features": claim(
        {
            "tells": {"tsize": "nothing", "pnodes": "nothing"},
            "transform": "log1p",
        },
        "Spearman: progrec p = 5e-46, age 1e-9; tsize 0.49, pnodes 0.07. horTh p = 0.007 is open. Skewness 2.9 "
        "and a metric in"
        "logarithms.",
        undecided="naive",
    ),
    "shift": claim({}, "A random split: all distances below 0.09.", undecided="naive", nothing=True),
}
