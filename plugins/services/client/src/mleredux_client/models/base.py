"""The base class of the client's own models."""

from __future__ import annotations

from mleredux import models
from pydantic import ConfigDict


class Model(models.Model):
    """A frozen model that keeps unknown fields, since a newer server may send more."""

    model_config = ConfigDict(extra="allow", protected_namespaces=(), defer_build=True)
