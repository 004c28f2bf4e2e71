"""Visits to doctors in the RAND health insurance experiment: 700 people by year; the test has other people."""

from natural.sheet import MARKED, NO_SCRIPT, NUMBERS, claim, how

KEY = {"column": "zper"}
BINARY = ("tookphys", "female", "child", "fchild", "idp", "hlthg", "hlthf", "hlthp")
SHEET = {
    "imbalance": NUMBERS,
    "calibration": NUMBERS,
    "debugging": NO_SCRIPT,
    "missing": claim(
        {"ghindx": ("MAR", ["site", "zper"], MARKED)},
        "ghindx lacks in all 393 rows of site 1 and in 3 to 9 % of the others (0.88 out of fold); zper begins "
        "with the site.",
    ),
    "encoding": claim(
        {
            "plan": ("nominal", how("OneHotEncoder")),
            "site": ("nominal", how("OneHotEncoder")),
            "zper": ("identifier", how("drop")),
            **{name: ("binary", how("none")) for name in BINARY},
        },
        "Numbers of insurance plans and of cities; zper is a person, none of whom is in the test.",
    ),
    "eda": claim(
        {"drifts": False, "relations": {"disea": "monotone", "black": "monotone"}},
        "Out of fold by people: disea 0.28 (rank correlation 0.24), black 0.24 (0.25); xage, fmde 0.19, physlm, "
        "mdeoff 0.16, logc, plan"
        "0.15 are open. 210 of 700 people are the test: distances of at most 0.11 are chance.",
    ),
    "cv": claim(
        {"groups": KEY, "method": how("GroupKFold", groups=KEY, n_splits=5)},
        "490 people with 3 or 5 years in training, none in the test.",
    ),
    "scaling": claim(
        {},
        "Skewed: physlm 2.5, black 1.6, coins 1.15, mhi -1.1, lpi -1.2 and disea 1.03 (open). Outliers: plan, "
        "black, lpi, physlm,"
        "educdec, lfam, disea.",
        undecided="absurd everything",
    ),
    "leakage": claim([], "Outcomes were left out; nothing loses its skill.", undecided="naive", nothing=True),
    "metric": claim(),
    "ensembling": claim(),
    "features": claim(
        {
            "tells": dict.fromkeys(
                ("tookphys", "year", "fchild", "hlthf", "hlthg", "hlthp", "child", "educdec", "xghindx"), "nothing"
            ),
            "drop": ["zper", "xghindx", "lfam", "pioff"],
            "transform": "log1p",
        },
        "Below 1.5 standard errors by people: tookphys, year, fchild, hlthg, hlthp, child, educdec, xghindx. "
        "People of health hlthf have as many visits as others (p = 0.95 of means by person). Visits are counts with"
        "skewness 5.2, and absolute errors are least at the median, which logarithms are near.",
        undecided="naive",
    ),
    "shift": claim({}, "Other people, drawn at random.", undecided="naive", nothing=True),
}
