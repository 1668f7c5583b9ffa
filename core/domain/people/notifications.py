"""Notifications of an account's people by e-mail and Telegram: kinds, preferences, quiet hours and folding
(docs/dashboard.md "Notifications")."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import msgspec

from ..accounts.accounts import Mode
from ..days import MOSCOW
from ..errors import Refusal
from ..masked import Masked
from .people import Membership
from .roles import MONEY_ROLES, PersonRight, Role, grant

HOUR = timedelta(hours=1)
AT_ONCE = 3
"""Messages that one person gets by one channel within an hour. Everything else waits for one summary."""
ROWS_MOST = 500
"""Notifications that one message covers at most."""
_DAY = 24 * 60


class NotificationKind(StrEnum):
    """What people are notified of."""

    REFUND_DONE = "refund_done"
    PAYOUT_SENT = "payout_sent"
    MISMATCH = "mismatch"
    """Money of a payment is under review: a wrong amount, suspense, or a difference from the bank's list."""
    ENDPOINT_DEAD = "endpoint_dead"
    DAILY_SUM = "daily_sum"


class Channel(StrEnum):
    EMAIL = "email"
    TELEGRAM = "telegram"


RIGHTS: Mapping[NotificationKind, PersonRight] = {
    NotificationKind.REFUND_DONE: PersonRight.READ,
    NotificationKind.PAYOUT_SENT: PersonRight.MONEY,
    NotificationKind.MISMATCH: PersonRight.READ,
    NotificationKind.ENDPOINT_DEAD: PersonRight.WEBHOOKS,
    NotificationKind.DAILY_SUM: PersonRight.MONEY,
}
"""The right that a role needs for each kind."""

WHOLE_ACCOUNT = frozenset((NotificationKind.PAYOUT_SENT, NotificationKind.ENDPOINT_DEAD, NotificationKind.DAILY_SUM))
"""Kinds about the whole account: people who are limited to shops do not get them."""

LIVE_ONLY = frozenset((NotificationKind.DAILY_SUM,))

BY_DEFAULT = (NotificationKind.PAYOUT_SENT, NotificationKind.MISMATCH, NotificationKind.ENDPOINT_DEAD)
"""Kinds that a member gets by e-mail without a choice of his or her own."""


class NotificationPreferences(msgspec.Struct, frozen=True, kw_only=True):
    """Choices of one person in one account. A membership without this record has `default_preferences`."""

    id: str
    """The membership's id."""
    account_id: str
    user_id: str
    email: tuple[str, ...] = tuple(kind.value for kind in BY_DEFAULT)
    """Kinds by e-mail."""
    telegram: tuple[str, ...] = ()
    test: bool = False
    """Whether the person also gets notifications of test mode."""
    quiet_from: int | None = None
    """Start of quiet hours in minutes since midnight in Moscow; None: no quiet hours."""
    quiet_to: int | None = None
    email_links: int = 0
    """Rises when the person unsubscribes by a link in a mail, so that links of earlier mails end."""
    telegram_links: int = 0
    version: int = 0

    def kinds(self, channel: Channel) -> tuple[str, ...]:
        """Return the kinds that the person wants by this channel."""
        return self.email if channel is Channel.EMAIL else self.telegram

    def links(self, channel: Channel) -> int:
        """Return how often the person unsubscribed from this channel by a link."""
        return self.email_links if channel is Channel.EMAIL else self.telegram_links

    def without(self, channel: Channel) -> "NotificationPreferences":
        """Return the preferences without this channel. Its earlier unsubscribe links become void."""
        if channel is Channel.EMAIL:
            return msgspec.structs.replace(self, email=(), email_links=self.email_links + 1)
        return msgspec.structs.replace(self, telegram=(), telegram_links=self.telegram_links + 1)


class Notification(Masked, frozen=True, kw_only=True):
    """One notification for one person and channel. It waits to be sent, and is removed afterwards."""

    _shown = ("id", "at")

    id: str
    """Result of `notification_id`."""
    recipient: str
    """Result of `recipient_id`."""
    kind: str
    mode: Mode
    object_id: str
    at: datetime
    """When it was written."""
    shop_id: str | None = None
    details: dict[str, str] = msgspec.field(default_factory=dict)
    """Values of its text. `=name` stands for a word of notification_texts.py: `WORDS`."""
    version: int = 0


class NotificationQueue(msgspec.Struct, frozen=True, kw_only=True):
    """State of the messages to one person in one account by one channel. Only the recipient's job writes it, except for
    `last_day`."""

    id: str
    """Result of `recipient_id`."""
    sent: tuple[datetime, ...] = ()
    """When the last messages were sent, at most AT_ONCE of them."""
    sending: str | None = None
    """Id of a message that may have been sent already; None: there is none."""
    covers: tuple[str, ...] = ()
    """Notifications in that message."""
    failures: int = 0
    """Consecutive messages that were not delivered."""
    last_day: str = ""
    """Day of the last daily sum."""
    version: int = 0


class TelegramChat(Masked, frozen=True, kw_only=True):
    """A person's chat with the installation's bot, or a code that awaits it. Its id is the person's."""

    _shown = ("id", "linked_at", "code_expires_at")

    id: str
    chat: bytes | None = None
    """The chat's id, encrypted; None: no chat is linked."""
    linked_at: datetime | None = None
    code_digest: str | None = None
    """Digest of the open linking code; None: there is none."""
    code_expires_at: datetime | None = None
    version: int = 0


