"""The starter diabetes (Efron et al. 2004, CC BY 4.0 as of UCI): progression after a year, a random test."""

from natural.sheet import NO_GAPS, NO_SCRIPT, NUMBERS, claim, how

BLOOD = ("bmi", "bp", "hdl", "cholesterol_ratio", "log_triglycerides", "glucose")
SHEET = {
    "debugging": NO_SCRIPT,
    "missing": NO_GAPS,
    "encoding": claim({"sex": ("binary", how("none"))}, "sex has two values; all others are measurements."),
    "imbalance": NUMBERS,
    "calibration": NUMBERS,
    "eda": claim(
        {"relations": dict.fromkeys((*BLOOD, "total_cholesterol"), "monotone")},
        "Out of fold: log_triglycerides 0.58, bmi 0.52, ratio 0.41, bp 0.38, glucose 0.35, hdl 0.29; "
        "total_cholesterol 0.19 and ldl 0.15 are"
        "open; age 0.05 by ranges, 0.21 by ranks: open.",
        undecided="everything",
    ),
    "cv": claim({"method": how("KFold", n_splits=5, shuffle=True)}, "A random split.", undecided="naive", nothing=True),
    "scaling": claim({}, "Skewness at most 0.76, outliers at most 2.6 %.", undecided="naive", nothing=True),
    "leakage": claim([], "Nothing loses its skill.", undecided="naive", nothing=True),
    "metric": claim(),
    "ensembling": claim(),
    "features": claim(
        {"tells": {"sex": "nothing"}},
        "sex: Spearman 0.03; beside hdl it tells something in least squares, which 309 rows hardly show. "
        "Spearman of age p = 2e-4."
        "Skewness 0.41 and squared errors: no transform.",
        undecided="naive everything opposite",
    ),
    "shift": claim({}, "A random split.", undecided="naive", nothing=True),
}
