"""The technique `shift`."""

from __future__ import annotations

from mleredux_techniques._kit.declaration.package import declared

technique = declared(
    __package__,
    version="4",
    title="Shift: what differs between training and test, and what to do",
    private_parts=("broken", "target", "changes"),
)
