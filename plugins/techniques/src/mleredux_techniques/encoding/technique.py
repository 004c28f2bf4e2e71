"""The technique `encoding`."""

from __future__ import annotations

from mleredux_techniques._kit.declaration.package import declared, without_table
from mleredux_techniques._kit.declaration.spec import WITH_TABLES

technique = declared(
    __package__,
    version="7",
    title="Encoding: feature types and their encodings",
    categories=WITH_TABLES,
    reason=without_table("categorical features to encode"),
)
