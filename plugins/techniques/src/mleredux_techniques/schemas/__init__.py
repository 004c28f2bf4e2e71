"""The six documents that agents hand in, each a pydantic model with a closed vocabulary of strategies."""

from __future__ import annotations

from mleredux_techniques.schemas.base import Document
from mleredux_techniques.schemas.cv import CvAnalysis
from mleredux_techniques.schemas.encoding import EncodingAnalysis
from mleredux_techniques.schemas.imbalance import ImbalanceAnalysis
from mleredux_techniques.schemas.leakage import LeakageAnalysis
from mleredux_techniques.schemas.missing import MissingAnalysis
from mleredux_techniques.schemas.scaling import ScalingAnalysis

DOCUMENTS: dict[str, type[Document]] = {
    "imbalance": ImbalanceAnalysis,
    "missing": MissingAnalysis,
    "encoding": EncodingAnalysis,
    "cv": CvAnalysis,
    "scaling": ScalingAnalysis,
    "leakage": LeakageAnalysis,
}
"""Technique → its document; the file is `<technique>_analysis.json`."""

__all__ = [
    "DOCUMENTS",
    "CvAnalysis",
    "Document",
    "EncodingAnalysis",
    "ImbalanceAnalysis",
    "LeakageAnalysis",
    "MissingAnalysis",
    "ScalingAnalysis",
]
