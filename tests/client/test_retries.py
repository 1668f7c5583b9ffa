"""Retries of the client, their keys and pauses: the catalogue's advice, row by row, with a scripted service."""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import httpx
import httpx2
import msgspec
import pytest

from cambist.core.domain.errors import CATALOGUE, Retry
from cambist.frontends.client import (
    Advice,
    AsyncClient,
    CambistError,
    Client,
    NoAnswer,
    Payments,
    Retries,
    UploadGrant,
)
from cambist.frontends.client.clients import TIMEOUT
from cambist.frontends.client.errors import Answer, refusal
from cambist.frontends.client.kyc import Kyc
from cambist.frontends.client.subscriptions import Subscriptions
from tests.tables import table

BASE = "https://pay.example"
SECRET = "5" * 64
CREATE = Payments.create.request(amount_rub="100")
READ = Payments.get.request("pay_1")
CANCEL = Subscriptions.cancel.request("sub_1")
GRANT = UploadGrant(upload_url="https://files.example/k?signature=1", file_key="k")
REGISTER = Kyc.register.request("+79001234567")
PAYMENT = {
    "id": "pay_1",
    "status": "held_by_a_newer_service",
    "amount_rub": "100.00",
    "actual_amount_rub": None,
    "amount_usdt": None,
    "external_id": None,
    "payment_method": "sbp",
    "payment_url": "https://pay.example/p/pay_1",
    "expires_at": "2026-01-01T00:15:00.000Z",
    "refund_pending": False,
    "metadata": None,
    "shop_id": "s",
    "created_at": "2026-01-01T00:00:00.000Z",
    "paid_at": None,
    "settled_at": None,
    "a_field_of_a_newer_service": 1,
}

Step = httpx2.Response | type[httpx2.RequestError]


def no(status: int, code: str, *, details: Any = None, **headers: str) -> httpx2.Response:
    error = {"code": code, "message": "No", **({"details": details} if details else {})}
    return httpx2.Response(status, json={"error": error}, headers={k.replace("_", "-"): v for k, v in headers.items()})


class Service:
    """A service that answers as scripted, then successfully, and records the requests."""

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.asked: list[httpx2.Request] = []
        self.pauses: list[float] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        step = self.steps.pop(0) if self.steps else httpx2.Response(201, json=PAYMENT)
        if isinstance(step, httpx2.Response):
            return step
        raise step("scripted", request=request)

    def client(self, **retries: Any) -> Client:
        http = httpx2.Client(transport=httpx2.MockTransport(self))
        return Client(BASE, "svc_test_1", SECRET, http=http, sleep=self.pauses.append, retries=Retries(**retries))

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("idempotency-key") for request in self.asked]


def failing(service: Service, request: Any, **retries: Any) -> CambistError:
    with pytest.raises(CambistError) as error:
        service.client(**retries).send(request)
    return error.value


def test_a_creation_that_got_no_answer_is_repeated_with_its_key() -> None:
    service = Service(httpx2.ConnectError, httpx2.ReadTimeout, httpx2.RemoteProtocolError)
    made = service.client().payments.create(amount_rub="100")
    assert made.amount_rub == Decimal("100.00")
    assert len(service.asked) == 4
    assert len(set(service.keys)) == 1
    assert str(UUID(service.keys[0])) == service.keys[0]


def test_every_attempt_has_a_timeout() -> None:
    service = Service()
    http = httpx2.Client(transport=httpx2.MockTransport(service), timeout=7)
    Client(BASE, "svc_test_1", SECRET, http=http).send(CREATE)
    assert service.asked[0].extensions["timeout"]["read"] == 7
    with Client(BASE, "svc_test_1", SECRET) as client:
        assert client._http.timeout.read == TIMEOUT
    assert client._http.is_closed


def test_attempts_are_bounded_and_the_error_carries_the_key() -> None:
    service, key = Service(*[httpx2.ReadTimeout] * 9), uuid4()
    request = Payments.create.request(amount_rub="100", idempotency_key=key)
    error = failing(service, request, attempts=3)
    assert isinstance(error, NoAnswer)
    assert (error.code, error.is_unsent, error.advice) == ("NO_ANSWER", False, Advice.SAME_KEY)
    assert (error.idempotency_key, service.keys) == (str(key), [str(key)] * 3)


