"""Discovery of plugins without importing them, isolated loading, and the catalogue of registered objects.

| module | contents |
|---|---|
| `discovery` | installed plugins, files and modules, without an import |
| `index`, `description` | what each registers, from a cache; the process that writes it |
| `loader`, `calls` | import and registration, isolated; calls of functions of plugins |
| `summaries`, `catalogue` | objects checked and summarized; found by id |
| `capabilities` | requirements of agents matched with sandboxes |
| `directory` | known plugins that are not installed |
"""

from mleredux._core.plugins.catalogue import Catalogue, current
from mleredux._core.plugins.discovery import KINDS, Entry, Plugin, Ref, discover

__all__ = ["KINDS", "Catalogue", "Entry", "Plugin", "Ref", "current", "discover"]
