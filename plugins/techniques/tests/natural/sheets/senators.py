"""How terms of Canadian senators ended, since 1867: death, resignation or retirement; a random test."""

from natural.sheet import NO_GAPS, NO_SCRIPT, claim, how

PARTY, PROVINCE, ADVICE = "Political Affiliation at Appointment", "Province / Territory", "Appointed on the advice of"
SHEET = {
    "missing": NO_GAPS,
    "debugging": NO_SCRIPT,
    "imbalance": claim(["none"], "341 deaths to 99 retirements, ratio 3.4, and accuracy counts."),
    "encoding": claim(
        {
            "Name": ("identifier", how("drop")),
            PARTY: ("nominal", how("OneHotEncoder")),
            PROVINCE: ("nominal", how("OneHotEncoder")),
            ADVICE: ("nominal", how("OneHotEncoder")),
            "start_date": ("datetime", how("DatetimeEncoder")),
            "end_date": ("datetime", how("DatetimeEncoder")),
        },
        "578 names in 581 rows; 15, 15 and 22 parties, provinces and prime ministers; days.",
        refuted="naive",
    ),
    "eda": claim(
        {
            "types": {"start_date": "date", "end_date": "date"},
            "relations": {"start_date": "values", "end_date": "values", PARTY: "values", ADVICE: "values"},
        },
        "Out of fold: prime minister 0.67, start 0.64, end 0.61, party 0.32. Senators retire at 75 since 1965 only.",
    ),
    "cv": claim(
        {"method": how("StratifiedKFold", n_splits=5, shuffle=True)}, "A random split.", undecided="naive", nothing=True
    ),
    "scaling": claim({}, "diff_days: skewness 0.67, 1 % outliers.", undecided="naive", nothing=True),
    "leakage": claim([], "Nothing loses its skill.", undecided="naive", nothing=True),
    "metric": claim(),
    "calibration": claim(),
    "ensembling": claim(),
    "features": claim(
        {
            "tells": {"Name": "nothing", PROVINCE: "nothing"},
            "drop": ["Name", PROVINCE],
        },
        "Province 0.01 out of fold, names differ. diff_days 0.10 (z = 2.3) is open.",
        undecided="naive everything",
    ),
    "shift": claim({}, "A random split.", undecided="naive", nothing=True),
}
