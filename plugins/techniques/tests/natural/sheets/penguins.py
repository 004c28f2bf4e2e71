"""Penguins of Palmer station, raw field notes; a host who kept the order of the rows, which are sorted by species."""

from natural.sheet import MARKED, MEDIAN, NO_SCRIPT, claim, how

CULMEN = ("Culmen Length (mm)", "Culmen Depth (mm)", "Flipper Length (mm)", "Body Mass (g)")
NITROGEN, CARBON = "Delta 15 N (o/oo)", "Delta 13 C (o/oo)"
SHEET = {
    "debugging": NO_SCRIPT,
    "imbalance": claim(["none"], "108, 81 and 40 rows; accuracy is 0.98 or more whatever is done."),
    "missing": claim(
        {
            **{name: ("MCAR", [], MEDIAN) for name in CULMEN},
            "Sex": ("MAR", ["Comments"], how("SimpleImputer", strategy="most_frequent")),
            NITROGEN: ("MAR", ["Comments", CARBON], MARKED),
            CARBON: ("MAR", ["Comments", NITROGEN], MARKED),
            "Comments": ("MAR", ["Clutch Completion"], how("SimpleImputer", strategy="constant", fill_value="missing")),
        },
        "Gaps of the isotopes: out-of-fold correlation 0.95 with one another, 0.81 and 0.84 with Comments ('Not enough "
        "blood for isotopes'). Sex with Comments 0.78 ('Sexing primers did not amplify'). Comments with Clutch "
        "Completion 0.76 ('Nest never observed with full clutch'). Two birds were not measured at all: nothing "
        "decides.",
    ),
    "encoding": claim(
        {
            "studyName": ("nominal", how("OneHotEncoder")),
            "Region": ("constant", how("drop")),
            "Stage": ("constant", how("drop")),
            "Island": ("nominal", how("OneHotEncoder")),
            "Individual ID": ("identifier", how("drop")),
            "Clutch Completion": ("binary", how("OrdinalEncoder")),
            "Date Egg": ("datetime", how("DatetimeEncoder")),
            "Sex": ("binary", how("OrdinalEncoder")),
            "Comments": ("text", how("drop")),
        },
        "Individual ID numbers nest and bird (N1A1), 146 values of 229 rows, again in each season and colony. "
        "Comments:"
        "9 sentences that repeat; names of them would be as right.",
    ),
    "eda": claim(
        {
            "types": {"Date Egg": "date", "Comments": "category"},
            "relations": {
                **dict.fromkeys((*CULMEN, NITROGEN, CARBON, "Sample Number"), "monotone"),
                "Island": "values",
                "Date Egg": "values",
                "Comments": "values",
            },
        },
        "|2 AUC - 1| of 0.97 to 0.99 for the four measurements, 0.87 and 0.96 for isotopes, 0.51 for Sample Number; "
        "Island 0.77, Date Egg 0.83, Comments 0.19 out of fold.",
    ),
    "cv": claim(
        {"method": how("StratifiedKFold", n_splits=5, shuffle=True)},
        "A random split; nests occur in both tables.",
        undecided="naive",
        nothing=True,
    ),
    "scaling": claim({}, "Skewness at most 0.55, no outliers.", undecided="naive", nothing=True),
    "leakage": claim(
        [("id_order", ["id"], "drop_columns")],
        "Rows are sorted by species: the id ranks one species against the rest with |2 AUC - 1| = 1.",
    ),
    "metric": claim(),
    "calibration": claim(),
    "ensembling": claim(),
    "features": claim(
        {
            "tells": {"Region": "nothing", "Stage": "nothing", "studyName": "together", "Sex": "nothing"},
            "drop": ["Region", "Stage", "Individual ID", "Comments"],
            "pairs": [
                ("Sample Number", "studyName"),
                ("Culmen Depth (mm)", "Body Mass (g)"),
                ("Culmen Length (mm)", "Culmen Depth (mm)"),
                ("Culmen Length (mm)", "Flipper Length (mm)"),
            ],
        },
        "Region and Stage are constant; Sex 0.01 out of fold; studyName -0.03, and 0.62 with Sample Number "
        "against 0.29: numbers start again each season. Individual ID 0.19 (z = 2.8), Comments"
        "0.19, Clutch Completion 0.08 (z = 1.2): open. Depth and mass together 0.98 against 0.89.",
        undecided="naive",
    ),
    "shift": claim({}, "A random split; only values of names that are new differ.", undecided="naive", nothing=True),
}
