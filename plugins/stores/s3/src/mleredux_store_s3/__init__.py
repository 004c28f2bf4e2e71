"""Object stores with the S3 protocol: AWS, MinIO, Ceph, Garage, R2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.executor import ObjectStore

mleredux_contract = 2
VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
)
"""Environment variables that contain credentials, or locations of credentials."""


@hookimpl
def mleredux_open_store(url: str) -> ObjectStore | None:
    """Open `s3://BUCKET/PREFIX`."""
    if not url.startswith("s3://"):
        return None
    from mleredux_store_s3.bucket import Bucket

    return Bucket(url)
