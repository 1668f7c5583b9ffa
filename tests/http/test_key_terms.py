"""Keys with fewer rights, address lists, and when a key was last used (docs/concepts.md "Keys with fewer rights")."""

import asyncio
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from cambist.core.domain.accounts.accounts import KeyUse, Mode
from cambist.core.domain.accounts.key_terms import KeyTerms, Right, key_name, read_addresses, read_rights
from cambist.core.domain.errors import Refusal
from cambist.core.usecases.accounts import keys as usecases
from cambist.core.usecases.accounts.access import authenticate
from cambist.core.usecases.accounts.accounts import KeyPair, get_account
from cambist.core.usecases.accounts.key_uses import KeyUses
from cambist.frontends.http.openapi.openapi import openapi_document
from cambist.frontends.http.operations import OPERATIONS
from cambist.frontends.server.app import create_app
from cambist.frontends.telemetry.requests import RequestWatch
from tests.apps import TestApp, open_test_app
from tests.invariants import everything
from tests.tables import table

KEYED = [each for each in OPERATIONS if each.keyed]
SECONDS_UNTIL_KNOWN = 3


async def made(app: TestApp, name: str = "report", mode: Mode = Mode.TEST, **terms: Any) -> KeyPair:
    return (await usecases.create_key(app.ports, app.account.account_id, mode, name, **terms)).pair


async def ask(app: TestApp, pair: KeyPair, method: str, path: str, **more: Any) -> httpx.Response:
    headers = {"X-Api-Key": pair.api_key, "X-Api-Secret": pair.api_secret, "Idempotency-Key": str(uuid4())}
    return await app.http.request(method, path, headers={**headers, **more.pop("headers", {})}, **more)


def code(response: httpx.Response) -> str | None:
    body = response.json() if response.content else {}
    return body["error"]["code"] if isinstance(body, dict) and "error" in body else None


@pytest.mark.parametrize("right", Right)
async def test_a_key_does_what_its_right_is_for_and_nothing_else(app: TestApp, right: Right) -> None:
    """Try every operation of the table with a key of one right. An operation refused for another reason is refused by
    its own rules."""
    pair = await made(app, rights=[right])
    for number, operation in enumerate(KEYED):
        if number % 40 == 39:
            await app.clock.advance(60)  # the limit of a minute
        path = operation.path.replace("{", "").replace("}", "")
        response = await ask(app, pair, operation.method.upper(), path, json={})
        assert response.status_code != 429
        if operation.needs is right:
            assert code(response) != "KEY_RIGHT_MISSING", operation.id
        else:
            assert (response.status_code, code(response)) == (403, "KEY_RIGHT_MISSING"), operation.id
            assert response.json()["error"]["details"] == {"right": operation.needs.value}


def test_each_operation_says_which_right_it_needs() -> None:
    """In its row, and so in the OpenAPI document; reads need `read`, and the sandbox's other calls `sandbox`."""
    paths = openapi_document("https://pay.example")["paths"]
    for operation in KEYED:
        told = paths[operation.path][operation.method]
        assert told["x-required-right"] == operation.needs
        assert operation.needs.value in told["description"]
        assert {"KEY_RIGHT_MISSING", "KEY_ADDRESS_NOT_ALLOWED"} <= set(str(told["responses"]["403"]).split("`"))
        if operation.method == "get":
            assert operation.needs is Right.READ
        elif operation.is_sandbox:
            assert operation.needs is Right.SANDBOX
    assert {operation.needs for operation in KEYED} == set(Right), "a right that nothing needs"


async def test_a_key_without_terms_has_all_rights(app: TestApp) -> None:
    pair = await made(app)
    assert (await ask(app, pair, "GET", "/api/v1/balance")).status_code == 200
    assert (await ask(app, pair, "POST", "/api/v1/payments", json={"amount_rub": "100.00"})).status_code == 201


