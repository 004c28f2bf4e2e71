"""`leakage_analysis.json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.vocabulary.document import MAX_ITEMS, Count, Document, Name, Part, Share, Text, once

LeakKind = Literal["copy", "noisy_copy", "target_encoding", "future_value", "id_order", "interaction", "duplicate_rows"]


class Mitigation(Part):
    """What to do about a leak."""

    name: Literal["drop_columns", "drop_duplicates", "none"]
    """drop_columns: drop the risk's columns; drop_duplicates: drop training rows that also occur in the test table;
    none: do nothing."""


class Risk(Part):
    """One leak."""

    kind: LeakKind
    """copy: the target re-encoded; noisy_copy: the target with errors; target_encoding: means of the target by
    category, including the row's own target; future_value: known only after the target; id_order: ids or the row order
    reveal the target; interaction: columns that reveal it only together; duplicate_rows: test rows that equal, or
    nearly equal, training rows."""
    columns: list[Name] = Field(max_length=MAX_ITEMS)
    """The columns that leak; empty for duplicate_rows."""
    strength: Share
    """The evidence: how well the column alone predicts the target (see feature_strengths); for duplicate_rows the share
    of affected test rows."""
    evidence: Text = ""
    """Free text; stored, not scored."""
    mitigation: Mitigation


class FeatureStrength(Part):
    """The strength with which one column alone predicts the target."""

    column: Name
    strength: Share


class LeakageAnalysis(Document):
    """Leaks that would make a score on this data too good to be true."""

    duplicate_rows: Count
    """Number of training rows whose features (without ids) all equal, or nearly equal, those of an earlier training
    row.
    """
    shared_rows: Count
    """Number of test rows whose features (without ids) all equal, or nearly equal, those of a training row."""
    feature_strengths: list[FeatureStrength] = Field(max_length=MAX_ITEMS)
    """The five most predictive numeric columns (ids included), strongest first. Strength: for numeric targets
    |Spearman's correlation|, for classes the largest |2 AUC - 1| of one class against the rest."""
    risks: list[Risk] = Field(max_length=MAX_ITEMS)
    """Leaks, each once; empty if there are none."""

    def _agrees_with_itself(self) -> None:
        once((name for risk in self.risks for name in risk.columns), "columns of risks")
        once((risk.kind for risk in self.risks if not risk.columns), "risks without columns")
        strengths = {item.column: item.strength for item in self.feature_strengths}
        for risk in self.risks:
            if risk.kind == "duplicate_rows" and (risk.columns or not self.shared_rows):
                raise ValueError("a risk of kind `duplicate_rows` requires `shared_rows` above 0")
            if risk.kind != "duplicate_rows" and risk.mitigation.name == "drop_duplicates":
                raise ValueError(f"`drop_duplicates` has no effect on {risk.kind}")
            if risk.mitigation.name == "drop_columns" and not risk.columns and risk.kind != "id_order":
                raise ValueError(f"a risk of kind {risk.kind} has no columns to drop")
            for name in risk.columns:
                if len(risk.columns) == 1 and abs(strengths.get(name, risk.strength) - risk.strength) > 0.05:
                    raise ValueError(f"the strength of {name[:60]!r} differs between `risks` and `feature_strengths`")


def recommend(document: LeakageAnalysis, dataset: Dataset) -> list[str]:
    """Return the recommendation, one line per item."""
    known = {*dataset.ids, *dataset.features}
    return [
        f"{risk.mitigation.name}: {', '.join(f'`{name}`' for name in risk.columns if name in known) or 'rows'} "
        f"({risk.kind})"
        for risk in document.risks
    ] or ["drop nothing"]
