"""The technique `scaling`."""

from __future__ import annotations

from mleredux_techniques._kit.declaration.package import declared

technique = declared(
    __package__,
    version="6",
    title="Scaling: which features need it, and how",
)
