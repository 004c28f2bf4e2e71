"""What all models share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A frozen model that keeps fields it does not know: a newer server may say more."""

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=(), defer_build=True)
