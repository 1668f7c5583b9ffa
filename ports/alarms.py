"""Alarms: notify operators, and merchants who left an address, when a problem begins and ends (docs/alarms.md)."""

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Protocol, runtime_checkable

import msgspec


class AlarmLine(msgspec.Struct, frozen=True, kw_only=True):
    """One problem as a channel shows it. Its text contains no amounts and no personal data."""

    id: str
    """Constant while the problem lasts, and the same in every process."""
    kind: str
    """`gateway`, `ledger`, `payout`, …"""
    text: str
    urgent: bool = False
    """It cannot wait until morning."""
    since: datetime | None = None


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """A message: problems that began, ended, or still continue since earlier messages."""

    id: str
    """Id of the message; a retry after an unknown outcome sends the same id."""
    at: datetime
    place: str
    """Base URL of the installation that sends the message."""
    begun: tuple[AlarmLine, ...] = ()
    over: tuple[AlarmLine, ...] = ()
    going_on: tuple[AlarmLine, ...] = ()
    silent: bool = False
    """The message must not wake anybody."""
    is_test: bool = False
    for_merchant: bool = False
    """The message goes to a merchant: it is about the merchant's own receiver, and omits actions that only operators
    have."""

    @property
    def is_urgent(self) -> bool:
        return any(line.urgent for line in self.begun)


class Alarms(Protocol):
    """A channel that notifies operators."""

    @property
    def name(self) -> str:
        """Name stored with the alarms sent through the channel: it must never change."""
        ...

    @property
    def mirrors(self) -> bool:
        """Whether the channel wants every current problem at each check, once a minute, because it groups, silences and
        expires them itself (an Alertmanager). Other channels get only changes, gathered into digests."""
        ...

    async def tell(self, alarm: Alarm) -> None:
        """Send the alarm to the operators.

        Raises: Refused, NotConfigured, Unavailable (with `retry_after` if the channel gives one), when it certainly did
        not arrive; OutcomeUnknown when it may have arrived: the caller then sends the same alarm again.
        """
        ...


@runtime_checkable
class TellsMerchants(Alarms, Protocol):
    """A channel that also reaches merchants, by the address in the account's setting `alarm_email`."""

    async def tell_merchant(self, address: str, alarm: Alarm) -> None:
        """Send the alarm to this address. Raises: as `tell`."""
        ...


class QuietHours(msgspec.Struct, frozen=True, kw_only=True):
    """Daily period in which only urgent alarms are sent: minutes since midnight, `offset` minutes from UTC."""

    start: int
    end: int
    offset: int = 0

    def covers(self, moment: datetime) -> bool:
        """Return whether the moment lies within the period."""
        local = moment.astimezone(timezone(timedelta(minutes=self.offset)))
        minute = local.hour * 60 + local.minute
        if self.start <= self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def __str__(self) -> str:
        """Format the period as in the setting."""
        start, end, offset = (f"{each // 60:02}:{each % 60:02}" for each in (self.start, self.end, abs(self.offset)))
        return f"{start}-{end}{'-' if self.offset < 0 else '+'}{offset}"


class AlarmChannels(msgspec.Struct, frozen=True, kw_only=True):
    """Alarm channels of an installation by name, and when to use them."""

    channels: Mapping[str, Alarms] = msgspec.field(default_factory=dict)
    quiet: QuietHours | None = None
    gathering: timedelta = timedelta(minutes=15)
    """Shortest time between two messages, unless something urgent begins or ends."""
    backup_age: timedelta | None = timedelta(hours=30)
    """Largest age of the last backup; None: backups are not watched."""
