"""TODO technique"""

from __future__ import annotations

from mleredux._core.models import Technique
from mleredux._core.submissions.documents import read_document

__all__ = [
    "Technique",
    "read_document",
]
