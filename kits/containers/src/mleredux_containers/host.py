"""Host settings that image builds need: certificates, and the package index."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import urlsplit

CA_VARIABLE = "MLEREDUX_CA_BUNDLE"
_CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE")
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_INDEXES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST")
_IN_IMAGE = "/etc/ssl/mleredux-host-ca.crt"

CA_LAYER = f"""\
COPY ca.crt {_IN_IMAGE}
RUN mkdir -p /etc/ssl/certs && cat {_IN_IMAGE} >> /etc/ssl/certs/ca-certificates.crt
ENV SSL_CERT_FILE={_IN_IMAGE} REQUESTS_CA_BUNDLE={_IN_IMAGE} PIP_CERT={_IN_IMAGE} CURL_CA_BUNDLE={_IN_IMAGE}
"""


def ca_bundle() -> bytes | None:
    """Return the certificates that this machine trusts, or None.

    They are read from the file named by `MLEREDUX_CA_BUNDLE` (`none` disables it), else from that of a variable that
    Python, requests, pip or curl uses, else from the system's file.
    """
    configured = os.environ.get(CA_VARIABLE)
    if configured == "none":
        return None
    named = [configured] if configured else [os.environ.get(name) for name in _CA_VARIABLES]
    for path in [*named, *_SYSTEM_BUNDLES]:
        if path and Path(path).is_file():
            return Path(path).read_bytes()
    return None


def ca_key(bundle: bytes) -> str:
    """Return a name for a bundle of certificates, derived from its content."""
    return hashlib.sha256(bundle).hexdigest()[:16]


def build_arguments(*, generated: bool) -> dict[str, str]:
    """Return build arguments for the host's package index. An index URL with a password is passed only to generated
    Dockerfiles, whose installing stage is discarded.

    Args:
        generated: Whether the Dockerfile is generated.
    """
    arguments: dict[str, str] = {}
    for name in _INDEXES:
        value = os.environ.get(name)
        if value and (generated or not _has_password(value)):
            arguments[name] = value
    return arguments


def secrets(arguments: dict[str, str]) -> list[str]:
    """Return passwords in URLs of build arguments, which must not be written to a log."""
    values = []
    for value in arguments.values():
        for address in value.split():
            values += [part for part in (_parts(address)) if part]
    return values


def mask(text: str, hidden: list[str]) -> str:
    """Return the text with passwords masked."""
    for secret in hidden:
        text = text.replace(secret, "***")
    return re.sub(r"(\w+://)[^/\s@]+@", r"\1***@", text)


def _has_password(addresses: str) -> bool:
    return any(any(_parts(address)) for address in addresses.split())


def _parts(address: str) -> tuple[str | None, str | None]:
    try:
        split = urlsplit(address)
    except ValueError:
        return None, None
    return split.username, split.password
