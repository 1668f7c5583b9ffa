"""Notifications at the dashboard: choosing them, unsubscribing from a letter, connecting Telegram."""

from urllib.parse import urlsplit

import httpx

from cambist.core.domain.people.notifications import NotificationPreferences, TelegramChat
from cambist.core.domain.people.roles import Role
from cambist.ports.messenger import ChatText
from tests.apps import TestApp
from tests.dashboard.browser import BASE, Browser, in_test_mode, joined
from tests.invariants import everything
from tests.people_kit import PASSWORD, Bot, Mailbox, with_bot, with_mail
from tests.refund_app import RefundApp, open_refund_app
from tests.tables import table

PAGE = "/settings/notifications"


async def link_of(mailbox: Mailbox) -> str:
    """Path and query of the link in the last letter."""
    link = mailbox.letters[-1].unsubscribe
    assert link is not None
    assert link.startswith(f"{BASE}/unsubscribe?")
    return link.removeprefix(BASE)


async def choices(app: TestApp) -> tuple[str, ...]:
    """What the only member with choices gets by e-mail."""
    [stored] = await everything(app.ports, NotificationPreferences)
    email: tuple[str, ...] = stored.email
    return email


async def test_member_chooses_gets_a_mail_and_unsubscribes_by_its_link() -> None:
    async with open_refund_app() as merchant:
        app, mailbox = merchant.app, with_mail(merchant.app)
        support = await in_test_mode(await joined(app, Role.SUPPORT))
        await (await support.open("/profile")).open(PAGE)
        assert support.page.headings == ["Notifications"]
        assert "Daily sum" not in support.text
        assert "Payout sent" not in support.text
        await support.send(PAGE, email=["refund_done", "mismatch"], test="yes", quiet_from="", quiet_to="")
        support.sees("Saved")
        assert await choices(app) == ("refund_done", "mismatch")
        await merchant.completed()
        assert "is done" in mailbox.letters[-1].subject
        path = await link_of(mailbox)

        stranger = Browser(app)  # the mail program of the same person, without a sign-in
        for _ in range(2):
            await stranger.open(path)
            stranger.sees("Do you want no more notifications about Merchant by e-mail?")
        assert await choices(app)
        await stranger.send("/unsubscribe")
        stranger.sees("You get no more notifications about Merchant by e-mail.")
        assert await choices(app) == ()
        count = len(mailbox.letters)
        await merchant.completed()
        assert len(mailbox.letters) == count
        await stranger.open(path)
        stranger.sees("You get no more notifications")


async def one_letter(merchant: RefundApp, mailbox: Mailbox) -> str:
    """The link of a letter to a viewer."""
    viewer = await in_test_mode(await joined(merchant.app, Role.VIEWER))
    await viewer.open(PAGE)
    await viewer.send(PAGE, email=["refund_done"], test="yes")
    await merchant.completed()
    return await link_of(mailbox)


async def test_mail_program_unsubscribes_by_one_click() -> None:
    """RFC 8058: a POST without cookies, hidden field or Origin, in either form encoding."""
    async with open_refund_app() as merchant:
        path = await one_letter(merchant, with_mail(merchant.app))
        async with httpx.AsyncClient(transport=merchant.app.http._transport, base_url=BASE) as program:
            for method in ("GET", "HEAD"):
                assert (await program.request(method, path)).status_code == 200
                assert await choices(merchant.app)
            files = {"List-Unsubscribe": (None, "One-Click")}
            answer = await program.post(path, files=files, headers={"Sec-Fetch-Site": "cross-site"})
            assert answer.status_code == 200
            assert await choices(merchant.app) == ()
            answer = await program.post(path, data={"List-Unsubscribe": "One-Click"})
            assert answer.status_code == 200


async def test_forged_link_unsubscribes_nobody() -> None:
    async with open_refund_app() as merchant:
        path = await one_letter(merchant, with_mail(merchant.app))
        owner = await joined(merchant.app, Role.OWNER)
        forged = [
            "/unsubscribe",
            "/unsubscribe?token=",
            path[:-1],
            f"{path}x",
            path.replace("email", "telegram"),
            path.replace("usr_", "usr_0"),
            f"/unsubscribe?token={'x' * 5000}",
            "/unsubscribe?token=%00",
            f"{path.partition('?')[0]}?t={path.partition('token=')[2]}",
        ]
        for each in forged:
            for browser in (Browser(merchant.app), owner):
                await browser.open(each)
                assert browser.answer.status_code == 404, each
                browser.sees("This link was used already, or is incomplete")
                await browser.post(each, {})
                assert browser.answer.status_code == 404, each
            await merchant.app.clock.advance(60)  # the limit of pages counts by the minute
        assert await choices(merchant.app) == ("refund_done",)


async def test_link_of_one_person_leaves_others_alone() -> None:
    async with open_refund_app() as merchant:
        mailbox = with_mail(merchant.app)
        path = await one_letter(merchant, mailbox)
        owner = await in_test_mode(await joined(merchant.app, Role.OWNER))
        await owner.open(PAGE)
        await owner.send(PAGE, email=["refund_done"], test="yes")
        await owner.post(path, {})
        found = {each.user_id: each.email for each in await everything(merchant.app.ports, NotificationPreferences)}
        assert sorted(found.values()) == [(), ("refund_done",)]


