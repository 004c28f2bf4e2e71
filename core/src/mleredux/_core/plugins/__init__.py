"""Plugins: discovery without imports, isolated loading, and the catalogue of registered objects.

| module | contents |
|---|---|
| `discovery` | installed plugins, files and modules, without an import |
| `index`, `description` | a cache of what each plugin registers; the process that writes it |
| `loader`, `former`, `calls` | isolated import and registration; hooks of earlier versions; calls of plugin functions |
| `summaries`, `catalogue` | checks and summaries of objects; finding them by id |
| `withheld` | variables that jobs of executors do not get |
| `capabilities` | matching agents' requirements with sandboxes |
| `directory` | known plugins that are not installed |
"""

from mleredux._core.plugins.catalogue import Catalogue, current
from mleredux._core.plugins.discovery import KINDS, Entry, Plugin, Ref, discover

__all__ = ["KINDS", "Catalogue", "Entry", "Plugin", "Ref", "current", "discover"]
