"""What a document recommends, in lines for people. Only known names and closed words: no text of an agent's own."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from mleredux_techniques.columns import class_name
from mleredux_techniques.dataset import Dataset
from mleredux_techniques.schemas import (
    CvAnalysis,
    Document,
    EncodingAnalysis,
    ImbalanceAnalysis,
    LeakageAnalysis,
    MissingAnalysis,
    ScalingAnalysis,
)
from mleredux_techniques.schemas.base import Part

_MOST = 200
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_ -]{0,19}")


def recommendation(document: Document, dataset: Dataset) -> list[str]:
    """One line for each thing to do, at most 200."""
    return list(_lines(document, dataset))[:_MOST]


def _lines(document: Document, dataset: Dataset) -> Iterable[str]:
    known = {*dataset.ids, *dataset.features}
    if isinstance(document, ImbalanceAnalysis):
        return [told(document.strategies[0], {*dataset.classes})]
    if isinstance(document, CvAnalysis):
        return [told(document.method, known)]
    if isinstance(document, MissingAnalysis):
        return _by_choice(((item.column, item.imputation) for item in document.columns), known)
    if isinstance(document, EncodingAnalysis):
        return _by_choice(((item.column, item.encoding) for item in document.features), known)
    if isinstance(document, ScalingAnalysis):
        return _by_choice(((item.column, item.scaler) for item in document.features), known)
    if isinstance(document, LeakageAnalysis):
        return [
            f"{risk.mitigation.name}: {', '.join(f'`{name}`' for name in risk.columns if name in known) or 'rows'} "
            f"({risk.kind})"
            for risk in document.risks
        ] or ["leave nothing out"]
    raise TypeError(type(document).__name__)


def _by_choice(choices: Iterable[tuple[str, Part]], known: set[str]) -> list[str]:
    columns: dict[str, list[str]] = defaultdict(list)
    for column, choice in choices:
        if column in known:
            columns[told(choice, known)].append(f"`{column}`")
    return [f"{choice}: {', '.join(names)}" for choice, names in columns.items()]


def told(choice: Part, known: set[str]) -> str:
    """A strategy as one would write it: `SimpleImputer(strategy='median')`."""
    fields = {name: value for name, value in choice.model_dump().items() if name != "name"}
    arguments = [f"{name}={_value(value, known)}" for name, value in fields.items() if value not in (None, False)]
    return f"{getattr(choice, 'name', 'none')}({', '.join(arguments)})"


def _value(value: object, known: set[str]) -> str:
    if isinstance(value, dict):
        if "separator" in value:  # a group's key
            mark = f" before {value['separator']!r}" if value["separator"] else ""
            return f"`{value['column']}`{mark}" if value["column"] in known else "'…'"
        return repr({name: item for name, item in value.items() if class_name(name) in known})
    if isinstance(value, list):
        return f"[{len(value)} values]"
    if isinstance(value, str):
        return repr(value) if value in known or _WORD.fullmatch(value) else "'…'"
    return repr(value)
