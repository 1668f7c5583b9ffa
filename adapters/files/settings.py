"""Settings of the file store in a bucket (docs/providers/s3.md)."""

import re
from typing import Annotated, Any

from ...ports.settings import (
    AdapterSettings,
    read_address,
    read_boolean,
    read_choice,
    read_credential,
    read_text,
    setting,
)

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_REGION = re.compile(r"[a-z0-9-]{1,40}\Z")
_PREFIX = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)+\Z")


def read_bucket(raw: Any) -> str:
    if not _BUCKET.match(read_text(raw)) or ".." in raw:
        raise ValueError("must be a bucket's name: 3 to 63 lower-case letters, digits, dots and hyphens")
    return str(raw)


def read_region(raw: Any) -> str:
    if not _REGION.match(read_text(raw)):
        raise ValueError("must be a region's name, such as eu-central-1")
    return str(raw)


def read_prefix(raw: Any) -> str:
    text = read_text(raw)
    if len(text) > 200 or not _PREFIX.match(text):
        raise ValueError("must be parts of letters, digits, dots, hyphens and underscores, each with a slash behind it")
    return text


class S3Settings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of a bucket at Amazon or at a provider with the same API."""

    bucket: Annotated[str, setting("bucket of clients' documents", read_bucket)]
    region: Annotated[str, setting("its region", read_region)] = "us-east-1"
    endpoint: Annotated[str | None, setting("address of the service; default Amazon's", read_address)] = None
    access_key: Annotated[str, setting("access key that signs requests", read_credential, secret=True)]
    secret_key: Annotated[str, setting("secret key of the access key", read_credential, secret=True)]
    prefix: Annotated[str, setting("prefix of keys in the bucket", read_prefix)] = ""
    addressing: Annotated[
        str | None,
        setting(
            "position of the bucket's name in the address; default host at Amazon, path elsewhere",
            read_choice("host", "path"),
        ),
    ] = None
    single_use: Annotated[
        bool, setting("whether an address accepts one upload only, sent with If-None-Match: *", read_boolean)
    ] = False
