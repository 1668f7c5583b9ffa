"""Alarms and letters by e-mail, over SMTP with TLS. A message that is sent again keeps its Message-ID, so that
mailboxes show it once."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime
from typing import Any

import aiosmtplib
from aiosmtplib import SMTP

from ...ports.alarms import Alarm
from ...ports.faults import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from ...ports.mailer import MailMessage
from .texts import body_of, plain, subject_of

LONGEST = 20_000
"""Maximum characters of a message."""
LIMIT = 18.0
"""Seconds for a whole message, less than the app allows for a call."""
_QUIT = 2.0
_PERMANENT = 500

_LINKS = "List-Unsubscribe"

log = logging.getLogger("cambist.alarms")


class _Policy(EmailPolicy):
    """The policy of SMTP, without folding of addresses of links."""

    def fold_binary(self, name: str, value: Any) -> bytes:
        # A long address would be folded into encoded words, in which mail programs find no link.
        return f"{name}: {value}\r\n".encode() if name == _LINKS else super().fold_binary(name, value)


_POLICY = _Policy(linesep="\r\n", raise_on_defect=False)


class MailAlarms:
    """Implement the ports Alarms, TellsMerchants and Mailer."""

    name = "email"
    mirrors = False

    def __init__(
        self,
        *,
        host: str,
        port: int,
        tls: str,
        sender: str,
        recipients: Sequence[str],
        user: str | None = None,
        password: str | None = None,
        context: ssl.SSLContext | None = None,
        limit: float = LIMIT,
    ) -> None:
        """`tls`: `starttls`, `tls` (from the first byte), or `off`. `context`: replaces the system's trust store.

        Raises: NotConfigured if a password would be sent unencrypted.
        """
        if tls == "off" and password is not None:
            raise NotConfigured("e-mail: CAMBIST_EMAIL_TLS=off sends no password")
        self._host, self._port, self._tls = host, port, tls
        self._sender, self._recipients = sender, tuple(recipients)
        self._user, self._password = user, password
        self._context = context
        self._limit = limit

    def __repr__(self) -> str:
        return "<MailAlarms>"

    async def tell(self, alarm: Alarm) -> None:
        """Send one message to all recipients. Raises: the same as the port."""
        await self._deliver(self._message(alarm, self._recipients), self._recipients)

    async def tell_merchant(self, address: str, alarm: Alarm) -> None:
        """Send a message to this address only. Raises: the same as the port."""
        await self._deliver(self._message(alarm, (address,)), (address,))

    async def send(self, message: MailMessage) -> None:
        """Send a letter to one person. Raises: the same as the port Mailer."""
        letter = self._new(message.id, (message.to,), plain(message.subject))
        letter["Date"] = format_datetime(datetime.now(UTC))
        if message.unsubscribe is not None:
            letter[_LINKS] = f"<{message.unsubscribe}>"
            letter["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        letter.set_content(message.text)
        await self._deliver(letter.as_bytes(), (message.to,))

    async def check(self) -> None:
        """Log in and disconnect. Raises: NotConfigured; Unavailable."""
        try:
            async with asyncio.timeout(self._limit), self._connected():
                pass
        except TimeoutError:
            raise Unavailable(f"e-mail: no answer within {self._limit:g} s") from None

    async def _deliver(self, message: bytes, recipients: Sequence[str]) -> None:
        lost: type[Fault] = Unavailable
        try:
            async with asyncio.timeout(self._limit), self._connected() as server:
                await self._address(server, recipients)
                # From here on the server may have accepted the message, even if its answer is lost.
                lost = OutcomeUnknown
                await server.data(message)
        except aiosmtplib.SMTPResponseException as error:
            raise _refusal("the message", error) from None
        except (aiosmtplib.SMTPException, OSError, TimeoutError, ValueError) as error:
            raise lost(f"e-mail: {type(error).__name__}") from None

    async def _address(self, server: SMTP, recipients: Sequence[str]) -> None:
        """Send the addresses. Raises: Refused or Unavailable if the server rejects the sender or all recipients."""
        try:
            await server.mail(self._sender)
        except aiosmtplib.SMTPResponseException as error:
            raise _refusal("the sender", error) from None
        refusals = []
        for recipient in recipients:
            try:
                await server.rcpt(recipient)
            except aiosmtplib.SMTPResponseException as error:
                refusals.append(_refusal("the recipient", error))
        if len(refusals) == len(recipients):
            raise refusals[0]
        if refusals:
            log.warning("%d of %d recipients of alarms are not taken: %s", len(refusals), len(recipients), refusals[0])

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[SMTP]:
        """Open a session, encrypted unless TLS is off, and log in. Raises: Unavailable, NotConfigured."""
        server = SMTP(
            hostname=self._host,
            port=self._port,
            use_tls=self._tls == "tls",
            start_tls=False,  # started below, to detect a server that does not offer it
            tls_context=None if self._tls == "off" else self._context or _modern_tls(),
            # By default the library resolves the machine's own name, which can take long.
            local_hostname=self._sender.rpartition("@")[2],
            timeout=self._limit,
        )
        try:
            try:
                await server.connect()
                await server.ehlo()
                if self._tls == "starttls":
                    _require(server, "starttls")
                    await server.starttls()
                    await server.ehlo()
                if self._user is not None and self._password is not None:
                    _require(server, "auth")
                    await server.login(self._user, self._password)
            except aiosmtplib.SMTPAuthenticationError as error:
                fault = NotConfigured if error.code >= _PERMANENT else Unavailable
                raise fault(f"e-mail: user and password are not taken ({error.code})") from None
            except (aiosmtplib.SMTPException, OSError, ValueError) as error:
                raise Unavailable(f"e-mail: no session ({type(error).__name__})") from None
            yield server
            await _leave(server)
        finally:
            server.close()

    def _message(self, alarm: Alarm, recipients: Sequence[str]) -> bytes:
        # Our texts are ASCII. In encoded words the library sometimes loses a space.
        subject = plain(subject_of(alarm)).encode("ascii", "replace").decode()
        message = self._new(alarm.id, recipients, subject)
        message["Date"] = format_datetime(alarm.at)
        if alarm.is_urgent:
            message["Importance"] = "high"
        message.set_content(body_of(alarm, LONGEST))
        return message.as_bytes()

    def _new(self, message_id: str, recipients: Sequence[str], subject: str) -> EmailMessage:
        message = EmailMessage(policy=_POLICY)
        message["From"] = self._sender
        message["To"] = ", ".join(recipients)
        message["Subject"] = subject
        message["Message-ID"] = f"<{message_id}@{self._sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"
        return message


def _require(server: SMTP, extension: str) -> None:
    """Raises: NotConfigured if the server does not offer the extension."""
    if not server.supports_extension(extension):
        raise NotConfigured(f"e-mail: the server offers no {extension.upper()}")


async def _leave(server: SMTP) -> None:
    """End the session. The server has the message, so errors no longer matter."""
    try:
        await server.quit(timeout=_QUIT)
    except (aiosmtplib.SMTPException, OSError, TimeoutError):
        log.debug("a session of SMTP ended without a word")


def _refusal(what: str, error: aiosmtplib.SMTPResponseException) -> Fault:
    """Convert a server's status to a fault, without its text, which may quote an address."""
    told = f"e-mail: {what} is not taken ({error.code})"
    return Refused(told) if error.code >= _PERMANENT else Unavailable(told)


def _modern_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