async def test_a_key_is_used_from_its_addresses_only(tmp_path: Path) -> None:
    """The key's addresses match those that limits count by: behind a trusted proxy the client's own, IPv6 in full."""
    async with open_test_app(data_dir=tmp_path) as app:
        pair = await made(app, addresses=["203.0.113.0/24", "2001:db8::7"])
        trusted = read_addresses(["10.0.0.0/8"])
        asgi: Any = create_app(app.ports, trusted_proxies=[ip_network(each) for each in trusted])

        async def status(peer: str, forwarded: str | None = None) -> int:
            transport = httpx.ASGITransport(asgi, client=(peer, 1))
            headers = {"X-Api-Key": pair.api_key, "X-Api-Secret": pair.api_secret}
            if forwarded is not None:
                headers["X-Forwarded-For"] = forwarded
            async with httpx.AsyncClient(transport=transport, base_url="https://pay.example") as client:
                response = await client.get("/api/v1/balance", headers=headers)
            assert response.status_code == 200 or code(response) == "KEY_ADDRESS_NOT_ALLOWED"
            return response.status_code

        assert await status("203.0.113.9") == 200
        assert await status("::ffff:203.0.113.9") == 200
        assert await status("2001:db8::7") == 200
        assert await status("2001:db8::8") == 403, "not the /64 that limits count by"
        assert await status("198.51.100.1") == 403
        assert await status("198.51.100.1", "203.0.113.9") == 403, "nobody's word that is not trusted"
        assert await status("10.0.0.1", "203.0.113.9") == 200
        assert await status("10.0.0.1", "203.0.113.9, 198.51.100.1") == 403
        assert await status("garbage") == 403


async def test_a_wrong_secret_learns_nothing_of_a_keys_terms(app: TestApp) -> None:
    pair = await made(app, rights=["read"], addresses=["203.0.113.1"])
    wrong = KeyPair(api_key=pair.api_key, api_secret="0" * 64)
    assert (await ask(app, wrong, "POST", "/api/v1/payments", json={})).status_code == 401


async def test_a_change_of_terms_is_known_soon_and_the_secret_stays(app: TestApp) -> None:
    pair = await made(app, rights=["refunds"])
    assert (await ask(app, pair, "GET", "/api/v1/balance")).status_code == 403
    for terms, status in (
        ({"rights": ["read"]}, 200),
        ({"addresses": ["203.0.113.1"]}, 403),
        ({"addresses": None}, 200),
    ):
        await usecases.set_key(app.ports, pair.api_key, **terms)
        await app.clock.advance(SECONDS_UNTIL_KNOWN)
        assert (await ask(app, pair, "GET", "/api/v1/balance")).status_code == status, terms
    changed = await usecases.set_key(app.ports, app.account.test.api_key, rights=["read"])
    assert changed.name is None, "the mode's own may be bound, too"
    assert (await app.create()).status_code == 403
    await usecases.set_key(app.ports, app.account.test.api_key, rights=None)
    assert (await app.create()).status_code == 201


async def test_a_rotated_key_keeps_what_it_had(app: TestApp) -> None:
    account_id, ports = app.account.account_id, app.ports
    old = await made(app, rights=["read", "kyc"], addresses=["203.0.113.0/24"])
    other = await made(app, "other", rights=["refunds"])
    new = await usecases.rotate_key(ports, account_id, Mode.TEST, name="report")
    assert [each.api_key for each in new.replaced] == [old.api_key]
    caller = await authenticate(ports, new.pair.api_key, new.pair.api_secret)
    assert caller.terms == KeyTerms(rights=("read", "kyc"), addresses=("203.0.113.0/24",))
    with pytest.raises(Refusal):
        await authenticate(ports, old.api_key, old.api_secret)
    assert (await authenticate(ports, other.api_key, other.api_secret)).terms.rights == ("refunds",)
    assert (await app.create()).status_code == 201, "the mode's own is another one"
    own = await usecases.rotate_key(ports, account_id, Mode.TEST)
    assert [each.api_key for each in own.replaced] == [app.account.test.api_key]
    assert (await authenticate(ports, other.api_key, other.api_secret)).key_id == other.api_key


