"""The guides of the service as resources, listed in its /llms.txt."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

_LINK = re.compile(r"^- \[(?P<title>[^\]]+)\]\((?P<url>\S+\.md)\)(?:: (?P<about>.+))?$", re.MULTILINE)
_FOLDER = "/docs/"


class GuideResource(msgspec.Struct, frozen=True, kw_only=True):
    """A guide. Its URI does not depend on the service's address."""

    uri: str
    name: str
    title: str
    about: str
    path: str
    """Path at the service."""


def guide_resources(contents: str) -> Mapping[str, GuideResource]:
    """Return the guides of an /llms.txt by URI: `cambist://docs/quickstart.md`."""
    found = {}
    for each in _LINK.finditer(contents):
        name = urlsplit(each["url"]).path.rpartition(_FOLDER)[2]
        guide = GuideResource(
            uri=f"cambist:/{_FOLDER}{name}",
            name=name,
            title=each["title"],
            about=each["about"] or each["title"],
            path=f"{_FOLDER}{name}",
        )
        found[guide.uri] = guide
    return found
