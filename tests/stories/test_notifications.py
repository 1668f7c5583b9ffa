"""A person of a shop is notified by a real service, with a mail server and a Telegram bot that answer as real ones
(docs/dashboard.md "Notifications")."""

from contextlib import AsyncExitStack
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit
from uuid import uuid4

import httpx
import pytest

from cambist.core.domain.people.roles import Role
from cambist.core.usecases.accounts.accounts import set_settings
from cambist.core.usecases.people.invitations import invite
from cambist.testing import FakeProvider
from tests.dashboard.browser import Html
from tests.people_kit import PASSWORD, token_of
from tests.providers.test_mail_alarms import serving
from tests.providers.test_telegram_chats import TOKEN, BotApi
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import eventually, installation

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:aiosmtpd.*")

PAGE = "/settings/notifications"


class Person:
    """A browser over plain HTTP on this machine, where programs' cookie jars keep no secure cookies."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._cookies: dict[str, str] = {}
        self.page = Html("")

    async def _show(self, method: str, path: str, **more: Any) -> None:
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        answer = await self._client.request(method, path, headers={"Cookie": cookies, "Accept-Language": "en"}, **more)
        for each in answer.headers.get_list("set-cookie"):
            self._cookies.update({name: morsel.value for name, morsel in SimpleCookie(each).items()})
        if answer.status_code == 303:
            await self._show("GET", urljoin(path, answer.headers["location"]))
        else:
            assert answer.status_code == 200, answer.text
            self.page = Html(answer.text)

    async def open(self, path: str) -> None:
        await self._show("GET", path)

    async def send(self, action: str, **values: Any) -> None:
        """Fill in the form that leads to `action`, and send it."""
        form = next(each for each in self.page.forms if urlsplit(each.action).path == action and each.method == "post")
        await self._show("POST", form.action, data={**form.values, **values})


async def refund(shop: Merchant) -> str:
    """The id of a refund of a new payment, which the bank then does."""
    payment = await shop.paid()
    answer = await shop.ask("POST", "/refunds", key=str(uuid4()), body={"payment_id": payment["id"]})
    assert answer.status == 201, answer.text
    refund_id: str = answer.json["id"]
    return refund_id


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings of a database without a schema. Not async, because Postgres makes it in an event loop of its own."""
    return {"database_url": request.getfixturevalue("postgres_database")} if request.param == "postgres" else {}


async def test_person_connects_telegram_gets_both_messages_and_leaves_one(
    tmp_path: Path, database: dict[str, str]
) -> None:
    async with AsyncExitStack() as stack:
        mail = await stack.enter_async_context(serving(None))
        provider = await stack.enter_async_context(FakeProvider())
        bot = BotApi(provider)
        settings = {
            "alarms": "email",
            "email_host": "127.0.0.1",
            "email_port": str(mail.port),
            "email_tls": "off",
            "email_from": "cambist@pay.example",
            "email_to": "ops@ops.example",
            "alarm_backup_hours": "0",
            "notifications_telegram_token": TOKEN,
            "notifications_telegram_url": provider.url,
        }
        place = stack.enter_context(installation(tmp_path, **settings, **database))
        await place.migrate()
        account = await place.account()
        async with place.app() as ports:
            await set_settings(ports, account.account_id, {"refunds": "true"})
            new = await invite(ports, account.account_id, "anna@shop.example", Role.SUPPORT, live=False, language="en")
        service, base = place.serve()
        shop = await stack.enter_async_context(merchant(base, account.test))
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=base))

        anna = Person(client)
        await anna.open(f"/invite?token={token_of(new.link)}")
        await anna.send("/invite", password=PASSWORD)
        await anna.open(PAGE)
        await anna.send(PAGE, email=["refund_done"], telegram=["refund_done"], test="yes")
        await anna.open(PAGE)
        await anna.send(f"{PAGE}/telegram")
        [link] = [each for each in anna.page.links if each.startswith("https://t.me/cambist_bot?start=")]
        bot.write(f"/start {link.partition('start=')[2]}")

        async def texts(number: int) -> bool:
            return len(bot.sent) == number

        await eventually(lambda: texts(1))
        assert "now gets the notifications" in bot.sent[0]["text"]

        first = await refund(shop)

        def letters() -> list[Any]:
            return [
                letter for to, letter in mail.letters if to == ["anna@shop.example"] and "Refund" in letter["Subject"]
            ]

        async def is_sent() -> bool:
            return len(letters()) == 1 and len(bot.sent) == 2

        await eventually(is_sent)
        [letter] = letters()
        assert first in letter.get_content()
        assert first in bot.sent[1]["text"]
        address = str(letter["List-Unsubscribe"]).strip("<>")
        assert letter["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        assert (await client.get(address)).status_code == 200
        assert (await client.post(address, data={"List-Unsubscribe": "One-Click"})).status_code == 200

        second = await refund(shop)
        await eventually(lambda: texts(3))
        assert second in bot.sent[2]["text"]
        assert len(letters()) == 1
        assert service.terminate() == 0, service.err
        assert TOKEN not in service.out + service.err
        assert "anna@shop.example" not in service.out + service.err
