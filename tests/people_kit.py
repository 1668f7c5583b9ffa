"""People for tests of the dashboard: invited, signed in, and a mailbox."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.people.people import User
from cambist.core.domain.people.roles import Role
from cambist.core.usecases.people.invitations import accept_invitation, invite
from cambist.core.usecases.people.sessions import Actor, Device, find_actor, start_session
from cambist.ports.bundle import Ports
from cambist.ports.mailer import MailMessage
from cambist.ports.messenger import ChatText
from tests.apps import TestApp

PASSWORD = "correct horse battery staple"


class Mailbox:
    """A Mailer that keeps its letters."""

    def __init__(self, *faults: Exception) -> None:
        self.letters: list[MailMessage] = []
        self.faults = list(faults)

    async def send(self, message: MailMessage) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.letters.append(message)


def with_mail(app: TestApp, *faults: Exception) -> Mailbox:
    """Connect e-mail to the service, and return the mailbox of everybody."""
    mailbox = Mailbox(*faults)
    app.connect(mailer=mailbox)
    return mailbox


class Bot:
    """A Messenger that records its messages, and returns the texts that a test sets."""

    def __init__(self, *faults: Exception) -> None:
        self.sent: list[tuple[str, str]] = []
        self.texts: list[ChatText] = []
        self.faults = list(faults)

    async def address(self, code: str) -> str:
        return f"https://t.me/cambist_bot?start={code}"

    async def send(self, chat: str, text: str) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.sent.append((chat, text))

    async def received(self) -> list[ChatText]:
        texts, self.texts = self.texts, []
        return texts


def with_bot(app: TestApp, *faults: Exception) -> Bot:
    """Connect a bot to the service."""
    bot = Bot(*faults)
    app.connect(messenger=bot)
    return bot


def token_of(link: str) -> str:
    return parse_qs(urlsplit(link).query)["token"][0]


async def joined(
    ports: Ports, account_id: str, role: Role = Role.OWNER, *, email: str | None = None, **more: Any
) -> User:
    """A person who accepted an invitation."""
    new = await invite(ports, account_id, email or f"{role}@shop.example", role, language="en", **more)
    return await accept_invitation(ports, token_of(new.link), PASSWORD, "en")


async def signed_in(
    ports: Ports, user: User, *, mode: Mode = Mode.TEST, account_id: str | None = None, **more: Any
) -> tuple[Actor, str]:
    """The person with a new session, and its token."""
    new = await start_session(
        ports, user.id, method="password", mode=mode, account_id=account_id, device=Device(name="Firefox"), **more
    )
    actor = await find_actor(ports, new.token)
    assert actor is not None
    return actor, new.token


async def person(app: TestApp, role: Role = Role.OWNER, *, mode: Mode = Mode.TEST, **more: Any) -> Actor:
    """A signed-in person of the app's account."""
    user = await joined(app.ports, app.account.account_id, role, **more)
    return (await signed_in(app.ports, user, mode=mode))[0]
