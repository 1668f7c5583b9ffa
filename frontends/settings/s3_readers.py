"""Readers for the settings of a bucket, as in readers.py."""

import re
from typing import Any

from .readers import read_text

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
