"""The rule for redirects, which holds for all that is fetched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux.plugin.files import redirected

ORIGIN = "https://example.org/a/b?c=d"


@pytest.mark.parametrize(
    "location",
    [
        "http://example.org/a",
        "http://127.0.0.1/",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://0x7f000001/",
        "https://10.1.2.3/",
        "https://[::1]/",
        "https://[fe80::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://0.0.0.0/",
        "https://user@example.org/a",
        "https://a:b@example.org/a",
        "//127.0.0.1/x",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://example.org/",
        "https://[::1/",
        "https://host.invalid/",
        "https://example.org:99999/",
    ],
)
@pytest.mark.attack
def test_what_no_redirect_may_lead_to(location: str) -> None:
    with pytest.raises(PermissionError):
        redirected(ORIGIN, location)


@pytest.mark.parametrize(
    ("origin", "location", "target", "pins"),
    [
        (ORIGIN, "https:///x", "https://example.org/x", ()),
        (ORIGIN, "/x", "https://example.org/x", ()),
        (ORIGIN, "https://example.org/y?z", "https://example.org/y?z", ()),
        (ORIGIN, "https://93.184.215.14/", "https://93.184.215.14/", ("93.184.215.14",)),
        ("http://127.0.0.1:1/a", "https://127.0.0.1/a", "https://127.0.0.1/a", ("127.0.0.1",)),
        ("http://127.0.0.1:1/a", "http://127.0.0.1:2/a", "http://127.0.0.1:2/a", ("127.0.0.1",)),
    ],
)
def test_what_it_may_lead_to_and_where_alone_to_connect(
    origin: str, location: str, target: str, pins: tuple[str, ...]
) -> None:
    assert redirected(origin, location) == (target, pins)


@given(st.ip_addresses(network="10.0.0.0/8") | st.ip_addresses(network="fc00::/7"), st.integers(1, 65535))
@pytest.mark.attack
def test_no_private_address_is_followed(address: object, port: int) -> None:
    host = f"[{address}]" if ":" in str(address) else str(address)
    with pytest.raises(PermissionError):
        redirected(ORIGIN, f"https://{host}:{port}/")
