"""The technique `cv`."""

from __future__ import annotations

from mleredux_techniques._kit.declaration.package import declared

technique = declared(
    __package__,
    version="9",
    title="Cross-validation: an estimate that the private test confirms",
    images=True,
)
