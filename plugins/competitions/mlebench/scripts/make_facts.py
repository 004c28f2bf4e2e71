# /// script
# requires-python = ">=3.11"
# dependencies = ["pyyaml"]
# ///
"""Write the package's data files from a folder of fact sheets: `python scripts/make_facts.py FACTS`.

`facts.json` has one line per competition (title, category, sets, thresholds, checksums, classes …), and
`boards/ID.csv.gz` its final leaderboard, scores only. Rerun it when the sheets change.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import yaml

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "mleredux_competition_mlebench"
OWN_SET = "mlebench"

NUMPY_ROUNDED = frozenset(
    {
        "3d-object-detection-for-autonomous-vehicles",
        "alaska2-image-steganalysis",
        "billion-word-imputation",
        "bms-molecular-translation",
        "champs-scalar-coupling",
        "google-quest-challenge",
        "google-research-identify-contrails-reduce-global-warming",
        "h-and-m-personalized-fashion-recommendations",
        "hms-harmful-brain-activity-classification",
        "hotel-id-2021-fgvc8",
        "hubmap-kidney-segmentation",
        "icecube-neutrinos-in-deep-ice",
        "osic-pulmonary-fibrosis-progression",
        "plant-pathology-2020-fgvc7",
        "ranzcr-clip-catheter-line-classification",
        "rsna-2022-cervical-spine-fracture-detection",
        "rsna-breast-cancer-detection",
        "siim-covid19-detection",
        "smartphone-decimeter-2022",
        "stanford-covid-vaccine",
        "tgs-salt-identification-challenge",
        "tweet-sentiment-extraction",
        "us-patent-phrase-to-phrase-matching",
        "uw-madison-gi-tract-image-segmentation",
        "vesuvius-challenge-ink-detection",
        "vinbigdata-chest-xray-abnormalities-detection",
        "whale-categorization-playground",
    }
)
"""Competitions whose published graders return a NumPy float (a mean over rows, columns or classes), so that NumPy
rounds their scores; scikit-learn's own metrics and sums of counts are Python floats, which Python rounds."""

PARTICIPANTS_ONLY = frozenset(
    {
        "aerial-cactus-identification",
        "aptos2019-blindness-detection",
        "chaii-hindi-and-tamil-question-answering",
        "google-quest-challenge",
        "kuzushiji-recognition",
        "learning-agency-lab-automated-essay-scoring-2",
        "petfinder-pawpularity-score",
        "ranzcr-clip-catheter-line-classification",
        "spaceship-titanic",
        "tabular-playground-series-dec-2021",
        "tabular-playground-series-may-2022",
        "tweet-sentiment-extraction",
        "us-patent-phrase-to-phrase-matching",
    }
)
"""Competitions whose rules were found to contain Kaggle's sentence "You agree not to transmit, duplicate, publish,
redistribute or otherwise provide or make available the Competition Data to any party not participating": by a public
reading of 25 rules pages of 2026-09-01 ("Kaggle rules triage for Decision Corpus v11"), which did not find it on the
other 12. The remaining rules have not been read, and anything unknown counts as not permitted."""
RULES = "https://www.kaggle.com/competitions/{}/rules"


def read_csv(path: Path) -> dict[str, dict[str, str]]:
    """Read a table of the facts by competition id."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["competition_id"]: row for row in csv.DictReader(file)}


def sets(sheet: dict[str, Any]) -> list[str]:
    """Return named sets: the official lists, `lite` as an alias of `low`, and one for all."""
    named = [str(name) for name in sheet["splits"]]
    return sorted({*named, OWN_SET, *(["lite"] if "low" in named else [])})


def facts(sheet: dict[str, Any], threshold: dict[str, str], category: dict[str, str] | None) -> dict[str, Any]:
    """Return the facts that the package keeps from one sheet."""
    size = (category or {}).get("dataset_size_GB") or sheet.get("size_gb")
    complexity = (category or {}).get("Complexity", "").strip().lower()
    checksums = {side: dict(sheet["checksums"].get(side) or {}) for side in ("public", "private")}
    classes = sheet.get("classes") or sheet["grading"].get("classes")
    found = {
        "title": sheet["name"],
        "category": ((category or {}).get("category") or sheet["category"]).strip(),
        "complexity": complexity or None,
        "size_gb": float(size) if size else None,
        "sets": sets(sheet),
        "direction": sheet["direction"],
        "rounding": "numpy" if sheet["id"] in NUMPY_ROUNDED else None,
        "medals": bool(sheet["awards_medals"]),
        "thresholds": {name: float(threshold[name]) for name in ("gold", "silver", "bronze", "median")},
        "teams": int(threshold["num_teams"]),
        "archive_md5": sheet["checksums"].get("zip"),
        "checksums": {side: files for side, files in checksums.items() if files},
        "classes": classes,
        "license_source": (
            "Its rules give the data to participants only"
            if sheet["id"] in PARTICIPANTS_ONLY
            else "Whether its rules allow redistribution of the data is not known"
        )
        + f" ({RULES.format(sheet['id'])})",
    }
    return {key: value for key, value in found.items() if value not in (None, {}, [])}


def write_board(source: Path, target: Path) -> None:
    """Write a leaderboard without ranks or names, compressed so that equal scores give equal bytes."""
    with source.open(encoding="utf-8", newline="") as file:
        scores = [row["score"] for row in csv.DictReader(file)]
    text = "\n".join(["score", *scores]) + "\n"
    target.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def main(folder: Path) -> None:
    """Write all data files."""
    thresholds, categories = (
        read_csv(folder / "thresholds.csv"),
        read_csv(folder / "competition_categories.csv"),
    )
    lines = []
    for path in sorted((folder / "competitions").glob("*.yaml"), key=lambda path: path.name.lower()):
        sheet = yaml.safe_load(path.read_text(encoding="utf-8"))
        name = sheet["id"]
        entry = facts(sheet, thresholds[name], categories.get(name))
        lines.append(f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}")
        write_board(folder / "leaderboards" / f"{name}.csv", PACKAGE / "boards" / f"{name}.csv.gz")
    (PACKAGE / "facts.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
