"""The Docker sandbox passes the same checks as everyone's."""

from __future__ import annotations

import pytest
from mleredux.testing.sandboxes import check_sandbox

pytestmark = [pytest.mark.docker, pytest.mark.slow]


def test_the_docker_sandbox_conforms(sandbox, base):
    findings = check_sandbox(sandbox, base_image=base)
    assert findings is not None
