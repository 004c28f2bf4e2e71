"""Seeds of planted data: mixed with a secret of this installation, or marked as public.

The secret is derived from the installation's salt, so that it can be revealed without revealing anything else; its hash
is published with each result.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass

import numpy as np
from mleredux.plugin.task import installation_salt

NUMBER, SEEDS = "(0|[1-9][0-9]{0,9})", 1 << 31
VARIANT = re.compile(rf"planted-(public-)?{NUMBER}")
_PUBLIC = b"mleredux public seeds"


def planting_salt() -> bytes:
    """Return the secret that this installation mixes into planted seeds.

    Raises:
        MlereduxError: The installation's salt can't be read or created.
    """
    return hmac.new(installation_salt(), b"mleredux planted instances", hashlib.sha256).digest()


def commitment(salt: bytes) -> str:
    """Return the published hash of a planting salt: its SHA-256 in hexadecimal."""
    return hashlib.sha256(salt).hexdigest()


@dataclass(frozen=True)
class Seed:
    """A seed of planted or synthetic data.

    Attributes:
        number: The number in the task's id.
        public: Whether anyone can generate the data, without this installation's planting salt.
    """

    number: int
    public: bool = False

    @property
    def mark(self) -> str:
        """Return the seed's mark in a task's version: `public`, or the first digits of the commitment."""
        return "public" if self.public else commitment(planting_salt())[:12]

    @property
    def note(self) -> str:
        """Return a sentence about the seed, for reports."""
        if self.public:
            return f"Generated from the public seed {self.number}: the truth can be computed by anyone."
        return (
            f"Generated from seed {self.number} and a secret of this installation, whose commitment is "
            f"sha256:{commitment(planting_salt())}."
        )

    @classmethod
    def of(cls, number: str, *, public: bool) -> Seed | None:
        """Return the seed with a number; None if there is none, because there are 2^31 seeds."""
        return cls(int(number), public) if int(number) < SEEDS else None

    def key(self, *words: object) -> bytes:
        """Return 32 bytes unique to the seed and the given words."""
        return _key(_PUBLIC if self.public else planting_salt(), self.number, *words)

    def generator(self, *words: object) -> np.random.Generator:
        """Return a random generator unique to the seed and the given words."""
        return generator(_PUBLIC if self.public else planting_salt(), self.number, *words)


def generator(key: bytes, number: int, *words: object) -> np.random.Generator:
    """Return the random generator for a seed and a key."""
    return np.random.default_rng(int.from_bytes(_key(key, number, *words), "big"))


def _key(key: bytes, number: int, *words: object) -> bytes:
    text = ":".join(str(word) for word in (number, *words))
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def parse(variant: str) -> Seed | None:
    """Return the seed of a variant's name, such as `planted-7` or `planted-public-7`; None for other names."""
    match = VARIANT.fullmatch(variant)
    return Seed.of(match[2], public=bool(match[1])) if match else None
