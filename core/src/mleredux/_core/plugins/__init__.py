"""Discovery of plugins without importing them, isolated loading, and the catalogue of registered objects."""

from mleredux._core.plugins.catalogue import Catalogue, Entry, current
from mleredux._core.plugins.discovery import KINDS, Plugin, Ref, discover

__all__ = ["KINDS", "Catalogue", "Entry", "Plugin", "Ref", "current", "discover"]
