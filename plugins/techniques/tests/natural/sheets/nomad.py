"""Kaggle's nomad2018, split by MLE-bench at random; its files are not part of the repository."""

from natural.sheet import NO_GAPS, NO_SCRIPT, NUMBERS, claim, how

SHEET = {
    "debugging": NO_SCRIPT,
    "imbalance": NUMBERS,
    "calibration": NUMBERS,
    "missing": NO_GAPS,
    "encoding": claim(
        {"spacegroup": ("nominal", how("OneHotEncoder"))},
        "Six numbers of space groups are names: 0.59 by value, ranks 0.36. The number of atoms (10 to 80) is a number.",
        undecided="opposite",
    ),
    "eda": claim(
        {
            "relations": {
                **dict.fromkeys(("spacegroup", "percent_atom_ga", "percent_atom_in"), "monotone"),
                **dict.fromkeys(("lattice_vector_3_ang", "lattice_angle_alpha_degree"), "monotone"),
                **dict.fromkeys(("number_of_total_atoms", "percent_atom_al", "lattice_vector_1_ang"), "nonmonotone"),
                **dict.fromkeys(
                    ("lattice_vector_2_ang", "lattice_angle_beta_degree", "lattice_angle_gamma_degree"), "nonmonotone"
                ),
            },
        },
        "Out of fold and ranks: number_of_total_atoms 0.37, 0.01; al 0.25, 0.12; ga 0.40, 0.38; vectors 0.55, "
        "0.10, 0.49, 0.01, 0.69,"
        "0.50; angles 0.54, 0.42, 0.41, 0.17, 0.47, 0.07; spacegroup 0.59, 0.36 and in 0.55, 0.34 are near the bound.",
    ),
    "cv": claim({"method": how("KFold", n_splits=5, shuffle=True)}, "A random split.", undecided="naive", nothing=True),
    "scaling": claim(
        {},
        "Skewed: vector 1, alpha, beta, gamma (vector 3 is open); outliers: vectors 1 and 3 and all angles.",
        undecided="absurd everything",
    ),
    "leakage": claim(
        [("duplicate_rows", [], "drop_duplicates")],
        "147 of 240 test rows have the composition and the lattice of a training row, to all digits.",
    ),
    "metric": claim(undecided="naive"),
    "ensembling": claim(),
    "features": claim(
        {
            "tells": {},
            "pairs": [
                ("spacegroup", "percent_atom_in"),
                ("percent_atom_al", "percent_atom_ga"),
                ("percent_atom_in", "lattice_vector_1_ang"),
                ("percent_atom_in", "lattice_angle_alpha_degree"),
            ],
            "transform": "log1p",
        },
        "All tell at 0.25 or more. Space group and share of indium together 0.81 against 0.59.",
        undecided="naive everything",
    ),
    "shift": claim({}, "A random split: all distances below 0.1.", undecided="naive", nothing=True),
}
