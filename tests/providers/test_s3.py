"""Documents in a bucket: addresses signed by us, and the uploads that count (docs/providers/s3.md)."""

import asyncio
import http.client
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import boto3
import pytest
from botocore.config import Config

from cambist.adapters.clock import VirtualClock
from cambist.adapters.files.s3 import MOST, S3Files
from cambist.adapters.files.sigv4 import Credentials, presigned_query, signed_headers
from cambist.frontends.app.compose import open_app
from cambist.frontends.conformance.uploads import put
from cambist.frontends.settings.plugins import PluginError
from cambist.frontends.settings.settings import SettingsError
from cambist.frontends.settings.sources import load
from cambist.ports import ElsewhereFiles, HeadedUploads, NotConfigured, Refused, StoredFile, Unavailable
from tests.fake_s3 import ACCESS, BUCKET, REGION, SECRET, FakeS3, SignatureError, verify
from tests.patience import HANGS
from tests.tables import table

KEY, JPEG, FACE = "5e" * 32, "image/jpeg", b"\xff\xd8\xff a face"
OURS = Credentials(access_key=ACCESS, secret_key=SECRET, region=REGION)
AWS = Credentials(access_key=ACCESS, secret_key=SECRET, region="us-east-1")
AT = datetime(2013, 5, 24, tzinfo=UTC)
HOST = {"host": "examplebucket.s3.amazonaws.com"}


