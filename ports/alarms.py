"""Alarms: how operators, and merchants who left an address, are told of trouble and of its end (docs/alarms.md)."""

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Protocol, runtime_checkable

import msgspec


class AlarmLine(msgspec.Struct, frozen=True, kw_only=True):
    """One trouble as a channel tells it. Its text has no amount and nothing personal."""

    id: str
    """The same for as long as it lasts, from every process."""
    kind: str
    """`gateway`, `ledger`, `payout`, …"""
    text: str
    urgent: bool = False
    """It may not wait for the morning."""
    since: datetime | None = None


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """A message: what began, what is over, and what goes on since earlier ones."""

    id: str
    """Of the message; whoever sends it again, because nobody knows whether it arrived, sends the same."""
    at: datetime
    place: str
    """Which installation speaks: its base URL."""
    begun: tuple[AlarmLine, ...] = ()
    over: tuple[AlarmLine, ...] = ()
    going_on: tuple[AlarmLine, ...] = ()
    silent: bool = False
    """It is to wake nobody."""
    is_test: bool = False
    for_merchant: bool = False
    """It goes to a merchant: of his own receiver, and without what only operators can do."""

    @property
    def is_urgent(self) -> bool:
        return any(line.urgent for line in self.begun)


class Alarms(Protocol):
    """A channel by which operators are told."""

    @property
    def name(self) -> str:
        """Stored with what it was told: never change it."""
        ...

    @property
    def mirrors(self) -> bool:
        """It wants all that goes on at every look, once a minute, because it groups, silences and forgets by itself (an
        Alertmanager). Others get news alone, gathered into digests."""
        ...

    async def tell(self, alarm: Alarm) -> None:
        """Send it to the operators.

        Raises: Refused, NotConfigured, Unavailable (with `retry_after` where the channel says it), when it certainly
        did not arrive; OutcomeUnknown when it may have: then the same alarm is sent again.
        """
        ...


@runtime_checkable
class TellsMerchants(Alarms, Protocol):
    """A channel that reaches merchants, too, by the address that they left (the account's setting `alarm_email`)."""

    async def tell_merchant(self, address: str, alarm: Alarm) -> None:
        """Send it to this address. Raises: as `tell`."""
        ...


class QuietHours(msgspec.Struct, frozen=True, kw_only=True):
    """From when to when of a day only what is urgent is told: minutes since midnight, `offset` minutes from UTC."""

    start: int
    end: int
    offset: int = 0

    def covers(self, moment: datetime) -> bool:
        """Whether the moment is within them."""
        local = moment.astimezone(timezone(timedelta(minutes=self.offset)))
        minute = local.hour * 60 + local.minute
        if self.start <= self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def __str__(self) -> str:
        """As the setting has it."""
        start, end, offset = (f"{each // 60:02}:{each % 60:02}" for each in (self.start, self.end, abs(self.offset)))
        return f"{start}-{end}{'-' if self.offset < 0 else '+'}{offset}"


class AlarmChannels(msgspec.Struct, frozen=True, kw_only=True):
    """The channels of an installation by name, and when they are used."""

    channels: Mapping[str, Alarms] = msgspec.field(default_factory=dict)
    quiet: QuietHours | None = None
    gathering: timedelta = timedelta(minutes=15)
    """How long after a message the next one comes at the earliest, unless something urgent begins or ends."""
    backup_age: timedelta | None = timedelta(hours=30)
    """How old the last backup may be; None: nobody watches."""
