"""Preferences of notifications, and the links by which people unsubscribe (docs/dashboard.md "Notifications").

A link is not stored: it names the recipient, and carries the vault's tag over the recipient, the membership and the
number of times that the person used such a link.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Snapshot, Unit
from ....ports.vault import VaultError
from ...domain.accounts.accounts import Account
from ...domain.errors import Refusal
from ...domain.operators.audit import OperatorAction
from ...domain.people.notifications import (
    Channel,
    NotificationKind,
    NotificationPreferences,
    TelegramChat,
    default_preferences,
    kinds_for,
    read_kinds,
    read_minutes,
    recipient_id,
    recipient_of,
)
from ...domain.people.people import Membership, Passkey, User, membership_id
from ..actions.audit import acting
from ..common.schedule import FollowUp
from ..common.units import retrying
from .sessions import Actor, by_person

NOTIFY = FollowUp("person.notify")
"""Sends one person's notifications of one account by one channel (notifying.py)."""

_TAG_AAD = "people.unsubscribe"
_TOKEN_LONGEST = 300


class ShownPreferences(msgspec.Struct, frozen=True, kw_only=True):
    """A person's preferences, and what the person may choose."""

    preferences: NotificationPreferences
    kinds: tuple[NotificationKind, ...]
    has_factor: bool
    """Whether the person has a second factor; without it some roles get no amounts of live money."""
    has_mail: bool
    has_bot: bool
    chat: TelegramChat | None


class Unsubscription(msgspec.Struct, frozen=True, kw_only=True):
    """What a link ends."""

    account_name: str
    channel: Channel
    language: str
    is_done: bool
    """Whether the person gets nothing by this channel any more."""


async def read_preferences(ports: Ports, actor: Actor) -> ShownPreferences:
    """Return the person's preferences in the session's account."""
    async with ports.storage.unit() as unit:
        found = await preferences_of(unit, actor.membership)
        chat = await unit[TelegramChat].get(actor.user.id)
        has_factor = await has_second_factor(unit, actor.user)
    return ShownPreferences(
        preferences=found,
        kinds=kinds_for(actor.membership),
        has_factor=has_factor,
        has_mail=ports.mailer is not None,
        has_bot=ports.messenger is not None,
        chat=chat,
    )


async def change_preferences(
    ports: Ports,
    actor: Actor,
    *,
    email: Sequence[str],
    telegram: Sequence[str],
    test: bool,
    quiet_from: str,
    quiet_to: str,
) -> NotificationPreferences:
    """Replace the person's preferences in the session's account. Quiet hours are times of day in Moscow, or empty.

    Raises: Refusal VALIDATION_ERROR; PERSON_RIGHT_MISSING for a kind that the role may not get.
    """
    start, end = read_minutes(quiet_from), read_minutes(quiet_to)
    if (start is None) != (end is None) or (start is not None and start == end):
        raise Refusal("VALIDATION_ERROR", "Quiet hours need a start and another end, or neither")
    plain = ports
    ports = by_person(plain, actor, "person.notifications", actor.user.id)

    async def work(unit: Unit) -> NotificationPreferences:
        membership = await unit[Membership].get(actor.membership.id)
        if membership is None:
            raise Refusal("NO_ACCOUNT", "You do not belong to this account")
        before = await preferences_of(unit, membership)
        after = msgspec.structs.replace(
            before,
            email=read_kinds(email, membership),
            telegram=read_kinds(telegram, membership),
            test=test,
            quiet_from=start,
            quiet_to=end,
        )
        for channel in Channel:
            # A waiting job may be due at the end of the former quiet hours.
            await NOTIFY.hurry(unit, recipient_id(membership.id, channel), plain.clock.real())
        return await _save(unit, after)

    with plain.clock.entered(None):
        return await retrying(ports.storage, work, again_on=("notification_preferences_id",))


async def preferences_of(unit: Unit | Snapshot, membership: Membership) -> NotificationPreferences:
    """Return a member's preferences: those that were chosen, or the default ones."""
    found = await unit[NotificationPreferences].get(membership.id)
    return default_preferences(membership) if found is None else found


async def has_second_factor(unit: Unit | Snapshot, user: User) -> bool:
    """Return whether a person has an authenticator app or a passkey."""
    return user.has_second_factor or bool(await unit[Passkey].find(user_id=user.id, order="id", limit=1))