def recipient_id(membership: str, channel: Channel) -> str:
    """Return the id of a person's queue, and of the job that serves it."""
    return f"{membership}:{channel}"


def recipient_of(text: str) -> tuple[str, str, Channel]:
    """Split a `recipient_id` into account, person and channel."""
    account_id, user_id, channel = text.split(":")
    return account_id, user_id, Channel(channel)


def notification_id(recipient: str, kind: NotificationKind, object_id: str) -> str:
    return f"{recipient}/{kind}/{object_id}"


def default_preferences(membership: Membership) -> NotificationPreferences:
    """Return the preferences of a member who has chosen nothing."""
    return NotificationPreferences(id=membership.id, account_id=membership.account_id, user_id=membership.user_id)


def may_get(kind: NotificationKind, role: Role, *, is_limited: bool = False) -> bool:
    """Return whether a role may be notified of this kind. `is_limited`: the person is limited to shops."""
    return grant(role, RIGHTS[kind], Mode.LIVE) is not None and not (is_limited and kind in WHOLE_ACCOUNT)


def kinds_for(membership: Membership) -> tuple[NotificationKind, ...]:
    """Return the kinds that a member may choose."""
    limited = membership.shops is not None
    return tuple(kind for kind in NotificationKind if may_get(kind, membership.role, is_limited=limited))


def gets(
    membership: Membership,
    preferences: NotificationPreferences,
    channel: Channel,
    kind: NotificationKind,
    mode: Mode,
    shop_id: str | None,
    *,
    has_factor: bool,
) -> bool:
    """Return whether a member is notified of an event. `shop_id`: the event's shop; None: it has none. `has_factor`:
    the person has an authenticator app or a passkey, without which pages about money stay closed in live mode, too."""
    if kind.value not in preferences.kinds(channel) or kind not in kinds_for(membership):
        return False
    if membership.shops is not None and shop_id not in membership.shops:
        return False
    if mode is Mode.TEST:
        return preferences.test and kind not in LIVE_ONLY
    is_closed = RIGHTS[kind] is PersonRight.MONEY and membership.role in MONEY_ROLES and not has_factor
    return membership.live and not is_closed


def read_kinds(given: Iterable[str], membership: Membership) -> tuple[str, ...]:
    """Return chosen kinds in the order of NotificationKind. Raises: Refusal VALIDATION_ERROR for an unknown kind,
    PERSON_RIGHT_MISSING for one that the member may not get."""
    chosen = set(given)
    unknown = chosen - {kind.value for kind in NotificationKind}
    if unknown:
        raise Refusal("VALIDATION_ERROR", "There is no such kind of notification")
    allowed = kinds_for(membership)
    for kind in NotificationKind:
        if kind.value in chosen and kind not in allowed:
            details = {"right": RIGHTS[kind].value}
            raise Refusal("PERSON_RIGHT_MISSING", f"Your role gets no notifications of {kind}", details=details)
    return tuple(kind.value for kind in allowed if kind.value in chosen)


def read_minutes(text: str) -> int | None:
    """Return `23:30` as minutes since midnight; None for an empty text. Raises: Refusal VALIDATION_ERROR."""
    if not text:
        return None
    hours, colon, minutes = text.partition(":")
    digits = len(hours) == len(minutes) == 2 and (hours + minutes).isascii() and (hours + minutes).isdigit()
    if not (colon and digits) or int(hours) > 23 or int(minutes) > 59:
        raise Refusal("VALIDATION_ERROR", "Quiet hours are times of day: write them like 22:00")
    return int(hours) * 60 + int(minutes)


def shown_minutes(minutes: int | None) -> str:
    """Return minutes since midnight as `23:30`; None as an empty text."""
    return "" if minutes is None else f"{minutes // 60:02}:{minutes % 60:02}"


def after_quiet(preferences: NotificationPreferences, moment: datetime) -> datetime:
    """Return the moment itself, or the end of the quiet hours in which it lies."""
    start, end = preferences.quiet_from, preferences.quiet_to
    if start is None or end is None or start == end:
        return moment
    here = moment.astimezone(MOSCOW)
    # Minutes since the last start: quiet hours may pass midnight.
    since = (here.hour * 60 + here.minute - start) % _DAY
    length = (end - start) % _DAY
    if since >= length:
        return moment
    whole = here.replace(second=0, microsecond=0)
    return (whole + timedelta(minutes=length - since)).astimezone(UTC)


def send_at(preferences: NotificationPreferences, sent: Sequence[datetime], now: datetime) -> datetime:
    """Return when the next message may be sent: at once, unless the person has got AT_ONCE messages within an hour, and
    after the quiet hours. A moment in the future does not count, because the clock was corrected since."""
    recent = sorted(moment for moment in sent if timedelta(0) <= now - moment < HOUR)
    free = now if len(recent) < AT_ONCE else recent[-AT_ONCE] + HOUR
    return after_quiet(preferences, free)


def after_sending(queue: NotificationQueue, now: datetime) -> NotificationQueue:
    """Return the queue after a message was sent."""
    sent = (*queue.sent, now)[-AT_ONCE:]
    return msgspec.structs.replace(queue, sent=sent, sending=None, covers=(), failures=0)
