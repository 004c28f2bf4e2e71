"""Finding plugins without importing them, loading them apart from one another, and what they register."""

from mleredux._core.plugins.catalogue import Catalogue, Entry, current
from mleredux._core.plugins.discovery import KINDS, Plugin, Ref, discover

__all__ = ["KINDS", "Catalogue", "Entry", "Plugin", "Ref", "current", "discover"]
