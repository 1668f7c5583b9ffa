"""Saved views: filters of lists that a person keeps under a name (docs/dashboard.md "Saved views")."""

import msgspec

from ..errors import Refusal
from ..masked import Masked
from ..shapes import has_control

VIEW = "view_"
VIEWS_MOST = 20
"""Views of one person in one account."""
VIEW_NAME_LONGEST = 60
VIEW_QUERY_LONGEST = 1000
"""Characters of the filter as it stands in the page's address."""


class View(Masked, frozen=True, kw_only=True):
    """A filter under a name."""

    _shown = ("id", "page")

    id: str
    page: str
    """The list: `payments`."""
    name: str
    query: str
    """The filter, as in the address of the page. It may contain the payer's contact that the person searched for."""


class SavedViews(Masked, frozen=True, kw_only=True):
    """Stored views of one person in one account. One record holds all of them, so that its version guards their
    number."""

    _shown = ("id",)

    id: str
    """`<account>:<user>`, as of the membership."""
    views: bytes
    """The views in their order, encrypted."""
    version: int = 0


def read_view_name(text: str) -> str:
    """Return the name of a view, trimmed. Raises: Refusal VALIDATION_ERROR."""
    name = " ".join(text.split())
    if not 1 <= len(name) <= VIEW_NAME_LONGEST or has_control(name):
        raise Refusal("VALIDATION_ERROR", f"A view's name has 1 to {VIEW_NAME_LONGEST} printable characters")
    return name


def with_view(views: tuple[View, ...], view: View) -> tuple[View, ...]:
    """Return the views with one more; a view of the same page and name gets the new filter.

    Raises: Refusal VALIDATION_ERROR for a filter that is too long; INVALID_STATE when there are VIEWS_MOST already.
    """
    if len(view.query) > VIEW_QUERY_LONGEST or not view.query.isascii() or not view.query.isprintable():
        raise Refusal("VALIDATION_ERROR", f"The filter of a view has at most {VIEW_QUERY_LONGEST} characters")
    same = _named(views, view.page, view.name)
    if same is not None:
        return tuple(msgspec.structs.replace(each, query=view.query) if each is same else each for each in views)
    if len(views) >= VIEWS_MOST:
        raise Refusal("INVALID_STATE", f"You have {VIEWS_MOST} views already: delete one first")
    return (*views, view)


def renamed_view(views: tuple[View, ...], view_id: str, name: str) -> tuple[View, ...]:
    """Return the views, one of them under another name.

    Raises: Refusal VIEW_NOT_FOUND; INVALID_STATE when another view of the same page has this name.
    """
    found = next((each for each in views if each.id == view_id), None)
    if found is None:
        raise Refusal("VIEW_NOT_FOUND", "You have no such view")
    if _named(views, found.page, name) not in (None, found):
        raise Refusal("INVALID_STATE", "You have another view of this name: choose another name")
    return tuple(msgspec.structs.replace(each, name=name) if each is found else each for each in views)


def _named(views: tuple[View, ...], page: str, name: str) -> View | None:
    folded = name.casefold()
    return next((each for each in views if each.page == page and each.name.casefold() == folded), None)
