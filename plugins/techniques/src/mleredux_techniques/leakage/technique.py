"""The technique `leakage`."""

from __future__ import annotations

from mleredux_techniques._kit.declaration.package import declared

technique = declared(
    __package__,
    version="8",
    title="Leakage: why a score is too good to be true",
    private_parts=("risks", "mitigations"),
    images=True,
)
