"""The technique `features`."""

from __future__ import annotations

from mleredux_techniques._kit.declaration.package import declared

technique = declared(
    __package__,
    version="4",
    title="Features: which predict the target, and the target's transform",
)
