"""Saved views of a person: listed, saved, renamed, deleted (docs/dashboard.md "Saved views"). They are a person's own
and change nothing for others, so the audit log does not mention them."""

from collections.abc import Callable

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain import ids
from ...domain.errors import Refusal
from ...domain.people.people import membership_id
from ...domain.people.views import VIEW, SavedViews, View, read_view_name, renamed_view, with_view
from ..common.encrypted import saved_views_aad
from ..common.units import retrying
from .sessions import Actor

Views = tuple[View, ...]
MADE_MEANWHILE = ("saved_views_id",)


def _open(ports: Ports, found: SavedViews | None) -> Views:
    """Return the decrypted views. Raises: VaultError."""
    if found is None:
        return ()
    return msgspec.json.decode(ports.vault.decrypt(found.views, saved_views_aad(found.id)), type=Views)


def _id_of(actor: Actor) -> str:
    return membership_id(actor.account.id, actor.user.id)


async def list_views(ports: Ports, actor: Actor, page: str) -> list[View]:
    """Return the person's views of a page in this account, in the order in which they were saved."""
    found = _open(ports, await ports.storage.get(SavedViews, _id_of(actor)))
    return [each for each in found if each.page == page]


async def get_view(ports: Ports, actor: Actor, page: str, view_id: str) -> View:
    """Return a view of the person. Raises: Refusal VIEW_NOT_FOUND."""
    found = next((each for each in await list_views(ports, actor, page) if each.id == view_id), None)
    if found is None:
        raise Refusal("VIEW_NOT_FOUND", "You have no such view")
    return found


async def save_view(ports: Ports, actor: Actor, page: str, name: str, query: str) -> View:
    """Save the filter of a page under a name. A view of this name gets the new filter.

    Raises: Refusal VALIDATION_ERROR; INVALID_STATE when the person has VIEWS_MOST.
    """
    wanted = View(id=ids.prefixed(VIEW, ports.ids.uuid()), page=page, name=read_view_name(name), query=query)
    after = await _change(ports, actor, lambda views: with_view(views, wanted))
    return next(each for each in after if (each.page, each.name.casefold()) == (page, wanted.name.casefold()))


async def rename_view(ports: Ports, actor: Actor, view_id: str, name: str) -> None:
    """Give a view another name. Raises: Refusal VALIDATION_ERROR, VIEW_NOT_FOUND; INVALID_STATE when another view has
    this name."""
    wanted = read_view_name(name)
    await _change(ports, actor, lambda views: renamed_view(views, view_id, wanted))


async def delete_view(ports: Ports, actor: Actor, view_id: str) -> None:
    """Delete a view. A view that is gone already is no error."""
    await _change(ports, actor, lambda views: tuple(each for each in views if each.id != view_id))


async def forget_views(unit: Unit, account_id: str, user_id: str) -> None:
    """Delete all views of a person in an account, in the caller's unit."""
    found = await unit[SavedViews].get(membership_id(account_id, user_id))
    if found is not None:
        unit[SavedViews].remove(found)


async def _change(ports: Ports, actor: Actor, change: Callable[[Views], Views]) -> Views:
    record_id = _id_of(actor)

    async def work(unit: Unit) -> Views:
        found = await unit[SavedViews].get(record_id)
        before = _open(ports, found)
        after = change(before)
        if after == before:
            return after
        sealed = ports.vault.encrypt(msgspec.json.encode(after), saved_views_aad(record_id))
        if found is None:
            unit[SavedViews].add(SavedViews(id=record_id, views=sealed))
        else:
            unit[SavedViews].save(msgspec.structs.replace(found, views=sealed))
        return after

    return await retrying(ports.storage, work, again_on=MADE_MEANWHILE)