@table(
    ("step", "request_", "sent"),
    [
        (httpx2.ReadTimeout, READ, 2),
        (httpx2.ReadTimeout, CREATE, 2),
        (httpx2.ReadTimeout, REGISTER, 2),
        # A second cancellation would be refused, and nobody would know that the first had worked.
        (httpx2.ReadTimeout, CANCEL, 1),
        (httpx2.WriteError, CANCEL, 1),
        (httpx2.ConnectError, CANCEL, 2),
        (httpx2.ConnectTimeout, CANCEL, 2),
        (httpx2.PoolTimeout, CANCEL, 2),
        (no(500, "INTERNAL_ERROR"), CANCEL, 1),
        (no(500, "INTERNAL_ERROR"), CREATE, 2),
        (no(503, "PROVIDER_UNAVAILABLE"), CANCEL, 2),
        (no(429, "RATE_LIMIT_EXCEEDED"), CANCEL, 2),
        (httpx2.Response(502, text="<html>"), CANCEL, 1),
        (httpx2.Response(502, text="<html>"), CREATE, 2),
        (httpx2.Response(301, headers={"Location": "https://elsewhere.example"}), READ, 1),
    ],
)
def test_only_what_cannot_be_done_twice_is_sent_again(step: Step, request_: Any, sent: int) -> None:
    service = Service(step)
    if sent == 1:
        failing(service, request_)
    else:
        service.steps.append(no(400, "INVALID_AMOUNT"))
        failing(service, request_)
    assert len(service.asked) == sent


@table("code", CATALOGUE)
def test_every_code_has_the_advice_of_the_catalogue(code: str) -> None:
    """The usual status of each, for a creation. SAME_KEY below 500 heals by waiting for something, not by seconds."""
    entry = CATALOGUE[code]
    slow = code in ("PROVIDER_NOT_CONFIGURED", "FEATURE_DISABLED") or (entry.status < 500 and entry.status != 429)
    expected = {
        Retry.NEVER: Advice.NEVER,
        Retry.NEW_KEY: Advice.NEW_KEY,
        Retry.SAME_KEY: Advice.WAIT if slow else Advice.SAME_KEY,
    }[entry.retry]
    service = Service(*[no(entry.status, code) for _ in range(2)])
    error = failing(service, CREATE, attempts=2)
    assert (error.code, error.advice, error.meaning) == (code, expected, entry.meaning)
    assert len(service.asked) == (2 if expected is Advice.SAME_KEY else 1)


@table(
    ("request_", "status", "code", "advice"),
    [
        (CREATE, 503, "PAYMENT_ROUTE_UNAVAILABLE", Advice.SAME_KEY),
        (CREATE, 400, "PAYMENT_ROUTE_UNAVAILABLE", Advice.NEVER),
        (REGISTER, 502, "PROVIDER_ERROR", Advice.SAME_KEY),
        (REGISTER, 500, "KYC_PERSIST_FAILED", Advice.NEVER),
        (CREATE, 418, "A_CODE_OF_A_NEWER_SERVICE", Advice.NEVER),
        (CREATE, 503, "A_CODE_OF_A_NEWER_SERVICE", Advice.SAME_KEY),
    ],
)
def test_advice_depends_on_code_and_status(request_: Any, status: int, code: str, advice: Advice) -> None:
    body = msgspec.json.encode({"error": {"code": code, "message": "No"}})
    assert refusal(request_, Answer(status=status, headers={}, body=body)).advice is advice


def test_pauses_double_and_are_cut_by_chance() -> None:
    service = Service(*[httpx2.ReadTimeout] * 3)
    service.client().send(CREATE)
    for pause, longest in zip(service.pauses, (0.5, 1.0, 2.0), strict=True):
        assert longest / 2 <= pause <= longest


def test_retry_after_is_kept_and_else_the_rate_limits_reset() -> None:
    limits = {"RateLimit_Limit": "120", "RateLimit_Remaining": "0", "RateLimit_Reset": "9"}
    service = Service(
        no(429, "RATE_LIMIT_EXCEEDED", Retry_After="7", **limits), no(429, "RATE_LIMIT_EXCEEDED", **limits)
    )
    client = service.client()
    client.send(CREATE)
    assert service.pauses == [7.0, 9.0]
    assert client.rate_limit is not None
    assert (client.rate_limit.limit, client.rate_limit.remaining) == (120, 0)


