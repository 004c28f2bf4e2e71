"""Vote for Clinton or Dole in 1996, by places on scales of 1 to 7; a random test."""

from natural.sheet import NO_GAPS, NO_SCRIPT, claim, how

SCALES = ("selfLR", "ClinLR", "DoleLR", "PID", "educ")
SHEET = {
    "missing": NO_GAPS,
    "debugging": NO_SCRIPT,
    "imbalance": claim(
        ["none"],
        "376 and 283 rows, ratio 1.33. Log loss 0.224 (linear), 0.222 (forest); weights 0.227, 0.225.",
        nothing=True,
    ),
    "encoding": claim(
        {name: ("ordinal", how("none")) for name in SCALES},
        "Places on scales: the vote rises with each step of PID and selfLR. Numbers are as right.",
    ),
    "eda": claim(
        {"relations": {"PID": "monotone", "selfLR": "monotone", "ClinLR": "monotone", "DoleLR": "nonmonotone"}},
        "Out of fold 0.83, 0.61, 0.50, 0.32; rank correlations 0.77, 0.60, 0.50, 0.11: who places Dole at 6 "
        "votes for him more than those"
        "at both sides. popul 0.07 to 0.18 and income 0.06 to 0.16 by method: open.",
    ),
    "cv": claim(
        {"method": how("StratifiedKFold", n_splits=5, shuffle=True)}, "A random split.", undecided="naive", nothing=True
    ),
    "scaling": claim({"popul": "log1p"}, "popul: skewness 5.4, outliers 17 %; DoleLR -1.4, 10 %.", undecided="naive"),
    "leakage": claim([], "PID tells as much on the test.", undecided="naive", nothing=True),
    "metric": claim(),
    "calibration": claim(),
    "ensembling": claim(),
    "features": claim(
        {
            "tells": {"TVnews": "nothing"},
            "pairs": [("selfLR", "ClinLR"), ("selfLR", "DoleLR"), ("ClinLR", "DoleLR")],
        },
        "Mann-Whitney: popul p = 5e-6, income 3e-5, TVnews 0.99; age 0.06 and educ 0.04 are open. selfLR and "
        "ClinLR together"
        "0.73 against 0.61: who stands nearer.",
        undecided="naive",
    ),
    "shift": claim({}, "A random split: all distances below 0.1.", undecided="naive", nothing=True),
}