async def test_a_key_is_ended_and_its_name_is_free_again(app: TestApp) -> None:
    ports = app.ports
    pair = await made(app)
    with pytest.raises(Refusal, match="name"):
        await made(app)
    await made(app, mode=Mode.LIVE)
    await usecases.end_key(ports, pair.api_key)
    assert (await ask(app, pair, "GET", "/api/v1/balance")).status_code == 401
    await made(app)
    for wrong in (pair.api_key, "svc_test_none", "", "x\0"):
        with pytest.raises(Refusal) as caught:
            await usecases.end_key(ports, wrong)
        assert caught.value.code == "KEY_NOT_FOUND"
    with pytest.raises(Refusal) as caught:
        await usecases.end_key(ports, app.account.test.api_key)
    assert caught.value.code == "INVALID_STATE", "the mode's own is only ever rotated"
    with pytest.raises(Refusal) as caught:
        await usecases.rotate_key(ports, app.account.account_id, Mode.TEST, name="nobody")
    assert caught.value.code == "KEY_NOT_FOUND"
    with pytest.raises(Refusal, match="no account"):
        await usecases.create_key(ports, "acc_none", Mode.TEST, "report")


async def test_an_ended_key_may_work_for_a_while(app: TestApp) -> None:
    pair = await made(app)
    await usecases.end_key(app.ports, pair.api_key, timedelta(hours=1))
    assert (await ask(app, pair, "GET", "/api/v1/balance")).status_code == 200
    await app.clock.advance(3600)
    assert (await ask(app, pair, "GET", "/api/v1/balance")).status_code == 401


async def test_simultaneous_keys_of_one_name_make_one(url: str, tmp_path: Path) -> None:
    async with open_test_app(database_url=url, data_dir=tmp_path) as app:
        answers = await asyncio.gather(*(made(app) for _ in range(4)), return_exceptions=True)
        assert sum(isinstance(each, KeyPair) for each in answers) == 1
        view = await get_account(app.ports, app.account.account_id)
        assert [key.name for key in view.keys].count("report") == 1


async def test_an_account_has_50_named_keys_of_a_mode_at_most(app: TestApp) -> None:
    for number in range(50):
        await made(app, str(number))
    with pytest.raises(Refusal, match="50 keys"):
        await made(app, "more")
    await made(app, "more", Mode.LIVE)


@table("name", ["a", "9", "Nightly-report_2.b", "k" * 40])
def test_a_key_has_a_name_that_a_command_line_takes(name: str) -> None:
    assert key_name(name) == name


@table("text", ["", "k" * 41, "-a", ".a", "_a", "a b", "a\n", "a/b", "ключ"], ids=ascii)
def test_invalid_key_name_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="1 to 40 letters"):
        key_name(text)


def test_a_key_has_up_to_50_addresses() -> None:
    every = [f"203.0.113.{number}" for number in range(51)]
    assert len(read_addresses(every[:50])) == 50
    with pytest.raises(Refusal, match="1 to 50"):
        read_addresses(every)


@table("texts", [[], ["write"], ["read", "Refunds"], [""]])
def test_unknown_right_is_refused(texts: list[str]) -> None:
    with pytest.raises(Refusal, match="read, payments"):
        read_rights(texts)


def test_rights_and_addresses_are_kept_in_one_form() -> None:
    assert read_rights(["refunds", "read", "read"]) == ("read", "refunds")
    given = ["203.0.113.7", " 203.0.113.0/24", "2001:DB8:0::/32", "203.0.113.7/32"]
    assert read_addresses(given) == ("203.0.113.7/32", "203.0.113.0/24", "2001:db8::/32")


