"""Texts of merchants and payers that are meant to be executed where they are shown: pages, drawings, letters, chats,
CSV and XLSX (docs/security.md)."""

import csv
import email
import email.policy
import io
import re
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from cambist.adapters.alarms.mail import MailAlarms
from cambist.adapters.alarms.telegram import message_to
from cambist.adapters.alarms.texts import plain
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.errors import Refusal
from cambist.core.domain.people.notification_texts import message_of
from cambist.core.domain.people.notifications import Notification
from cambist.core.domain.people.roles import Role
from cambist.core.usecases.accounts.accounts import create_account
from cambist.core.usecases.accounts.shops import create_shop
from cambist.core.usecases.people.invitations import invite
from cambist.ports.mailer import MailMessage
from tests.apps import TestApp
from tests.dashboard.browser import BASE, Browser, Html, in_test_mode, joined
from tests.people_kit import with_mail

HARMLESS = "harmless"
HOSTILE = (
    "<script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "'\"><img src=x onerror=alert(1)>",
    "</text></svg><script>alert(1)</script>",
    "]]><script>alert(1)</script>",
    "<!-- --!><script>alert(1)</script>",
    "&lt;b&gt;&#60;script&#62;",
    "javascript:alert(1)",
    "{{7*7}}{% for x in y %}",
    "{0.__class__}{account}%s%(x)s${x}",
    "=HYPERLINK(1)",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    " =1+1",
    '";=1+1',
    "a;=1+1",
    "\uff1d1+1",
    "<b>bold</b> *bold* _it_ [x](https://evil.example)",
    "\u00ad\u200bx",
    "\U0001f600\u0301" * 20,
)
"""Texts that every field takes."""
LINES = (
    "a\r\nBcc: evil@evil.example",
    "a\nContent-Type: text/html\n\n<b>x</b>",
    "a\u2028\u2029b\x85c",
    "a\x1b[31mb\x07",
)
"""Texts of several lines, or with control characters."""
START = re.compile('[\t\r\n "]*[=+\\-@\uff1d\uff0b\uff0d\uff20]')


def structure(page: Html) -> list[tuple[str, tuple[str, ...]]]:
    """The elements of a page with the names of their attributes, but without their values."""
    return [(tag, tuple(sorted(given))) for tag, given in page.tags]


async def shown(app: TestApp, text: str, email_address: str) -> tuple[Browser, str]:
    """An account whose shop, payments and note have this text, with its owner."""
    account = await create_account(app.ports, text[:120])
    app.account = account
    try:
        shop = (await create_shop(app.ports, account.account_id, text[:120], "0.05")).id
    except Refusal:
        shop = account.default_shop_id
    payment = await app.created({"external_id": text, "description": text, "shop_id": shop})
    await app.simulate(payment["id"], outcome="paid")
    owner = await in_test_mode(await joined(app, Role.OWNER, email=email_address))
    return owner, payment["id"]


async def test_pages_have_the_same_elements_whatever_the_texts_are(app: TestApp) -> None:
    expected = list[list[tuple[str, tuple[str, ...]]]]()
    for number, text in enumerate((HARMLESS, *HOSTILE)):
        await app.clock.advance(60)  # the limit of pages counts by the minute
        owner, payment = await shown(app, text, f"o{number}@shop.example")
        await owner.open(f"/payments/{payment}")
        await owner.send(f"/payments/{payment}/note", text=text)
        found = []
        paths = ("/home", "/home?period=7-days", "/payments", f"/payments/{payment}", "/shops", "/audit", "/profile")
        for path in (*paths, app.ports.urls.payment_page(payment).removeprefix(BASE)):
            await owner.open(path)
            assert owner.answer.status_code == 200, (path, text)
            found.append(structure(owner.page))
        if text == HARMLESS:
            expected = found
        assert found == expected, text
        # A search finds other things by other texts, but neither script nor drawing.
        await owner.open(f"/payments?q={quote(text)}")
        tags = [
            (tag, given) for tag, given in owner.page.tags if tag in ("script", "img", "svg", "iframe", "b", "text")
        ]
        assert [tag for tag, _ in tags] == ["script", "img"], text
        assert not [name for _, given in owner.page.tags for name in given if name.startswith("on")], text


