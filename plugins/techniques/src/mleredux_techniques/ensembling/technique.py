"""The technique `ensembling`."""

from __future__ import annotations

from mleredux_techniques._kit.declaration.package import declared

technique = declared(
    __package__,
    version="6",
    title="Ensembling: the worth of predictions, and their blend",
    private_parts=("optimistic",),
)