@table("text", ["", "shop.example", "203.0.113.1/24", "203.0.113.0/33", "fe80::1%eth0", "1.2.3", "0x7f.1", "1.2.3.4\0"])
def test_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="address"):
        read_addresses([text])
    with pytest.raises(Refusal, match="1 to 50"):
        read_addresses([])


class TestLastUse:
    async def test_last_use_of_a_key_is_exact_to_the_minute(self, url: str, tmp_path: Path) -> None:
        async with open_test_app(database_url=url, data_dir=tmp_path) as app:
            uses, key = KeyUses(), app.account.test.api_key
            minute = app.clock.now()
            await app.clock.advance(42)
            for _ in range(3):
                uses.note(key)
                await uses.flush(app.ports)
            kept = await app.ports.storage.get(KeyUse, key)
            assert kept is not None
            assert (kept.used_at, kept.version) == (minute, 0)
            await app.clock.advance(60)
            await uses.flush(app.ports)
            assert (await get_account(app.ports, app.account.account_id)).uses == {key: minute}, "nobody used it"
            uses.note(key)
            await asyncio.gather(uses.flush(app.ports), _of_another_process(app, key))
            used = (await get_account(app.ports, app.account.account_id)).uses
            assert (used[key] - minute).total_seconds() == 60

    async def test_a_key_in_use_is_one_write_a_minute_for_all_processes(
        self, app: TestApp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        uses, units, unit = KeyUses(), 0, app.ports.storage.unit

        def counted() -> Any:
            nonlocal units
            units += 1
            return unit()

        monkeypatch.setattr(app.ports.storage, "unit", counted)
        for _ in range(3):
            uses.note("svc_test_a")
            await uses.flush(app.ports)
        uses.note("svc_test_b")
        await uses.flush(app.ports)
        assert units == 2
        await _of_another_process(app, "svc_test_a")
        await app.clock.advance(60)
        await uses.flush(app.ports)
        kept = await app.ports.storage.get(KeyUse, "svc_test_a")
        assert kept is not None
        assert (kept.version, units) == (0, 3), "nobody used either in this minute"
        uses.note("svc_test_a")
        await uses.flush(app.ports)
        kept = await app.ports.storage.get(KeyUse, "svc_test_a")
        assert kept is not None
        assert (kept.version, units) == (1, 4)

    async def test_many_are_written_at_once(self, app: TestApp) -> None:
        uses = KeyUses()
        for number in range(250):
            uses.note(f"svc_test_{number}")
        await uses.flush(app.ports)
        assert len(await everything(app.ports, KeyUse)) == 250

    async def test_requests_note_it_those_that_are_refused_too(self, app: TestApp) -> None:
        noted: list[str] = []

        class Seen(KeyUses):
            def note(self, key_id: str) -> None:
                noted.append(key_id)

        asgi: Any = create_app(app.ports, watch=RequestWatch(app.ports.clock, uses=Seen()))
        bound = await made(app, rights=["refunds"])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url="https://pay.example") as client:
            await client.get("/api/v1/balance", headers=app.headers())
            for secret in (bound.api_secret, "0" * 64):
                headers = {"X-Api-Key": bound.api_key, "X-Api-Secret": secret}
                await client.get("/api/v1/balance", headers=headers)
        assert noted == [app.account.test.api_key, bound.api_key], "but not who has not the secret"

    async def test_a_storage_that_is_away_loses_no_use(self, app: TestApp, monkeypatch: pytest.MonkeyPatch) -> None:
        uses = KeyUses()
        uses.note("svc_test_a")
        with monkeypatch.context() as away:
            away.setattr(app.ports.storage, "unit", None)
            with pytest.raises(TypeError):
                await uses.flush(app.ports)
        await uses.flush(app.ports)
        assert await app.ports.storage.get(KeyUse, "svc_test_a") is not None


async def _of_another_process(app: TestApp, key: str) -> None:
    uses = KeyUses()
    uses.note(key)
    await uses.flush(app.ports)
