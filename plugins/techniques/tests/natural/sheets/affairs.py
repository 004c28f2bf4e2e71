"""Extramarital affairs, a survey of 1974 with eight coarse questions; a random test."""

from natural.sheet import NO_GAPS, NO_SCRIPT, claim, how

SHEET = {
    "missing": NO_GAPS,
    "debugging": NO_SCRIPT,
    "imbalance": claim(
        ["none"],
        "1,418 and 663 rows, ratio 2.14. AUC of linear model, forest, neighbors 0.744, 0.720, 0.707 as it is, "
        "within 0.004 with weights"
        "or fewer rows.",
    ),
    "encoding": claim(
        {
            "rate_marriage": ("ordinal", how("none")),
            "religious": ("ordinal", how("none")),
            "occupation": ("nominal", how("OneHotEncoder")),
            "occupation_husb": ("nominal", how("OneHotEncoder")),
        },
        "Codes of occupations are names: 0.085 and 0.066 by value (z = 3.9, 3.0), ranks 0.005 and 0.006. "
        "Answers on scales of 1 to 5 and 1 to 4; numbers are as right.",
        undecided="opposite",
    ),
    "eda": claim(
        {
            "relations": {
                "rate_marriage": "monotone",
                "yrs_married": "monotone",
                "children": "monotone",
                "age": "monotone",
            }
        },
        "Out of fold 0.34, 0.24, 0.19, 0.16 (the last two are open), others at most 0.12. age and yrs_married "
        "correlate by 0.855: open.",
    ),
    "cv": claim(
        {"method": how("StratifiedKFold", n_splits=5, shuffle=True)},
        "A random split. 232 equal rows are different women: the questions are coarse.",
        undecided="naive",
    ),
    "scaling": claim({}, "rate_marriage alone has outliers (7 %); its skewness of -1.02 is open.", undecided="naive"),
    "leakage": claim(
        [],
        "166 of 919 test rows share all eight answers with a training row, by coincidence: of 321 pairs of such "
        "rows in training"
        "237 agree in the target, 227 are expected of a model of the answers alone (z = 1.3). They tell nothing "
        "more than neighbors.",
        undecided="naive",
    ),
    "metric": claim(),
    "calibration": claim(),
    "ensembling": claim(),
    "features": claim(
        {"tells": {}, "pairs": [("rate_marriage", "yrs_married"), ("age", "religious"), ("children", "religious")]},
        "rate_marriage 0.34, yrs_married 0.24, children 0.19, age 0.16, religious 0.12 (z = 5.3); occupation, "
        "educ, occupation_husb"
        "between 3.0 and 3.9 standard errors: open.",
        undecided="naive",
    ),
    "shift": claim({}, "A random split: all distances below 0.04.", undecided="naive", nothing=True),
}