def test_a_pause_beyond_patience_is_not_begun() -> None:
    service = Service(no(503, "RATE_UNAVAILABLE", Retry_After="30"), no(503, "RATE_UNAVAILABLE", Retry_After="30"))
    error = failing(service, READ, patience=40)
    assert (service.pauses, error.retry_after, error.code) == ([30.0], 30, "RATE_UNAVAILABLE")


def test_next_allowed_at_is_raised_and_not_waited_for() -> None:
    moment = "2026-02-01T00:00:00.000+03:00"
    service = Service(no(409, "CHARGE_BEFORE_WINDOW", details={"next_allowed_at": moment}))
    error = failing(service, Subscriptions.charge.request("sub_1", amount_rub="1"))
    assert (error.next_allowed_at, error.advice, service.pauses) == (moment, Advice.WAIT, [])


@table(
    ("request_", "wanted", "sent"),
    [
        (CREATE, True, 2),
        (CREATE, False, 1),
        (Payments.create.request(amount_rub="1", idempotency_key=uuid4()), True, 1),
        (Subscriptions.charge.request("sub_1", amount_rub="1"), True, 1),
    ],
)
def test_a_new_key_only_where_asked_for_and_never_for_a_charge(request_: Any, wanted: bool, sent: int) -> None:
    """A refused charge is PROVIDER_ERROR too: another key would debit the payer's budget of attempts."""
    service = Service(no(502, "PROVIDER_ERROR"), no(400, "INVALID_AMOUNT"))
    failing(service, request_, new_key=wanted)
    assert len(service.asked) == len(set(service.keys)) == sent


def test_unreadable_success_answer_is_reported_as_such() -> None:
    service = Service(httpx2.Response(201, json={"id": 1}))
    error = failing(service, CREATE)
    assert (error.code, error.advice, error.idempotency_key) == ("UNEXPECTED_ANSWER", Advice.NEVER, CREATE.key)


async def test_the_async_client_goes_the_same_way() -> None:
    service = Service(no(429, "RATE_LIMIT_EXCEEDED", Retry_After="3"), httpx2.ReadTimeout)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(service))
    async with AsyncClient(BASE, "svc_test_1", SECRET, http=http, sleep=sleep) as client:
        made = await client.payments.create(amount_rub="100")
    assert made.status == "held_by_a_newer_service"
    assert not made.status.is_known
    assert (len(service.asked), len(set(service.keys)), pauses[0]) == (3, 1, 3.0)
    assert not http.is_closed
    await http.aclose()


def test_keys_go_to_the_service_only_and_no_repr_shows_the_secret() -> None:
    service = Service(httpx2.Response(200, json={"status": "uploaded"}))
    client = service.client()
    client.send(Kyc.upload.request(GRANT, b"x", "image/png"))
    client.send(READ)
    upload, read = service.asked
    assert str(upload.url) == "https://files.example/k?signature=1"
    assert "x-api-secret" not in upload.headers
    assert (read.headers["x-api-key"], read.headers["x-api-secret"]) == ("svc_test_1", SECRET)
    shown: list[Callable[[Any], str]] = [repr, str]
    for show in shown:
        assert SECRET not in show(client) + show(client._keys) + show(vars(client)) + show(REGISTER) + show(read)
        assert "79001234567" not in show(REGISTER)


MOVED = "https://elsewhere.example/api/v1/payments/pay_1"


def test_a_redirect_is_never_followed_with_the_keys() -> None:
    """Also where the merchant's own httpx2 client follows redirects: X-Api-Secret would go along to anybody."""
    service = Service(httpx2.Response(307, headers={"Location": MOVED}))
    http = httpx2.Client(transport=httpx2.MockTransport(service), follow_redirects=True)
    client = Client(BASE, "svc_test_1", SECRET, http=http)
    with pytest.raises(CambistError, match="307"):
        client.send(READ)
    assert [request.url.host for request in service.asked] == ["pay.example"]


