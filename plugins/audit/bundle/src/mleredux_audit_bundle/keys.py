"""The signing key of an installation: an ed25519 key in the user's configuration folder."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from mleredux.errors import MlereduxError, file_errors
from mleredux.plugin.files import write_once
from securesystemslib.signer import SSlibKey

_SECRET = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def key_path() -> Path:
    """Return the path of the private key file."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "mleredux" / "signing-key.pem"


def installation_key() -> Ed25519PrivateKey:
    """Return the key of this installation, which is created on first use and readable only by its user.

    Raises:
        MlereduxError: The key cannot be read or created, or is of another type.
    """
    path = key_path()
    with file_errors(MlereduxError, f"The signing key {path} can't be read or created", "Check its permissions."):
        pem = write_once(path, lambda: Ed25519PrivateKey.generate().private_bytes(*_SECRET))
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise MlereduxError(f"The signing key {path} is not an ed25519 key.", hint="Move it to have a new one created.")
    return key


def public_pem(key: Ed25519PrivateKey) -> bytes:
    """Return the public key in PEM format."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def public_key(pem: bytes, source: str) -> SSlibKey:
    """Read a public key from the content of a PEM file.

    Raises:
        MlereduxError: The content is not a public key.
    """
    try:
        return SSlibKey.from_crypto(load_pem_public_key(pem))
    except Exception as error:  # among others, the library's own error for unknown types of keys
        raise MlereduxError(f"{source} is not a public key in PEM form, or has an unsupported type.") from error