class TestSignatures:
    """AWS's own examples: docs.aws.amazon.com, "Signature Calculations … Authorization Header" and "… Query"."""

    @table(
        ("method", "path", "headers", "body", "signature"),
        [
            (
                "GET",
                "/test.txt",
                {"range": "bytes=0-9"},
                b"",
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                "PUT",
                "/test%24file.text",
                {"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
                b"Welcome to Amazon S3.",
                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            ),
        ],
    )
    def test_header_signatures_are_those_that_aws_publishes(
        self, method: str, path: str, headers: dict[str, str], body: bytes, signature: str
    ) -> None:
        made = signed_headers(AWS, method, path, {**HOST, **headers}, AT, body)
        assert made["authorization"].endswith(f"Signature={signature}")
        verify(method, unquote(path), {}, made, body, AT, region="us-east-1")

    def test_address_signature_is_the_one_that_aws_publishes(self) -> None:
        query = presigned_query(AWS, "GET", "/test.txt", HOST, AT, 86400)
        assert query.endswith("aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
        verify("GET", "/test.txt", dict(parse_qsl(query)), HOST, b"", AT, region="us-east-1")

    @table("seconds", [0, -1, 7 * 86400 + 1])
    def test_no_address_lasts_longer_than_s3_allows(self, seconds: int) -> None:
        with pytest.raises(ValueError, match="lasts"):
            presigned_query(AWS, "GET", "/x", HOST, AT, seconds)

    def test_the_secret_is_in_no_repr(self) -> None:
        assert SECRET not in repr(AWS)
        assert ACCESS not in repr(AWS)


def presigner(endpoint: str | None = None) -> Any:
    return boto3.client(
        "s3",
        region_name=REGION,
        aws_access_key_id=ACCESS,
        aws_secret_access_key=SECRET,
        endpoint_url=endpoint,
        config=cast("Any", Config)(
            signature_version="s3v4", s3={"addressing_style": "path" if endpoint else "virtual"}
        ),
    )


class TestBoto:
    """A signer that others wrote agrees with ours, and with the fake's."""

    @table("key", [KEY, "a b+c%d~e", "документ/π", "x" * 900])
    def test_addresses_presigned_by_boto_pass_the_fake(self, key: str) -> None:
        given = {"Bucket": BUCKET, "Key": key, "ContentType": JPEG, "IfNoneMatch": "*"}
        address = urlsplit(presigner().generate_presigned_url("put_object", given, ExpiresIn=600))
        query = dict(parse_qsl(address.query))
        headers = {"host": address.netloc, "content-type": JPEG, "if-none-match": "*"}
        now = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        call = ("PUT", unquote(address.path), query)
        verify(*call, headers, b"", now)
        wrongs: tuple[Callable[[], None], ...] = (
            lambda: verify("GET", *call[1:], headers, b"", now),
            lambda: verify(*call, {**headers, "content-type": "image/png"}, b"", now),
            lambda: verify(*call, {**headers, "if-none-match": '"x"'}, b"", now),
            lambda: verify(*call, {"host": address.netloc}, b"", now),
            lambda: verify(*call[:2], {**query, "X-Amz-Expires": "601"}, headers, b"", now),
            lambda: verify(*call, {**headers, "x-amz-acl": "public-read"}, b"", now),
            lambda: verify(*call, headers, b"", now + timedelta(seconds=600)),
        )
        for wrong in wrongs:
            with pytest.raises(SignatureError):
                wrong()

    @pytest.mark.parametrize("single_use", [False, True])
    @pytest.mark.parametrize("endpoint", [None, "https://storage.example"])
    def test_ours_are_its_own_to_the_letter(
        self, single_use: bool, endpoint: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = datetime(2026, 11, 23, 12, tzinfo=UTC)
        monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: now.replace(tzinfo=None))
        files = S3Files(
            bucket=BUCKET, credentials=OURS, clock=VirtualClock(now), endpoint=endpoint, single_use=single_use
        )
        given = {"Bucket": BUCKET, "Key": KEY, "ContentType": JPEG, **({"IfNoneMatch": "*"} if single_use else {})}
        theirs = urlsplit(presigner(endpoint).generate_presigned_url("put_object", given, ExpiresIn=600))
        ours = urlsplit(files.grant(KEY, JPEG, 1, now + timedelta(seconds=600)))
        if endpoint is not None:
            assert (ours.netloc, ours.path) == (theirs.netloc, theirs.path)
            assert sorted(parse_qsl(ours.query)) == sorted(parse_qsl(theirs.query))
        verify(
            "PUT",
            ours.path,
            dict(parse_qsl(ours.query)),
            {"host": ours.netloc, "content-type": JPEG, "if-none-match": "*"},
            b"",
            now,
        )


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def bucket(clock: VirtualClock) -> AsyncIterator[FakeS3]:
    async with FakeS3(clock) as opened:
        yield opened


Make = Callable[..., S3Files]


@pytest.fixture
async def make(bucket: FakeS3, clock: VirtualClock) -> AsyncIterator[Make]:
    made: list[S3Files] = []

    def files(**more: Any) -> S3Files:
        usual = {"bucket": BUCKET, "credentials": OURS, "clock": clock, "endpoint": bucket.url}
        made.append(S3Files(**{**usual, **more}))
        return made[-1]

    yield files
    for each in made:
        await each.close()


def address(files: S3Files, clock: VirtualClock) -> str:
    return files.grant(KEY, JPEG, 10, clock.now() + timedelta(minutes=10))


class TestUploads:
    async def test_address_of_a_known_size_takes_no_other(self, make: Make, clock: VirtualClock) -> None:
        files = make()
        place = files.grant(KEY, JPEG, 10_000, clock.now() + timedelta(minutes=10), size=len(FACE))
        assert not await put(files, place, JPEG, FACE + b"more"), "its length is signed"
        assert not await put(files, place, JPEG, FACE[:-1])
        assert await put(files, place, JPEG, FACE)
        assert await files.stat(KEY) == StoredFile(key=KEY, size=len(FACE))

    async def test_an_address_of_single_use_takes_one_upload_with_its_header(
        self, make: Make, clock: VirtualClock
    ) -> None:
        files = make(single_use=True)
        assert isinstance(files, ElsewhereFiles)
        assert isinstance(files, HeadedUploads)
        place = address(files, clock)
        without = make()
        assert not await put(without, place, JPEG, FACE), "the header is signed"
        assert await put(files, place, JPEG, FACE)
        assert not await put(files, place, JPEG, b"\xff\xd8\xff another")
        assert [part async for part in files.read(KEY)] == [FACE]

    async def test_header_from_a_front_end_prevents_overwriting_without_the_setting(
        self, make: Make, bucket: FakeS3, clock: VirtualClock
    ) -> None:
        """A header that is not signed may be sent, and counts."""
        files = make()
        place = urlsplit(address(files, clock))
        answers = []
        for _ in range(2):
            connection = http.client.HTTPConnection(place.netloc, timeout=HANGS)
            sent = {"Content-Type": JPEG, "If-None-Match": "*"}

            def send(connection: http.client.HTTPConnection = connection, sent: dict[str, str] = sent) -> int:
                connection.request("PUT", f"{place.path}?{place.query}", FACE, sent)
                return connection.getresponse().status

            answers.append(await asyncio.to_thread(send))
            connection.close()
        assert answers == [200, 412]

    async def test_file_of_another_type_does_not_count(self, make: Make, bucket: FakeS3) -> None:
        files = make()
        for kind in ("text/html", "binary/octet-stream", ""):
            bucket.files[KEY] = (kind, FACE)
            assert await files.stat(KEY) is None
        bucket.files[KEY] = ("application/pdf", FACE)
        assert await files.stat(KEY) == StoredFile(key=KEY, size=len(FACE))

    def test_a_type_that_is_never_granted_is_refused(self, make: Make, clock: VirtualClock) -> None:
        with pytest.raises(ValueError, match="type"):
            make().grant(KEY, "text/html", 10, clock.now() + timedelta(minutes=10))

    async def test_keys_stand_below_their_prefix(self, make: Make, bucket: FakeS3, clock: VirtualClock) -> None:
        files = make(prefix="kyc/")
        assert await put(files, address(files, clock), JPEG, FACE)
        assert list(bucket.files) == [f"kyc/{KEY}"]
        assert await files.stat(KEY) is not None

    async def test_a_file_is_read_in_parts_and_within_a_bound(
        self, make: Make, bucket: FakeS3, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files = make()
        bucket.files[KEY] = (JPEG, bytes(3_000_000))
        assert sum([len(part) async for part in files.read(KEY)]) == 3_000_000
        monkeypatch.setattr("cambist.adapters.files.s3.MOST", 2_999_999)
        with pytest.raises(Unavailable, match="too long"):
            _ = [part async for part in files.read(KEY)]
        assert MOST > 10 * 1024 * 1024


class TestAddressing:
    @pytest.mark.parametrize(
        ("more", "origin", "path"),
        [
            ({}, "https://documents.s3.eu-central-1.amazonaws.com", f"/{KEY}"),
            ({"bucket": "a.b"}, "https://s3.eu-central-1.amazonaws.com", f"/a.b/{KEY}"),
            ({"endpoint": "https://s3.example:443"}, "https://s3.example", f"/documents/{KEY}"),
            ({"endpoint": "https://s3.example/x", "by_path": True}, "https://s3.example", f"/x/documents/{KEY}"),
            ({"endpoint": "https://s3.example", "by_path": False}, "https://documents.s3.example", f"/{KEY}"),
        ],
    )
    def test_the_bucket_stands_in_the_host_or_in_the_path(
        self, clock: VirtualClock, more: dict[str, Any], origin: str, path: str
    ) -> None:
        files = S3Files(**{"bucket": BUCKET, "credentials": OURS, "clock": clock, **more})
        told = urlsplit(address(files, clock))
        assert (files.upload_origin, told.path) == (origin, path)
        assert f"{told.scheme}://{told.netloc}" == origin

    def test_an_endpoint_without_tls_elsewhere_is_refused(self, clock: VirtualClock) -> None:
        with pytest.raises(NotConfigured):
            S3Files(bucket=BUCKET, credentials=OURS, clock=clock, endpoint="http://s3.example")


class TestCheck:
    async def test_check_writes_finds_reads_and_removes_a_probe(self, make: Make, bucket: FakeS3) -> None:
        for single_use in (False, True):
            await make(single_use=single_use).check()
        assert bucket.files == {}
        assert [each.method for each in bucket.requests][:5] == ["HEAD", "PUT", "HEAD", "GET", "DELETE"]

    @pytest.mark.parametrize(
        ("more", "why"),
        [
            ({"credentials": Credentials(access_key=ACCESS, secret_key="x", region=REGION)}, "not taken"),
            ({"credentials": Credentials(access_key=ACCESS, secret_key=SECRET, region="us-west-1")}, "not taken"),
            ({"bucket": "another"}, "no such bucket"),
        ],
    )
    async def test_refused_credentials_are_reported(self, make: Make, more: dict[str, Any], why: str) -> None:
        with pytest.raises(NotConfigured, match=why) as caught:
            await make(**more).check()
        assert SECRET not in str(caught.value)

    async def test_key_that_may_not_list_is_reported(self, make: Make, bucket: FakeS3) -> None:
        """Without the right to list, a missing file would answer 403, and no registration would report it."""
        bucket.may_list = False
        with pytest.raises(NotConfigured, match="s3:ListBucket"):
            await make().check()

    async def test_store_that_ignores_conditions_is_reported_and_keeps_no_probe(
        self, make: Make, bucket: FakeS3
    ) -> None:
        bucket.ignores_conditions = True
        await make().check()
        with pytest.raises(NotConfigured, match="CAMBIST_S3_SINGLE_USE"):
            await make(single_use=True).check()
        assert bucket.files == {}

    async def test_wrong_clock_is_reported(self, make: Make, bucket: FakeS3, clock: VirtualClock) -> None:
        files = make()
        bucket._clock = VirtualClock(clock.now() + timedelta(hours=1))
        with pytest.raises(NotConfigured):
            await files.stat(KEY)


ENV = {
    "CAMBIST_FILES": "s3",
    "CAMBIST_DATABASE_URL": "memory://",
    "CAMBIST_S3_BUCKET": BUCKET,
    "CAMBIST_S3_ACCESS_KEY": ACCESS,
    "CAMBIST_S3_SECRET_KEY": SECRET,
}


class TestSettings:
    async def test_a_app_has_the_bucket_that_they_name(self, tmp_path: Path) -> None:
        more = {"CAMBIST_S3_REGION": REGION, "CAMBIST_S3_PREFIX": "kyc/", "CAMBIST_S3_SINGLE_USE": "true"}
        loaded = load({**ENV, **more}, {}, tmp_path)
        assert SECRET not in f"{loaded!r} {loaded.settings!r}"
        async with open_app(loaded.settings) as app:
            place = app.ports.files.grant(KEY, JPEG, 10, app.ports.clock.now() + timedelta(minutes=10))
        told = urlsplit(place)
        assert (told.netloc, told.path) == ("documents.s3.eu-central-1.amazonaws.com", f"/kyc/{KEY}")
        assert "if-none-match" in told.query

    async def test_missing_setting_is_named(self, tmp_path: Path) -> None:
        env = {name: value for name, value in ENV.items() if name != "CAMBIST_S3_SECRET_KEY"}
        with pytest.raises(PluginError, match="set CAMBIST_S3_SECRET_KEY"):
            async with open_app(load(env, {}, tmp_path).settings):
                pass

    @table(
        ("name", "value"),
        [
            *(("BUCKET", value) for value in ("A", "ab", "a..b", "a_b", "-ab", "a/b")),
            *(("PREFIX", value) for value in ("kyc", "/kyc/", "../", "a//b/", "a b/", "a?b/")),
            ("REGION", "eu central"),
            ("ADDRESSING", "dns"),
        ],
    )
    def test_invalid_setting_is_refused(self, tmp_path: Path, name: str, value: str) -> None:
        with pytest.raises(SettingsError):
            load({**ENV, f"CAMBIST_S3_{name}": value}, {}, tmp_path)


async def test_a_gone_file_is_refused_and_a_gone_bucket_is_a_fault(make: Make) -> None:
    with pytest.raises(Refused):
        _ = [part async for part in make().read(KEY)]
    with pytest.raises(NotConfigured):
        _ = [part async for part in make(bucket="another").read(KEY)]