async def test_the_async_client_follows_no_redirect_either() -> None:
    service = Service(httpx2.Response(307, headers={"Location": MOVED}))
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(service), follow_redirects=True)
    client = AsyncClient(BASE, "svc_test_1", SECRET, http=http)
    with pytest.raises(CambistError, match="307"):
        await client.send(READ)
    assert [request.url.host for request in service.asked] == ["pay.example"]
    await http.aclose()


class TestLibraries:
    """A client of httpx2, or of httpx, which it continues, may be passed in; so may one of a class derived from it."""

    @table("library", [httpx2, httpx], ids=lambda library: library.__name__)
    def test_client_of_either_library_works_alike(self, library: Any) -> None:
        steps = [library.ConnectError, library.Response(307, headers={"Location": MOVED}), library.ReadTimeout]
        asked: list[Any] = []

        def answer(request: Any) -> Any:
            asked.append(request)
            step = steps[len(asked) - 1]
            if isinstance(step, library.Response):
                return step
            raise step("scripted", request=request)

        class Own(library.Client):  # type: ignore[misc]
            pass

        http = Own(transport=library.MockTransport(answer), follow_redirects=True, auth=("theirs", "never"))
        client = Client(BASE, "svc_test_1", SECRET, http=http, sleep=lambda _: None)
        with pytest.raises(CambistError, match="307"):  # not sent at first, so even a cancellation is repeated
            client.send(CANCEL)
        with pytest.raises(NoAnswer) as unanswered:
            client.send(CANCEL)
        assert (unanswered.value.is_unsent, len(asked)) == (False, 3)
        assert {request.headers["x-api-secret"] for request in asked} == {SECRET}
        assert not any("authorization" in request.headers for request in asked)

    @table("library", [httpx2, httpx], ids=lambda library: library.__name__)
    async def test_async_client_of_either_library_works_alike(self, library: Any) -> None:
        asked: list[Any] = []

        def answer(request: Any) -> Any:
            asked.append(request)
            if len(asked) == 1:
                raise library.ConnectError("scripted", request=request)
            return library.Response(201, json=PAYMENT)

        async def sleep(_: float) -> None:
            pass

        async with library.AsyncClient(transport=library.MockTransport(answer)) as http:
            client = AsyncClient(BASE, "svc_test_1", SECRET, http=http, sleep=sleep)
            assert (await client.payments.create(amount_rub="100")).id == "pay_1"
            await client.send(Kyc.upload.request(GRANT, b"x", "image/png"))
        assert ["x-api-secret" in request.headers for request in asked] == [True, True, False]


@table("given", [BASE, f"{BASE}/", f"{BASE}/api/v1", f"{BASE}/api/v1/"])
def test_the_address_may_be_given_with_the_path_of_the_api(given: str) -> None:
    """docs/quickstart.md exports the variable like this."""
    service = Service()
    http = httpx2.Client(transport=httpx2.MockTransport(service))
    Client(given, "svc_test_1", SECRET, http=http).send(READ)
    assert str(service.asked[0].url) == f"{BASE}/api/v1/payments/pay_1"


async def test_a_cancelled_call_is_not_sent_again_and_its_key_is_the_callers() -> None:
    """A caller with its own key repeats the request and gets one payment."""
    service, key = Service(httpx2.ReadTimeout), uuid4()
    pausing = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pausing.set()
        await asyncio.Event().wait()

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(service))
    async with AsyncClient(BASE, "svc_test_1", SECRET, http=http, sleep=sleep) as client:
        call = asyncio.create_task(client.payments.create(amount_rub="100", idempotency_key=key))
        await pausing.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert len(service.asked) == 1
        await client.payments.create(amount_rub="100", idempotency_key=key)
    assert service.keys == [str(key), str(key)]


def test_a_retry_after_that_is_no_number_is_no_pause() -> None:
    """A date is HTTP's other form of it; something between may send one, or garbage."""
    for told in ("Sat, 21 Nov 2026 17:00:00 GMT", "-1", "9" * 5000):
        service = Service(no(503, "RATE_UNAVAILABLE", Retry_After=told))
        service.client().send(READ)
        assert service.pauses[0] <= 0.5
