"""A browser without a screen: it follows links, reads forms, and sends them as a person would."""

from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import msgspec

from cambist.core.domain.people.roles import Role
from cambist.core.usecases.people.invitations import invite
from tests.apps import TestApp
from tests.people_kit import PASSWORD

BASE = "https://pay.example"


class Form(msgspec.Struct):
    """A form as the page shows it, with its values."""

    action: str
    method: str
    values: dict[str, list[str]]
    labels: dict[str, str]
    submit: str = ""


class Html(HTMLParser):
    """What people and programs read of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.headings: list[str] = []
        self.text = ""
        self._inside = ""
        self._select: str | None = None
        self._area: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append((tag, given))
        self._inside = tag
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given.get("href", ""))
        elif tag == "form":
            self.forms.append(Form(given.get("action", ""), given.get("method", "get"), {}, {}))
        elif tag == "input" and self.forms:
            self._input(given)
        elif tag == "select":
            self._select = given["name"]
        elif tag == "option" and self._select is not None:
            values = self.forms[-1].values
            if "selected" in given or self._select not in values:
                values[self._select] = [given["value"]]
        elif tag == "textarea":
            self._area = given["name"]
            self.forms[-1].values[given["name"]] = [""]
        elif tag == "button" and "name" in given:
            self.forms[-1].values[given["name"]] = [given["value"]]

    def _input(self, given: dict[str, str]) -> None:
        values, name = self.forms[-1].values, given["name"]
        if given.get("type") == "checkbox":
            if "checked" in given:
                values.setdefault(name, []).append(given.get("value", "on"))
        else:
            values[name] = [given.get("value", "")]

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = None
        elif tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.forms[-1].values[self._area] = [data]
        elif self._inside == "h1" and data.strip():
            self.headings.append(data.strip())
        elif self._inside == "button" and self.forms and data.strip():
            self.forms[-1].submit = data.strip()
        self.text += data


class Browser:
    """One browser with its own cookies."""

    def __init__(self, app: TestApp) -> None:
        self.http = httpx.AsyncClient(
            transport=app.http._transport,
            base_url=BASE,
            headers={"Accept-Language": "en", "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"},
        )
        self.answer = httpx.Response(200)
        self.page = Html("")

    def _show(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.page = Html(answer.text)

    async def open(self, path: str) -> "Browser":
        """Open a page, following redirects."""
        self._show(await self.http.get(path, follow_redirects=True))
        return self

    async def send(self, action: str, sent: dict[str, str] | None = None, /, **values: Any) -> "Browser":
        """Fill in the form that leads to `action`, and send it. The page after it is open then."""
        form = next(each for each in self.page.forms if urlsplit(each.action).path == action and each.method == "post")
        return await self.post(form.action, {**form.values, **values}, sent)

    async def post(self, action: str, values: dict[str, Any], headers: dict[str, str] | None = None) -> "Browser":
        """Send values, and follow where the answer leads."""
        sent = {"Origin": BASE, "Sec-Fetch-Site": "same-origin", **(headers or {})}
        answer = await self.http.post(action, data=values, headers={k: v for k, v in sent.items() if v})
        while answer.status_code == 303:
            answer = await self.http.get(urljoin(BASE, answer.headers["location"]))
        self._show(answer)
        return self

    @property
    def path(self) -> str:
        return self.answer.url.path

    @property
    def text(self) -> str:
        return " ".join(self.page.text.split())

    def sees(self, *words: str) -> None:
        """Check that the page contains these words."""
        for word in words:
            assert word in self.text, f"{word!r} is not in: {self.text[:1500]}"


async def joined(app: TestApp, role: Role, *, email: str | None = None, **more: Any) -> Browser:
    """Return the browser of a person who has just accepted an invitation, in live mode if allowed."""
    made = await invite(app.ports, app.account.account_id, email or f"{role}@shop.example", role, language="en", **more)
    browser = Browser(app)
    await browser.open(made.link.removeprefix(BASE))
    await browser.send("/invite", password=PASSWORD)
    assert browser.path == "/home", browser.text
    return browser


async def in_test_mode(browser: Browser) -> Browser:
    """Switch the person to test mode."""
    if "Switch to test" in browser.text:
        await browser.send("/switch")
    return browser