def parsed(message: bytes) -> Any:
    return email.message_from_bytes(message, policy=email.policy.default)


class Post(MailAlarms):
    """The adapter of e-mail, which keeps what it would send."""

    def __init__(self) -> None:
        super().__init__(host="mail.example", port=25, tls="off", sender="pay@shop.example", recipients=())
        self.sent: list[bytes] = []

    async def _deliver(self, message: bytes, recipients: Sequence[str]) -> None:
        self.sent.append(message)


HEADERS = {
    *("From", "To", "Subject", "Message-ID", "Auto-Submitted", "Date"),
    *("Content-Type", "Content-Transfer-Encoding", "MIME-Version"),
}


async def test_letter_has_our_headers_and_one_plain_text(app: TestApp) -> None:
    post = Post()
    for text in (*HOSTILE, *LINES):
        await post.send(MailMessage(id="ltr_1", to="olga@shop.example", subject=text, text=f"{text}\n"))
        message = parsed(post.sent[-1])
        assert set(message.keys()) == HEADERS, text
        assert message.get_content_type() == "text/plain"
        assert str(message["Subject"]).split() == plain(text).split(), text
        assert message["To"] == "olga@shop.example"
        assert message.get_content().split() == text.split(), text
    mailbox = with_mail(app)
    account = await create_account(app.ports, HOSTILE[0])
    await invite(app.ports, account.account_id, "olga@shop.example", Role.VIEWER, language="en")
    await app.work(1)
    [letter] = mailbox.letters
    assert HOSTILE[0] in letter.text


def test_notification_and_chat_carry_texts_as_they_are() -> None:
    for text in (*HOSTILE, *LINES):
        row = Notification(
            id="n",
            recipient="r",
            kind="mismatch",
            mode=Mode.TEST,
            object_id="pay_1",
            at=datetime(2026, 1, 1, tzinfo=UTC),
            details={"amount": text, "object": text, "reason": text},
        )
        for language in ("en", "ru"):
            subject, body = message_of(language, text, [row], settings="https://a.example", stop="https://b.example")
            assert text in subject
            assert body.count(text) >= 2, text
            said = message_to("1", f"{subject}\n\n{body}")
            assert "parse_mode" not in said, "Telegram would read the text as markup"
            assert text in said["text"]


async def test_files_have_no_formula_in_any_cell(app: TestApp) -> None:
    written = [each for each in (*HOSTILE, *LINES) if (await app.create({"external_id": each})).status_code == 201]
    assert set(HOSTILE) <= set(written)
    owner = await in_test_mode(await joined(app, Role.OWNER))
    api = (await app.get("/payments?format=csv")).text
    files = dict[str, bytes]()
    for kind in ("csv", "xlsx"):
        await owner.open("/payments")
        await owner.send("/exports", format=kind)
        await app.work(3)
        await owner.open("/exports")
        link = next(each for each in owner.page.links if each.endswith("/file"))
        files[kind] = (await owner.http.get(link)).content
    for text in (api, files["csv"].decode("utf-8-sig")):
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert {row["external_id"].replace("'", "") for row in rows} == {each.replace("'", "") for each in written}
        for row in rows:
            for part in re.split("[;\t\r\n]", row["external_id"]):
                assert not START.match(part), row["external_id"]
    with zipfile.ZipFile(io.BytesIO(files["xlsx"])) as book:
        tree = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    cells = {"".join(cell.itertext()): cell.get("t") for cell in tree.iter() if cell.tag.endswith("}c")}
    assert not [each for each in tree.iter() if each.tag.endswith(("}f", "}hyperlink"))]
    for text in HOSTILE:
        assert cells[text] == "inlineStr", text
