"""Alarms by e-mail, to a real SMTP server (docs/alarms.md "E-mail")."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, cast

import msgspec
import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword

from cambist.adapters.alarms.mail import MailAlarms
from cambist.ports import Fault, NotConfigured, OutcomeUnknown, Refused, Unavailable
from cambist.ports.alarms import Alarm, AlarmLine
from cambist.ports.mailer import MailMessage
from tests.receivers import tls_pair

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
USER, PASSWORD = "cambist", "hunter2"
ALARM = Alarm(
    id="alarm_1",
    at=NOW,
    place="https://pay.example",
    begun=(AlarmLine(id="ledger", kind="ledger", text="ledger: сумма не сходится", urgent=True),),
)

# aiosmtpd asks for the name of its machine in an old way.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:aiosmtpd.*")


class Server:
    """A mail server that accepts everything, except commands with a scripted answer."""

    def __init__(self) -> None:
        self.port = 0
        self.letters: list[tuple[list[str], EmailMessage]] = []
        self.raw: list[bytes] = []
        self.says: dict[str, str] = {}
        self.hangs_up_after_data = False
        self.encrypted: list[bool] = []
        self.logins: list[bytes] = []

    async def handle_MAIL(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Any, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """The sender."""
        if "MAIL" in self.says:
            return self.says["MAIL"]
        self.encrypted.append(cast("Any", server.transport).get_extra_info("ssl_object") is not None)
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, _server: SMTP, _session: Any, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        """A recipient."""
        said = self.says.get(address, "250 OK")
        if said.startswith("2"):
            envelope.rcpt_tos.append(address)
        return said

    async def handle_DATA(self, server: SMTP, _session: Any, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        """The message."""
        if "DATA" not in self.says:
            self.raw.append(cast("bytes", envelope.content))
            message = message_from_bytes(self.raw[-1], policy=default)
            self.letters.append((list(envelope.rcpt_tos), message))
        if self.hangs_up_after_data:
            cast("Any", server.transport).abort()
        return self.says.get("DATA", "250 OK")

    def authenticate(self, *given: Any) -> AuthResult:
        """Record the login and check the credentials."""
        credentials: LoginPassword = given[-1]
        self.logins.append(credentials.login)
        return AuthResult(success=credentials == LoginPassword(USER.encode(), PASSWORD.encode()), handled=False)


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None, *, from_the_start: bool = False) -> AsyncIterator[Server]:
    """With `tls` it wants encryption before anything else, and a login; `from_the_start` it is encrypted, and wants
    none."""
    mail = Server()
    loop = asyncio.get_running_loop()

    def session() -> SMTP:
        return SMTP(
            mail,
            hostname="mail.example",
            loop=loop,
            tls_context=None if from_the_start else tls,
            require_starttls=tls is not None and not from_the_start,
            auth_required=tls is not None and not from_the_start,
            auth_require_tls=tls is not None and not from_the_start,
            authenticator=mail.authenticate,
        )

    listening = await loop.create_server(session, "127.0.0.1", 0, ssl=tls if from_the_start else None)
    mail.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield mail


@pytest.fixture(scope="module")
def pair() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return tls_pair("localhost")


@pytest.fixture
async def mail(pair: tuple[ssl.SSLContext, ssl.SSLContext]) -> AsyncIterator[Server]:
    async with serving(pair[0]) as opened:
        yield opened


Sender = Callable[..., MailAlarms]


@pytest.fixture
def sender(mail: Server, pair: tuple[ssl.SSLContext, ssl.SSLContext]) -> Sender:
    def make(**more: Any) -> MailAlarms:
        usual = {
            "host": "localhost",
            "port": mail.port,
            "tls": "starttls",
            "sender": "cambist@pay.example",
            "recipients": ("one@ops.example", "two@ops.example"),
            "user": USER,
            "password": PASSWORD,
            "context": pair[1],
        }
        return MailAlarms(**cast("Any", usual | more))

    return make


async def test_a_message_goes_encrypted_to_all_and_keeps_its_id(mail: Server, sender: Sender) -> None:
    await sender().tell(ALARM)
    await sender().tell(ALARM)
    assert mail.encrypted == [True, True]
    to, letter = mail.letters[0]
    assert to == ["one@ops.example", "two@ops.example"]
    assert letter["Message-ID"] == mail.letters[1][1]["Message-ID"] == "<alarm_1@pay.example>"
    assert letter["Subject"] == "[pay.example] URGENT, 1 new: ledger: ????? ?? ????????"
    assert (letter["Auto-Submitted"], letter["Importance"]) == ("auto-generated", "high")
    assert letter["Date"].datetime == NOW
    assert "! ledger: сумма не сходится" in letter.get_content()


async def test_merchant_gets_a_mail_of_its_own(mail: Server, sender: Sender) -> None:
    await sender().tell_merchant("dev@shop.example", ALARM)
    [(to, letter)] = mail.letters
    assert (to, letter["To"]) == (["dev@shop.example"], "dev@shop.example")


async def test_letter_of_a_list_can_be_unsubscribed_by_one_click(mail: Server, sender: Sender) -> None:
    link = f"https://pay.example/unsubscribe?token={'a' * 200}%3A{'b' * 60}"
    letter = MailMessage(id="ntf_1", to="o@shop.example", subject="Возврат " * 20, text="Готово", unsubscribe=link)
    await sender().send(letter)
    await sender().send(msgspec.structs.replace(letter, unsubscribe=None))
    (_, listed), (_, single) = mail.letters
    assert f"List-Unsubscribe: <{link}>\r\n".encode() in mail.raw[0]
    assert listed["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert listed["Subject"] == "Возврат " * 20
    assert (single["List-Unsubscribe"], single["List-Unsubscribe-Post"]) == (None, None)


async def test_tls_from_the_first_byte(pair: tuple[ssl.SSLContext, ssl.SSLContext], sender: Sender) -> None:
    async with serving(pair[0], from_the_start=True) as mail:
        await sender(port=mail.port, tls="tls", user=None, password=None).tell(ALARM)
        assert mail.encrypted == [True]


async def test_mail_needs_tls_unless_it_is_switched_off(sender: Sender) -> None:
    async with serving(None) as mail:
        with pytest.raises(NotConfigured, match="STARTTLS"):
            await sender(port=mail.port).tell(ALARM)
        assert (mail.logins, mail.letters) == ([], [])
        await sender(port=mail.port, tls="off", user=None, password=None).tell(ALARM)
        assert (mail.encrypted, len(mail.letters)) == ([False], 1)
        with pytest.raises(NotConfigured):
            sender(port=mail.port, tls="off")


async def test_a_server_that_is_another_is_not_trusted(sender: Sender) -> None:
    stranger, _ = tls_pair("localhost")
    async with serving(stranger) as mail:
        with pytest.raises(Unavailable):
            await sender(port=mail.port).tell(ALARM)
        assert mail.logins == []


async def test_rejected_password_is_reported_and_not_shown(mail: Server, sender: Sender) -> None:
    for ask in (sender(password="hunter3").check, lambda: sender(password="hunter3").tell(ALARM)):
        with pytest.raises(NotConfigured, match="535") as caught:
            await ask()
        assert "hunter" not in f"{caught.value!r} {sender()!r}"
    await sender().check()
    assert mail.letters == []


@pytest.mark.parametrize(
    ("command", "said", "fault"),
    [
        ("MAIL", "550 who are you, cambist@pay.example", Refused),
        ("MAIL", "451 later", Unavailable),
        ("DATA", "554 spam of cambist@pay.example", Refused),
        ("DATA", "452 full", Unavailable),
    ],
)
async def test_refused_mail_did_not_arrive(
    mail: Server, sender: Sender, command: str, said: str, fault: type[Fault]
) -> None:
    mail.says[command] = said
    with pytest.raises(fault) as caught:
        await sender().tell(ALARM)
    assert "cambist@" not in str(caught.value)


async def test_one_recipient_that_is_not_taken_keeps_it_from_no_other(
    mail: Server, sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    mail.says["one@ops.example"] = "550 gone"
    await sender().tell(ALARM)
    assert mail.letters[0][0] == ["two@ops.example"]
    [told] = [record.getMessage() for record in caplog.records if record.name.startswith("cambist")]
    assert "1 of 2 recipients" in told
    assert "ops.example" not in told
    mail.says["two@ops.example"] = "550 gone"
    with pytest.raises(Refused):
        await sender().tell(ALARM)


async def test_a_server_that_hangs_up_after_the_message_may_have_taken_it(mail: Server, sender: Sender) -> None:
    mail.hangs_up_after_data = True
    with pytest.raises(OutcomeUnknown):
        await sender().tell(ALARM)


async def test_no_server_and_a_silent_one_got_nothing(sender: Sender) -> None:
    async with serving(None) as mail:
        port = mail.port
    with pytest.raises(Unavailable):
        await sender(port=port).tell(ALARM)
    held = asyncio.Event()

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await held.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        with pytest.raises(Unavailable):
            await sender(port=server.sockets[0].getsockname()[1], limit=0.05).check()
        held.set()
