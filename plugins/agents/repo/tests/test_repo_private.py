"""Private repositories, by a token that a service's user lends."""

from __future__ import annotations

from pathlib import Path

import pytest
from mleredux.errors import MlereduxError
from mleredux.plugin.agent import GIT_TOKEN
from mleredux.plugin.command import Catalogue
from mleredux.plugin.host import provide_secrets

TOKEN = "pat-0123456789"


def test_a_private_repository_is_for_those_with_its_token(
    private_https: tuple[str, list[str]], own_cache: Path
) -> None:
    url, sent = private_https
    catalogue = Catalogue()
    with pytest.raises(MlereduxError, match="can't be fetched"):
        catalogue.agent(f"repo:{url}@main")
    with provide_secrets({GIT_TOKEN: TOKEN}):
        found = catalogue.agent(f"repo:{url}@main")
    assert found.id == "sampler" and found.reference is not None and sent[-1].startswith("Basic ")
    with pytest.raises(MlereduxError, match="can't be fetched"):  # it is in the cache, for others not
        catalogue.agent(found.reference)
    with (
        provide_secrets({GIT_TOKEN: "another-0123456"}),
        pytest.raises(MlereduxError, match="can't be fetched") as error,
    ):
        catalogue.agent(found.reference)
    assert "another" not in str(error.value)
    before = len(sent)
    with provide_secrets({GIT_TOKEN: TOKEN}):
        assert catalogue.agent(found.reference).version == found.version
    assert len(sent) == before, "the pinned commit is in the cache"
    assert not any(TOKEN.encode() in path.read_bytes() for path in own_cache.rglob("*") if path.is_file())
