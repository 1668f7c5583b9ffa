"""PUT /uploads/{key}: every misuse of a granted address (docs/kyc.md "In live mode"; docs/decisions.md "Uploads")."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.clock import SystemClock, VirtualClock
from cambist.adapters.files.local import LEAST_RATE, LocalFiles
from cambist.adapters.vault.aes import AesVault
from cambist.core.domain.kyc.kyc import UPLOAD_KEPT, UPLOAD_MAX
from cambist.core.usecases.kyc.upload_put import PER_MINUTE
from cambist.core.usecases.kyc.uploads import TIDY_UPLOAD
from cambist.frontends.server.app import create_app
from cambist.ports.faults import Refused
from cambist.ports.files import UploadFault
from cambist.ports.jobs import Job
from cambist.ports.kyc import CheckStatus
from tests.invariants import everything
from tests.kyc_kit import JPEG, PDF, PNG, KycApp, code, open_kyc_app
from tests.tables import table


@pytest.fixture
async def kyc(tmp_path: Path) -> AsyncIterator[KycApp]:
    async with open_kyc_app(tmp_path) as opened:
        yield opened


def altered(url: str, **changes: str) -> str:
    """The address with other query values."""
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()} | changes
    return urlunsplit(parts._replace(query=urlencode(query)))


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def contents(kyc: KycApp, folder: Path) -> list[bytes]:
    """Return what lies in the files under their keys, decrypted."""
    kept = kyc.app.ports.files
    return [b"".join([part async for part in kept.read(path.name)]) for path in files(folder)]


@pytest.mark.parametrize(
    ("content_type", "content"), [("image/jpeg", JPEG), ("image/png", PNG), ("application/pdf", PDF)]
)
async def test_a_file_of_each_type_is_taken(kyc: KycApp, tmp_path: Path, content_type: str, content: bytes) -> None:
    grant = await kyc.grant(content_type)
    response = await kyc.put(grant["upload_url"], content, content_type)
    assert (response.status_code, response.json()) == (200, {"status": "uploaded"})
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    [stored] = files(tmp_path)
    assert await contents(kyc, tmp_path) == [content]
    assert content not in stored.read_bytes()
    assert (stored.name, stored.stat().st_mode & 0o777) == (grant["file_key"], 0o600)
    assert stored.parent.stat().st_mode & 0o777 == 0o700


async def test_an_address_takes_one_file_once_and_nothing_is_overwritten(kyc: KycApp, tmp_path: Path) -> None:
    grant = await kyc.grant()
    await kyc.put(grant["upload_url"], JPEG)
    for content in (JPEG, JPEG + b"other"):
        assert code(await kyc.put(grant["upload_url"], content)) == (409, "UPLOAD_EXISTS")
    assert await contents(kyc, tmp_path) == [JPEG]


async def test_simultaneous_uploads_keep_one_whole(kyc: KycApp, tmp_path: Path) -> None:
    grant = await kyc.grant()
    given = [JPEG + bytes([number]) * 1000 for number in range(8)]
    answers = await asyncio.gather(*(kyc.put(grant["upload_url"], content) for content in given))
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(200) == 1
    assert set(statuses) <= {200, 409, 503}, "it is there, or it is being uploaded"
    [kept] = [content for content, answer in zip(given, answers, strict=True) if answer.status_code == 200]
    assert await contents(kyc, tmp_path) == [kept]


@pytest.mark.parametrize("content_type", ["image/png", "text/html", "", None, "image/jpeg2"])
async def test_another_content_type_than_granted_is_refused(
    kyc: KycApp, tmp_path: Path, content_type: str | None
) -> None:
    grant = await kyc.grant("image/jpeg")
    assert code(await kyc.put(grant["upload_url"], JPEG, content_type)) == (400, "VALIDATION_ERROR")
    assert files(tmp_path) == []


@pytest.mark.parametrize("content", [PNG, PDF, b"<svg onload=alert(1)>", b"", b"\xff", b"\xff\xd8", b"\x00" + JPEG])
async def test_wrong_content_type_is_refused_and_the_address_stays_usable(
    kyc: KycApp, tmp_path: Path, content: bytes
) -> None:
    grant = await kyc.grant("image/jpeg")
    assert code(await kyc.put(grant["upload_url"], content)) == (400, "VALIDATION_ERROR")
    assert files(tmp_path) == []
    assert (await kyc.put(grant["upload_url"], JPEG)).status_code == 200


async def test_content_is_checked_also_when_it_comes_byte_by_byte(kyc: KycApp, tmp_path: Path) -> None:
    async def drip(content: bytes) -> AsyncIterator[bytes]:
        for byte in content:
            yield bytes([byte])

    grant = await kyc.grant("image/png")
    assert (await kyc.put(grant["upload_url"], drip(JPEG), "image/png")).status_code == 400
    assert (await kyc.put(grant["upload_url"], drip(PNG), "image/png")).status_code == 200
    assert await contents(kyc, tmp_path) == [PNG]


async def test_ten_megabytes_are_taken_and_not_one_byte_more(kyc: KycApp, tmp_path: Path) -> None:
    """The declared length decides, or without one the bytes as they are read."""
    seen = 0

    async def parts(size: int) -> AsyncIterator[bytes]:
        nonlocal seen
        seen = 0
        yield JPEG
        left = size - len(JPEG)
        while left > 0:
            part = bytes(min(left, 65_536))
            left -= len(part)
            seen += len(part)
            yield part

    assert UPLOAD_MAX == 10 * 1024 * 1024
    grant = await kyc.grant()
    url = grant["upload_url"]
    assert code(await kyc.put(url, JPEG + bytes(UPLOAD_MAX))) == (413, "PAYLOAD_TOO_LARGE")
    assert code(await kyc.put(url, parts(UPLOAD_MAX + 1))) == (413, "PAYLOAD_TOO_LARGE")
    assert code(await kyc.put(url, parts(10 * UPLOAD_MAX))) == (413, "PAYLOAD_TOO_LARGE")
    assert seen < UPLOAD_MAX + 2 * 65_536
    assert files(tmp_path) == []
    assert (await kyc.put(url, parts(UPLOAD_MAX))).status_code == 200
    [content] = await contents(kyc, tmp_path)
    assert len(content) == UPLOAD_MAX


async def test_an_address_ends_after_ten_minutes(kyc: KycApp) -> None:
    grant = await kyc.grant()
    late = await kyc.grant()
    await kyc.app.work(599)
    assert (await kyc.put(grant["upload_url"])).status_code == 200
    await kyc.app.work(1)
    assert code(await kyc.put(late["upload_url"])) == (403, "UPLOAD_FORBIDDEN")
    assert code(await kyc.put(altered(late["upload_url"], exp="9999999999"))) == (403, "UPLOAD_FORBIDDEN")


@table(
    "changes",
    [
        {"ct": "image/png"},
        {"max": "99999999999"},
        {"exp": "9999999999"},
        {"sig": ""},
        {"sig": "0" * 64},
        {"sig": "é"},
        {"sig": "A" * 100_00},
        {"exp": "x"},
        {"max": "-1"},
        {"ct": "image/jpeg\n10485760"},
    ],
)
async def test_an_altered_address_is_refused(kyc: KycApp, tmp_path: Path, changes: dict[str, str]) -> None:
    grant = await kyc.grant()
    content_type = changes.get("ct", "image/jpeg").partition("\n")[0]
    response = await kyc.put(altered(grant["upload_url"], **changes), JPEG, content_type)
    assert code(response) == (403, "UPLOAD_FORBIDDEN")
    assert files(tmp_path) == []


async def test_an_address_is_of_one_key(kyc: KycApp, tmp_path: Path) -> None:
    one, two = await kyc.grant(), await kyc.grant()
    swapped = one["upload_url"].replace(one["file_key"], two["file_key"])
    upper = one["upload_url"].replace(one["file_key"], one["file_key"].upper())
    for url in (swapped, upper, one["upload_url"].replace(one["file_key"], "..%2F..%2Fvault.key")):
        response = await kyc.put(url)
        assert response.status_code in (403, 404)
    assert code(await kyc.put("/uploads/x")) == (403, "UPLOAD_FORBIDDEN")
    assert files(tmp_path) == []


async def test_uploaded_file_cannot_be_read_from_outside(kyc: KycApp) -> None:
    grant = await kyc.grant()
    await kyc.put(grant["upload_url"])
    for method in ("GET", "HEAD", "POST", "DELETE", "PATCH"):
        response = await kyc.app.http.request(method, grant["upload_url"])
        assert response.status_code == 405
        assert JPEG not in response.content


async def test_a_browser_of_any_origin_may_ask(kyc: KycApp) -> None:
    grant = await kyc.grant()
    headers = {"Origin": "https://shop.example", "Access-Control-Request-Method": "PUT"}
    response = await kyc.app.http.request("OPTIONS", grant["upload_url"], headers=headers)
    assert response.status_code == 204
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert "PUT" in response.headers["Access-Control-Allow-Methods"]
    assert response.headers["Access-Control-Allow-Headers"] == "content-type, if-none-match"
    assert "Access-Control-Allow-Credentials" not in response.headers
    refused = await kyc.put(altered(grant["upload_url"], sig="0"))
    assert refused.headers["Access-Control-Allow-Origin"] == "*"


async def test_an_address_of_the_net_uploads_so_often_a_minute(kyc: KycApp) -> None:
    grant = await kyc.grant()
    for _ in range(PER_MINUTE):
        assert (await kyc.put(altered(grant["upload_url"], sig="0"))).status_code == 403
    response = await kyc.put(grant["upload_url"])
    assert code(response) == (429, "RATE_LIMIT_EXCEEDED")
    await kyc.app.work(int(response.headers["Retry-After"]))
    assert (await kyc.put(grant["upload_url"])).status_code == 200


async def test_uploads_need_no_key_and_move_no_counter_of_the_api(kyc: KycApp) -> None:
    grant = await kyc.grant()
    response = await kyc.put(grant["upload_url"])
    assert "x-ratelimit-limit" not in response.headers
    assert response.headers["X-Request-Id"]


async def test_aborted_upload_is_not_kept(kyc: KycApp, tmp_path: Path) -> None:
    grant = await kyc.grant()
    address = urlsplit(grant["upload_url"])
    said: list[Any] = [
        {"type": "http.request", "body": JPEG, "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return said.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "PUT",
        "scheme": "https",
        "path": address.path,
        "raw_path": address.path.encode(),
        "root_path": "",
        "query_string": address.query.encode(),
        "headers": [(b"content-type", b"image/jpeg"), (b"content-length", b"1000")],
        "client": ("127.0.0.1", 1),
        "server": ("pay.example", 443),
    }
    asgi: Any = create_app(kyc.ports)
    await asgi(scope, receive, send)
    assert sent[0]["status"] == 400
    assert files(tmp_path) == []
    assert (await kyc.put(grant["upload_url"])).status_code == 200


async def test_unwritable_folder_is_logged_and_is_no_500(
    kyc: KycApp, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grant = await kyc.grant()
    (tmp_path / "uploads").write_text("in the way")
    response = await kyc.put(grant["upload_url"])
    assert code(response) == (503, "PROVIDER_UNAVAILABLE")
    (tmp_path / "uploads").unlink()
    assert (await kyc.put(grant["upload_url"])).status_code == 200
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_documents_are_deleted_a_day_after_their_grant_or_decision(kyc: KycApp, tmp_path: Path) -> None:
    await kyc.uploaded()
    body = await kyc.documents()
    await kyc.register(body)
    await kyc.app.work(24 * 3600 - 60)
    assert len(files(tmp_path)) == 3
    await kyc.app.work(120)
    assert files(tmp_path) == []
    assert await kyc.upload(body["selfie_key"]) is None
    assert await tidying(kyc) == []


async def tidying(kyc: KycApp) -> list[timedelta]:
    """Return the delay after which each document is checked again."""
    now = kyc.app.clock.now()
    return [job.due - now for job in await everything(kyc.ports, Job) if job.kind == TIDY_UPLOAD]


async def test_documents_of_a_check_that_is_not_decided_stay(kyc: KycApp, tmp_path: Path) -> None:
    await kyc.register()
    assert await tidying(kyc) == [UPLOAD_KEPT] * 2
    await kyc.decide(CheckStatus.PROCESSING)
    await kyc.app.work(5 * 24 * 3600)
    assert await tidying(kyc) == [UPLOAD_KEPT] * 2, "once a day"
    assert len(files(tmp_path)) == 2
    await kyc.decide(CheckStatus.VERIFIED)
    await kyc.app.work(2 * 24 * 3600)
    assert files(tmp_path) == []


async def test_documents_of_an_older_check_go_while_a_newer_one_is_under_way(kyc: KycApp, tmp_path: Path) -> None:
    await kyc.register()
    await kyc.decide(CheckStatus.FAILED)
    await kyc.register()
    await kyc.decide(CheckStatus.PROCESSING)
    await kyc.app.work(2 * 24 * 3600)
    assert len(files(tmp_path)) == 2


async def test_a_place_stays_for_as_long_as_its_address_takes_a_file(kyc: KycApp) -> None:
    grant = await kyc.grant()
    await kyc.app.work(599)
    assert (await kyc.put(grant["upload_url"])).status_code == 200
    await kyc.app.work(3600)
    assert await kyc.upload(grant["file_key"]) is not None, "for a day"


def store(folder: Path, **more: Any) -> LocalFiles:
    return LocalFiles(folder, "https://pay.example", AesVault({1: bytes(32)}, 1, bytes(32)), VirtualClock(), **more)


def query_of(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


async def test_an_upload_that_stands_still_is_ended_and_lets_go_of_its_place(tmp_path: Path) -> None:
    one = store(tmp_path, silence=0.01, at_once=1)
    url = one.grant("0" * 64, "image/jpeg", 1000, VirtualClock().now().replace(year=2100))

    async def still() -> AsyncIterator[bytes]:
        yield JPEG
        await asyncio.Event().wait()

    with pytest.raises(UploadFault, match="stood still"):
        await one.receive("0" * 64, query_of(url), still())
    assert files(tmp_path) == []

    async def whole() -> AsyncIterator[bytes]:
        yield JPEG

    assert (await one.receive("0" * 64, query_of(url), whole())).size == len(JPEG)


async def test_an_upload_that_drips_ends_after_two_minutes(tmp_path: Path) -> None:
    clock = VirtualClock()
    one = LocalFiles(tmp_path, "https://pay.example", AesVault({1: bytes(32)}, 1, bytes(32)), clock)
    url = one.grant("0" * 64, "image/jpeg", UPLOAD_MAX, clock.now() + timedelta(minutes=10))
    came = 0

    async def drip() -> AsyncIterator[bytes]:
        nonlocal came
        yield JPEG
        while True:
            await clock.advance(20)
            came += 1
            yield b"x" * (20 * LEAST_RATE)

    with pytest.raises(UploadFault) as caught:
        await one.receive("0" * 64, query_of(url), drip())
    assert caught.value.reason == "wrong_type"
    assert came == 6
    assert files(tmp_path) == []


async def test_simultaneous_uploads_are_limited(tmp_path: Path) -> None:
    one = store(tmp_path, at_once=1)
    end = VirtualClock().now().replace(year=2100)
    urls = {key: query_of(one.grant(key, "image/jpeg", 1000, end)) for key in ("0" * 64, "1" * 64)}
    go_on = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield JPEG
        await go_on.wait()

    first = asyncio.create_task(one.receive("0" * 64, urls["0" * 64], slow()))
    await asyncio.sleep(0)
    with pytest.raises(UploadFault) as caught:
        await one.receive("1" * 64, urls["1" * 64], slow())
    assert caught.value.reason == "busy"
    go_on.set()
    await first


async def test_partial_file_of_a_crash_is_deleted_after_an_hour(tmp_path: Path) -> None:
    clock = SystemClock()
    one = LocalFiles(tmp_path, "https://pay.example", AesVault({1: bytes(32)}, 1, bytes(32)), clock)
    old, new, whole = tmp_path / "a.part", tmp_path / "b.part", tmp_path / ("0" * 64)
    for path in (old, new, whole):
        path.write_bytes(b"x")
    past = clock.now().timestamp() - 3700
    os.utime(old, (past, past))
    os.utime(whole, (past, past))
    await one.clean()
    assert files(tmp_path) == sorted([new, whole])


@given(st.text(), st.dictionaries(st.sampled_from(["ct", "max", "exp", "sig", "x"]), st.text()))
def test_no_made_up_address_is_let_through(key: str, query: dict[str, str]) -> None:
    with pytest.raises(UploadFault):
        store(Path("nowhere")).admit(key, query, "image/jpeg", 10)


async def test_the_port_s_own_reads(tmp_path: Path) -> None:
    one = store(tmp_path)
    key = "0" * 64
    assert await one.stat(key) is None
    assert await one.stat("../x") is None
    await one.remove(key)
    with pytest.raises(Refused):
        [part async for part in one.read(key)]
    url = one.grant(key, "image/jpeg", 1000, VirtualClock().now().replace(year=2100))

    async def whole() -> AsyncIterator[bytes]:
        yield JPEG[:5]
        yield JPEG[5:]

    await one.receive(key, query_of(url), whole())
    stored = await one.stat(key)
    assert stored is not None
    assert stored.size == len(JPEG)
    assert b"".join([part async for part in one.read(key)]) == JPEG
    await one.remove(key)
    assert await one.stat(key) is None
    with pytest.raises(ValueError, match="64 hex"):
        one.grant("x", "image/jpeg", 1, VirtualClock().now())


async def test_upload_of_a_known_size_takes_no_larger_file(kyc: KycApp) -> None:
    granted = await kyc.post("/kyc/upload-url", {"content_type": "image/jpeg", "size": len(JPEG)})
    assert granted.status_code == 200
    url = urlsplit(granted.json()["upload_url"])
    path = f"{url.path}?{url.query}"
    headers = {"Content-Type": "image/jpeg"}
    assert (await kyc.app.http.put(path, content=JPEG + b"x", headers=headers)).status_code == 413
    assert (await kyc.app.http.put(path, content=JPEG, headers=headers)).status_code == 200


@table("size", [0, -1, UPLOAD_MAX + 1, "10", 1.5])
async def test_size_of_no_file_is_refused(kyc: KycApp, size: Any) -> None:
    refused = await kyc.post("/kyc/upload-url", {"content_type": "image/jpeg", "size": size})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
