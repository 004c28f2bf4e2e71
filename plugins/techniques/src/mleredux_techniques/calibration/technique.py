"""The technique `calibration`."""

from __future__ import annotations

from mleredux_techniques._kit.declaration.package import declared, of_numbers

technique = declared(
    __package__,
    version="6",
    title="Calibration: trust in probabilities, and decisions by them",
    reason=of_numbers,
)
