"""Kaggle's spaceship-titanic, split by MLE-bench at random; its files are not part of the repository."""

from natural.sheet import MEDIAN, NO_SCRIPT, claim, how

SPENT = ("RoomService", "FoodCourt", "ShoppingMall", "Spa", "VRDeck")
FREQUENT = how("SimpleImputer", strategy="most_frequent")
TEXTS = ("HomePlanet", "CryoSleep", "Cabin", "Destination", "VIP", "Name")
SHEET = {
    "debugging": NO_SCRIPT,
    "imbalance": claim(
        ["none"],
        "3,946 and 3,877 rows: counts that are exchanged are hardly wrong.",
        undecided="blind absurd",
        nothing=True,
    ),
    "missing": claim(
        {
            **{name: ("MCAR", [], FREQUENT) for name in TEXTS},
            **{name: ("MCAR", [], MEDIAN) for name in ("Age", *SPENT)},
        },
        "Each of twelve columns lacks in 2 to 2.5 % of the rows; no column predicts a gap with more than 0.035 "
        "out of fold.",
        undecided="naive absurd",
        nothing=True,
    ),
    "encoding": claim(
        {
            "HomePlanet": ("nominal", how("OneHotEncoder")),
            "CryoSleep": ("binary", how("OrdinalEncoder")),
            "Cabin": ("nominal", how("TfidfVectorizer", analyzer="char", max_features=50)),
            "Destination": ("nominal", how("OneHotEncoder")),
            "VIP": ("binary", how("OrdinalEncoder")),
            "Name": ("identifier", how("drop")),
        },
        "Names of planets; amounts of money (1,054 to 1,404 values, skewness 6 to 13) are numbers; a cabin is "
        "deck, number and side.",
        refuted="everything",
    ),
    "eda": claim(
        {
            "types": {"CryoSleep": "boolean", "VIP": "boolean"},
            "relations": {
                "CryoSleep": "values",
                "HomePlanet": "values",
                "Cabin": "values",
                "RoomService": "monotone",
                "Spa": "monotone",
                "VRDeck": "monotone",
                "FoodCourt": "nonmonotone",
                "ShoppingMall": "nonmonotone",
            },
        },
        "Out of fold: CryoSleep 0.47, RoomService 0.36 (ranks 0.31), Spa 0.36 (0.33), VRDeck 0.34 (0.30); "
        "HomePlanet 0.19 is open,"
        "and the form of ShoppingMall (0.28, 0.19) and FoodCourt (0.26, 0.16): many who spent nothing, then rising.",
    ),
    "cv": claim(
        {"method": how("StratifiedKFold", n_splits=5, shuffle=True)},
        "A random split of rows: a third of the test's cabins are in training.",
        undecided="naive",
        nothing=True,
    ),
    "scaling": claim(
        dict.fromkeys(SPENT, "log1p"),
        "Skewness 6 to 13, outliers 20 to 21 %; Age 0.42, 1 %.",
        undecided="absurd everything",
    ),
    "leakage": claim([], "Nothing loses its skill.", undecided="naive", nothing=True),
    "metric": claim(),
    "calibration": claim(),
    "ensembling": claim(),
    "features": claim(
        {
            "tells": {"Name": "nothing"},
            "drop": ["Name"],
            "pairs": [
                ("RoomService", "Spa"),
                ("RoomService", "VRDeck"),
                ("HomePlanet", "FoodCourt"),
                ("FoodCourt", "ShoppingMall"),
                ("Spa", "VRDeck"),
                ("HomePlanet", "VRDeck"),
            ],
        },
        "Two amounts together 0.45 to 0.50 against 0.36 (n = 7,823).",
        undecided="naive",
    ),
    "shift": claim({}, "A random split.", undecided="naive", nothing=True),
}
