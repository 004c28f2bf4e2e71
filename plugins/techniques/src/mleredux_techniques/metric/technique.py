"""The technique `metric`."""

from __future__ import annotations

from mleredux_techniques._kit.declaration.package import declared

technique = declared(
    __package__,
    version="7",
    title="Metric: what it rewards, and the post-processing of predictions",
)