async def forget_preferences(unit: Unit, membership: Membership) -> None:
    """Remove the preferences of a membership that ends. Call it in the unit that removes the membership."""
    found = await unit[NotificationPreferences].get(membership.id)
    if found is not None:
        unit[NotificationPreferences].remove(found)


async def _save(unit: Unit, preferences: NotificationPreferences) -> NotificationPreferences:
    if await unit[NotificationPreferences].get(preferences.id) is None:
        return unit[NotificationPreferences].add(preferences)
    return unit[NotificationPreferences].save(preferences)


def unsubscribe_link(
    ports: Ports, membership: Membership, preferences: NotificationPreferences, channel: Channel
) -> str:
    """Return the address that ends all notifications of this account by this channel."""
    recipient = recipient_id(membership.id, channel)
    tag = ports.vault.tag(_said(membership, recipient, preferences.links(channel)), _TAG_AAD)
    token = f"{recipient}:{urlsafe_b64encode(tag).decode().rstrip('=')}"
    return f"{ports.urls.app_url}/unsubscribe?{urlencode({'token': token})}"


async def find_unsubscription(ports: Ports, token: str) -> Unsubscription:
    """Return what a link ends, and change nothing. Raises: Refusal UNSUBSCRIBE_VOID."""
    async with ports.storage.unit() as unit:
        membership, preferences, channel = await _opened(ports, unit, token)
        return await _shown(unit, membership, preferences, channel)


async def unsubscribe(ports: Ports, token: str) -> Unsubscription:
    """End the notifications that a link names. A repeat changes nothing. Raises: Refusal UNSUBSCRIBE_VOID."""
    async with ports.storage.unit() as unit:
        # Check the link before an action is recorded in the name of its person.
        membership, _, _ = await _opened(ports, unit, token)
    plain = ports
    ports = acting(
        plain, OperatorAction(operator=membership.user_id, name="person.unsubscribe", object_id=membership.user_id)
    )

    async def work(unit: Unit) -> Unsubscription:
        membership, preferences, channel = await _opened(plain, unit, token)
        if preferences.kinds(channel):
            preferences = await _save(unit, preferences.without(channel))
        return await _shown(unit, membership, preferences, channel)

    return await retrying(ports.storage, work, again_on=("notification_preferences_id",))


async def _opened(ports: Ports, unit: Unit, token: str) -> tuple[Membership, NotificationPreferences, Channel]:
    """Return the membership, preferences and channel of a link. The link that was used last stays readable while its
    channel is off, because mail programs repeat requests. Raises: Refusal UNSUBSCRIBE_VOID."""
    recipient, _, text = token.rpartition(":")
    if len(token) > _TOKEN_LONGEST or not token.isascii() or not token.isprintable():
        raise _void()
    try:
        tag = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        account_id, user_id, channel = recipient_of(recipient)
    except (ValueError, NotBase64):
        raise _void() from None
    membership = await unit[Membership].get(membership_id(account_id, user_id))
    if membership is None:
        raise _void()
    preferences = await preferences_of(unit, membership)
    links = preferences.links(channel)
    if not any(
        _fits(ports, tag, _said(membership, recipient, number))
        for number in ((links,) if preferences.kinds(channel) else (links, links - 1))
    ):
        raise _void()
    return membership, preferences, channel


def _fits(ports: Ports, tag: bytes, said: bytes) -> bool:
    try:
        return ports.vault.fits(tag, said, _TAG_AAD)
    except VaultError:
        return False


async def _shown(
    unit: Unit, membership: Membership, preferences: NotificationPreferences, channel: Channel
) -> Unsubscription:
    account = await unit[Account].get(membership.account_id)
    user = await unit[User].get(membership.user_id)
    if account is None or user is None:
        raise _void()
    return Unsubscription(
        account_name=account.name,
        channel=channel,
        language=user.language,
        is_done=not preferences.kinds(channel),
    )


def _said(membership: Membership, recipient: str, links: int) -> bytes:
    # A person who leaves and is invited again gets another membership of the same id.
    return f"{recipient}:{membership.created_at.timestamp():.3f}:{links}".encode()


def _void() -> Refusal:
    return Refusal(
        "UNSUBSCRIBE_VOID", "This link was used already, or is incomplete: choose your notifications in the dashboard"
    )
