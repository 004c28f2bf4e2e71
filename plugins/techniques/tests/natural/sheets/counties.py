"""Counties of the American Midwest: in a metropolitan area or not? A random test."""

from natural.sheet import NO_GAPS, NO_SCRIPT, claim, how

PEOPLE = ("poptotal", "popwhite", "popblack", "popamerindian", "popasian", "popother", "popadults", "poppovertyknown")
SHARES = ("percwhite", "percblack", "percasian", "perchsd", "percollege", "percprof", "percbelowpoverty")
POOR = ("percadultpoverty", "percelderlypoverty", "percother", "percchildbelowpovert")
SHEET = {
    "missing": NO_GAPS,
    "debugging": NO_SCRIPT,
    "imbalance": claim(
        ["none"],
        "194 and 104 rows, ratio 1.87. F1 of linear model, forest, neighbors 0.747, 0.784, 0.665; with "
        "thresholds 0.743, 0.782, 0.714:"
        "nothing gained beyond noise (paired t at most 1.4).",
    ),
    "encoding": claim(
        {
            "PID": ("identifier", how("drop")),
            "county": ("nominal", how("drop")),
            "state": ("nominal", how("OneHotEncoder")),
        },
        "PID numbers the counties, all different; 244 names in 298 rows, 61 % of the test's are new.",
    ),
    "eda": claim(
        {"relations": dict.fromkeys((*PEOPLE, "popdensity", *SHARES, *POOR), "monotone")},
        "Out of fold 0.26 to 0.72, with rank correlations as large; percother 0.16 and percchildbelowpovert "
        "0.18 are open.",
        undecided="everything",
    ),
    "cv": claim(
        {"method": how("StratifiedKFold", n_splits=5, shuffle=True)}, "A random split.", undecided="naive", nothing=True
    ),
    "scaling": claim(
        dict.fromkeys((*PEOPLE, "popdensity"), "log1p"),
        "Numbers of people have skewness 7.7 to 17 and 9 to 19 % outliers.",
        undecided="absurd everything",
    ),
    "leakage": claim([], "Nothing loses its skill.", undecided="naive", nothing=True),
    "metric": claim(),
    "calibration": claim(),
    "ensembling": claim(),
    "features": claim(
        {
            "tells": {
                "PID": "nothing",
                "area": "nothing",
                "percamerindan": "nothing",
                "percpovertyknown": "nothing",
                "county": "nothing",
            },
            "drop": ["PID", "county", "area", "percamerindan", "percpovertyknown", "popadults", "poppovertyknown"],
        },
        "PID 0.04, area 0.04, percamerindan 0.03, percpovertyknown -0.05 out of fold; state p = 0.05 is open. "
        "Counts of people are"
        "copies of one another.",
        undecided="naive",
    ),
    "shift": claim({}, "A random split.", undecided="naive", nothing=True),
}
