"""Object stores with the S3 protocol: AWS, MinIO, Ceph, Garage, R2."""

from __future__ import annotations

from mleredux.plugin import Ref, hookimpl

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
def mleredux_register_schemes() -> list[Ref]:
    """Return the scheme of buckets, `s3://BUCKET/PREFIX`."""
    return [Ref("s3", "mleredux_store_s3.bucket:SCHEME")]
