"""Leaders of 200 countries since 1946: democracy or not? The test has other countries."""

from natural.sheet import MEDIAN, NO_SCRIPT, claim, how

KEY = {"column": "ctryname"}
SHEET = {
    "debugging": NO_SCRIPT,
    "imbalance": claim(
        ["none"],
        "794 and 434 rows, ratio 1.83. Accuracy of linear model, forest, neighbors on other countries: 0.755, "
        "0.759, 0.723 as it"
        "is, 0.709 to 0.761 with weights, thresholds or fewer rows.",
    ),
    "missing": claim(
        {"politycode": ("MCAR", [], MEDIAN)},
        "7 leaders of two countries that Polity does not list, Montenegro and Tuvalu: two units decide nothing.",
        undecided="everything opposite naive absurd",
        nothing=True,
    ),
    "encoding": claim(
        {
            "ctryname": ("nominal", how("drop")),
            "cowcode2": ("nominal", how("drop")),
            "politycode": ("nominal", how("drop")),
            "un_region_name": ("nominal", how("OneHotEncoder")),
            "un_continent_name": ("nominal", how("OneHotEncoder")),
            "ehead": ("identifier", how("drop")),
            "observed": ("binary", how("none")),
        },
        "Codes of countries, which are names; 1,085 different leaders in 1,228 rows. No country of the test is "
        "in training."
        "Numeric codes group by continent (0.24 by ranges): a number would be as right for data.",
    ),
    "eda": claim(
        {
            "drifts": False,
            "relations": {
                "un_region_name": "values",
                "un_continent_name": "values",
                "duration": "monotone",
                "start_year": "monotone",
                "cowcode2": "nonmonotone",
                "politycode": "nonmonotone",
                "observed": "values",
            },
        },
        "Out of fold by country: continent 0.39, duration 0.38, region 0.35, cowcode2 0.24 (rank correlation "
        "0.09), start_year"
        "0.22; ctryname -0.05. 60 of 200 countries are the test: continents that differ by chance are no drift.",
        undecided="everything",
    ),
    "cv": claim(
        {"groups": KEY, "method": how("StratifiedGroupKFold", groups=KEY, n_splits=5)},
        "140 countries in training, none of them in the test; cowcode2 names the same countries.",
    ),
    "scaling": claim(
        {"duration": "log1p"}, "duration: skewness 3.0, outliers 7.8 %; codes and years neither.", undecided="naive"
    ),
    "leakage": claim([], "No column loses its skill beyond other countries.", undecided="naive", nothing=True),
    "metric": claim(),
    "calibration": claim(),
    "ensembling": claim(),
    "features": claim(
        {
            "tells": {"ctryname": "nothing"},
            "drop": ["ctryname", "cowcode2", "politycode", "ehead"],
            "pairs": [("un_continent_name", "duration"), ("start_year", "observed"), ("un_region_name", "duration")],
        },
        "On other countries: continent 0.39, duration 0.38, region 0.35, cowcode2 0.24, start_year 0.22, "
        "observed 0.18."
        "continent and duration together 0.53.",
        undecided="naive everything",
    ),
    "shift": claim({}, "Other countries, drawn at random.", undecided="naive", nothing=True),
}
