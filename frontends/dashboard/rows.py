"""Rows of the table of routes, and what handlers return."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from litestar import Response

from ...core.domain.people.roles import PersonRight
from .blocks import Block, Link
from .web import Ask


class Page(msgspec.Struct, frozen=True):
    """A page: title and blocks."""

    title: str
    blocks: Sequence[Block]
    crumbs: Sequence[Link] = ()
    status: int = 200
    refresh: int | None = None
    """Seconds after which the browser reloads the page; None: never."""
    has_form: bool = False
    """Whether it has a form although nobody is signed in."""


class Redirect(msgspec.Struct, frozen=True):
    """Redirect to a page after a form."""

    path: str
    query: Mapping[str, str | None] = {}


Handler = Callable[[Ask], Awaitable[Page | Redirect | Response[Any]]]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One route. `right` None: any signed-in person; `is_public`: also people who are not signed in."""

    method: str
    path: str
    handler: Handler
    right: PersonRight | None = None
    is_public: bool = False
    retry: str = ""
    """Page to return to when the form is refused."""
    is_by_link: bool = False
    """Whether the secret in the address alone is the permission: mail programs send such forms, too, without cookies
    and hidden fields. Their fields are not read."""
    is_upload: bool = False
    """Whether its form may contain a small file."""
    is_stream: bool = False
    """Whether the response stays open, for the page's script."""


def get(path: str, handler: Handler, right: PersonRight | None = None, *, is_public: bool = False) -> Row:
    return Row(method="GET", path=path, handler=handler, right=right, is_public=is_public)


def post(
    path: str,
    handler: Handler,
    right: PersonRight | None = None,
    *,
    is_public: bool = False,
    retry: str = "",
    is_by_link: bool = False,
    is_upload: bool = False,
) -> Row:
    row = Row(method="POST", path=path, handler=handler, right=right, is_public=is_public, retry=retry)
    return msgspec.structs.replace(row, is_by_link=is_by_link, is_upload=is_upload)
