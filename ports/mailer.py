"""The port that sends letters to people by e-mail."""

from typing import Protocol, runtime_checkable

import msgspec


class MailMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One letter. A repeat keeps its id, so that mailboxes show it once."""

    id: str
    to: str
    subject: str
    text: str
    unsubscribe: str | None = None
    """Address that ends further such letters by one click (RFC 8058); None: the letter is not one of a list."""

    def __repr__(self) -> str:
        return f"MailMessage(id={self.id!r}, ***)"


@runtime_checkable
class Mailer(Protocol):
    """Sends letters, one recipient each."""

    async def send(self, message: MailMessage, /) -> None:
        """Send a letter. Raises: Refused when the address or the letter is rejected for good; Unavailable;
        OutcomeUnknown when the server may have it; NotConfigured."""
        ...
