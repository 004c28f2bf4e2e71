"""Where the graders don't judge a sheet as it deserves, each with the reason; a fix removes its entry."""

from __future__ import annotations

EXECUTED = frozenset({"imbalance@weather", "encoding@senators", "leakage@cars"})
"""Questions whose sheet's advice is executed too, which takes seconds; of others, the facts are graded."""

KNOWN: dict[str, str] = {
    "metric@weather": "not examined yet: the naive document gets more (sheet 0.75; naive 1.00)",
    "scaling@weather": "wrong shapes of many columns still get more than 0.4 (everything 0.58)",
    "scaling@regimes": "wrong shapes of many columns still get more than 0.4 (everything 0.58)",
    "scaling@modes": "wrong shapes of many columns still get more than 0.4 (everything 0.47)",
    "scaling@election": "wrong shapes of many columns still get more than 0.4 (everything 0.57)",
    "metric@diamonds": ("steps within noise or a score of one of two targets (sheet 0.82; opposite 0.49)"),
    "features@diamonds": (
        "pairs (carat and clarity, weight and year) or weak but sure features (p below 1e-4) are denied "
        "(sheet 1.00; everything 0.49)"
    ),
    "missing@penguins": ("mechanisms that other columns explain are random (sheet 0.34)"),
    "eda@penguins": ("types and counts alone, or a claim of everything, get more than 0.4 (sheet 0.97; naive 0.42)"),
    "metric@penguins": ("steps within noise or a score of one of two targets (sheet 1.00; blind 0.41)"),
    "missing@housing": ("mechanisms that other columns explain are random (sheet 0.22; everything 0.22)"),
    "eda@housing": (
        "types and counts alone, or a claim of everything, get more than 0.4 (sheet 1.00; everything 0.61)"
    ),
    "cv@housing": ("a wrong key of groups costs little where rows repeat (sheet 1.00; everything 0.57)"),
    "ensembling@housing": (
        "models that suffer from the change along time are called too good (sheet 0.44; everything 0.57)"
    ),
    "features@housing": (
        "pairs (carat and clarity, weight and year) or weak but sure features (p below 1e-4) are denied "
        "(sheet 1.00; absurd 0.41, everything 0.46)"
    ),
    "imbalance@weather": (
        "thresholds gain 0.08 to 0.17 of balanced accuracy, which is called undecided (sheet 0.50; naive 0.50)"
    ),
    "eda@weather": (
        "types and counts alone, or a claim of everything, get more than 0.4 (sheet 0.93; everything 0.47)"
    ),
    "metric@regimes": ("steps within noise or a score of one of two targets (sheet 1.00; blind 0.41)"),
    "encoding@modes": (
        "minutes of waiting (0 to 99) are called names (sheet 0.00; blind 0.00, absurd 0.00, everything 0.16)"
    ),
    "eda@modes": ("types and counts alone, or a claim of everything, get more than 0.4 (sheet 0.88; naive 0.42)"),
    "features@modes": (
        "pairs (carat and clarity, weight and year) or weak but sure features (p below 1e-4) are denied "
        "(sheet 0.44; naive 0.48)"
    ),
    "encoding@health": ("an ordered or plain number is called names, or wrong types keep credit (sheet 0.42)"),
    "metric@health": ("steps within noise or a score of one of two targets (sheet 0.96; opposite 0.55)"),
    "features@health": (
        "pairs (carat and clarity, weight and year) or weak but sure features (p below 1e-4) are denied "
        "(sheet 0.80; naive 0.85)"
    ),
    "encoding@affairs": ("wrong numbers of values keep all credit (sheet 1.00; blind 1.00)"),
    "eda@affairs": ("types and counts alone, or a claim of everything, get more than 0.4 (sheet 1.00; naive 0.42)"),
    "cv@affairs": ("a wrong key of groups costs little where rows repeat (sheet 1.00; absurd 0.52, opposite 0.52)"),
    "leakage@affairs": (
        "equal answers to coarse questions are called leaked rows "
        "(sheet 0.45; absurd 0.45, everything 0.57, opposite 0.45)"
    ),
    "eda@election": ("types and counts alone, or a claim of everything, get more than 0.4 (sheet 0.68)"),
    "cv@election": ("a wrong key of groups costs little where rows repeat (sheet 1.00; absurd 0.46, opposite 0.46)"),
    "features@election": (
        "pairs (carat and clarity, weight and year) or weak but sure features (p below 1e-4) are denied "
        "(sheet 0.69; naive 0.71)"
    ),
    "eda@tumours": ("types and counts alone, or a claim of everything, get more than 0.4 (sheet 1.00; naive 0.42)"),
    "metric@tumours": ("steps within noise or a score of one of two targets (sheet 1.00; opposite 0.45)"),
    "features@tumours": (
        "pairs (carat and clarity, weight and year) or weak but sure features (p below 1e-4) are denied "
        "(sheet 0.81; opposite 0.44)"
    ),
    "encoding@counties": (
        "an ordered or plain number is called names, or wrong types keep credit (sheet 1.00; absurd 0.90)"
    ),
    "metric@counties": ("steps within noise or a score of one of two targets (sheet 1.00; blind 0.41)"),
    "ensembling@cars": (
        "models that suffer from the change along time are called too good (sheet 0.44; everything 0.70, opposite 0.46)"
    ),
    "features@cars": (
        "pairs (carat and clarity, weight and year) or weak but sure features (p below 1e-4) are denied "
        "(sheet 1.00; opposite 0.44)"
    ),
    "shift@cars": ("features that tell the target most are said to do harm (sheet 0.53)"),
    "eda@senators": ("types and counts alone, or a claim of everything, get more than 0.4 (sheet 0.94; naive 0.42)"),
    "metric@senators": ("steps within noise or a score of one of two targets (sheet 1.00; blind 0.41, opposite 0.45)"),
    "features@senators": (
        "pairs (carat and clarity, weight and year) or weak but sure features (p below 1e-4) are denied (sheet 0.68)"
    ),
    "eda@wine": ("types and counts alone, or a claim of everything, get more than 0.4 (sheet 0.95; naive 0.42)"),
    "metric@wine": ("steps within noise or a score of one of two targets (sheet 0.71; everything 0.80, opposite 0.50)"),
    "features@wine": (
        "pairs (carat and clarity, weight and year) or weak but sure features (p below 1e-4) are denied (sheet 0.71)"
    ),
    "eda@diabetes": ("types and counts alone, or a claim of everything, get more than 0.4 (sheet 0.96; naive 0.42)"),
    "encoding@spaceship": (
        "an ordered or plain number is called names, or wrong types keep credit (sheet 0.85; absurd 0.42)"
    ),
    "eda@spaceship": (
        "types and counts alone, or a claim of everything, get more than 0.4 (sheet 1.00; naive 0.42, everything 0.40)"
    ),
    "encoding@pizza": (
        "an ordered or plain number is called names, or wrong types keep credit (sheet 1.00; absurd 0.56)"
    ),
    "leakage@pizza": ("claims on honest columns cost little in facts (sheet 1.00; absurd 0.69)"),
    "encoding@nomad": ("wrong numbers of values keep all credit (sheet 1.00; blind 1.00)"),
    "eda@nomad": ("types and counts alone, or a claim of everything, get more than 0.4 (sheet 0.95; naive 0.42)"),
    "cv@nomad": ("a wrong key of groups costs little where rows repeat (sheet 1.00; absurd 0.46, opposite 0.46)"),
    "leakage@nomad": (
        "counts of equal rows alone get 0.45 (sheet 1.00; naive 0.45, absurd 0.45, everything 0.45, opposite 0.45)"
    ),
}

OPEN = ()
"""Questions that were not graded since the truth was rewritten; `benchmarks/natural_tables.py --known` judges them."""