async def test_used_link_does_not_undo_a_later_choice() -> None:
    async with open_refund_app() as merchant:
        path = await one_letter(merchant, with_mail(merchant.app))
        browser = Browser(merchant.app)
        await browser.post(path, {})
        viewer = Browser(merchant.app)
        await viewer.open("/login")
        await viewer.send("/login", email="viewer@shop.example", password=PASSWORD)
        await viewer.open(PAGE)
        await viewer.send(PAGE, email=["refund_done"], test="yes")
        await browser.post(path, {})
        assert browser.answer.status_code == 404
        assert await choices(merchant.app) == ("refund_done",)


@table(
    "role, kinds", [(Role.VIEWER, ["daily_sum"]), (Role.SUPPORT, ["payout_sent"]), (Role.FINANCE, ["endpoint_dead"])]
)
async def test_form_with_a_kind_beyond_the_role_is_refused(app: TestApp, role: Role, kinds: list[str]) -> None:
    with_mail(app)
    person = await in_test_mode(await joined(app, role))
    await person.open(PAGE)
    await person.send(PAGE, email=kinds)
    assert person.answer.status_code == 403
    assert await everything(app.ports, NotificationPreferences) == []


async def test_wrong_quiet_hours_keep_what_was_typed(app: TestApp) -> None:
    with_mail(app)
    owner = await joined(app, Role.OWNER)
    await owner.open(PAGE)
    await owner.send(PAGE, email=["refund_done"], quiet_from="22:00", quiet_to="")
    assert owner.answer.status_code == 400
    form = next(each for each in owner.page.forms if urlsplit(each.action).path == PAGE)
    assert (form.values["quiet_from"], form.values["email"]) == (["22:00"], ["refund_done"])


async def test_other_site_cannot_change_the_choice(app: TestApp) -> None:
    with_mail(app)
    owner = await joined(app, Role.OWNER)
    await owner.open(PAGE)
    await owner.send(PAGE, {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, email=[])
    assert owner.answer.status_code == 403
    assert await everything(app.ports, NotificationPreferences) == []


class TestTelegram:
    async def code(self, app: TestApp) -> tuple[Browser, Bot, str]:
        """Return a viewer who has just requested a code."""
        bot = with_bot(app)
        viewer = await in_test_mode(await joined(app, Role.VIEWER))
        await viewer.open(PAGE)
        viewer.sees("Telegram is not connected yet")
        await viewer.send(f"{PAGE}/telegram")
        [link] = [each for each in viewer.page.links if each.startswith("https://t.me/")]
        return viewer, bot, link.partition("start=")[2]

    async def chat(self, app: TestApp) -> bytes | None:
        [stored] = await everything(app.ports, TelegramChat)
        chat: bytes | None = stored.chat
        return chat

    async def test_code_connects_the_chat_that_sends_it(self, app: TestApp) -> None:
        viewer, bot, code = await self.code(app)
        await app.work(10)
        assert await self.chat(app) is None
        bot.texts = [ChatText(chat="1", text="hello"), ChatText(chat="4711", text=f"/start {code}")]
        await app.work(10)
        [(chat, text)] = bot.sent
        assert (chat, "now gets the notifications" in text) == ("4711", True)
        stored = await self.chat(app)
        assert stored is not None
        assert b"4711" not in stored
        await viewer.open(PAGE)
        viewer.sees("Connected", "Disconnect Telegram")
        await viewer.send(f"{PAGE}/telegram/remove")
        assert await everything(app.ports, TelegramChat) == []

    async def test_code_works_once_and_for_a_quarter_hour(self, app: TestApp) -> None:
        _, bot, code = await self.code(app)
        bot.texts = [ChatText(chat="1", text=f"/start {code}"), ChatText(chat="2", text=f"/start {code}")]
        await app.work(10)
        assert [chat for chat, _ in bot.sent] == ["1"]

    async def test_expired_code_connects_nothing(self, app: TestApp) -> None:
        _, bot, code = await self.code(app)
        await app.work(901)
        bot.texts = [ChatText(chat="1", text=f"/start {code}")]
        await app.work(60)
        assert bot.sent == []
        assert await self.chat(app) is None
        assert bot.texts, "nobody asks the bot without an open code"

    @table("text", ["/start", "/start ", "/start x", "/start " + "0" * 32, "", "x" * 5000, "/start код"])
    async def test_guessed_code_connects_nothing(self, text: str) -> None:
        async with open_refund_app() as merchant:
            _, bot, _ = await self.code(merchant.app)
            bot.texts = [ChatText(chat="1", text=text)]
            await merchant.app.work(10)
            assert bot.sent == []

    async def test_page_without_a_bot_offers_no_telegram(self, app: TestApp) -> None:
        viewer = await joined(app, Role.VIEWER)
        await viewer.open(PAGE)
        assert "Telegram" not in viewer.text
        viewer.sees("The service has no e-mail connected")
        await viewer.post(f"{PAGE}/telegram", {"csrf": viewer.page.forms[0].values["csrf"][0]})
        assert viewer.answer.status_code == 409
