"""Titles of the techniques, without anything heavy."""

from __future__ import annotations

TITLES = {
    "imbalance": "Class imbalance: how strong, and what to do",
    "missing": "Missing values: where, why, and what to put there",
    "encoding": "Encoding: types of features, and how they become numbers",
    "cv": "Cross-validation: an estimate that the private test confirms",
    "scaling": "Scaling: which features need it, and how",
    "leakage": "Leakage: what makes a score too good to be true",
}
