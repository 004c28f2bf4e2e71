"""The technique `eda`."""

from __future__ import annotations

from mleredux_techniques._kit.declaration.package import declared

technique = declared(
    __package__,
    version="3",
    title="Exploratory analysis: types, distributions, relations and drift",
    images=True,
)
