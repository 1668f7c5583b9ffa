"""Contract of a store for clients' documents (ports/files.py). Your conftest.py provides a fixture `files_harness`, a
FilesHarness."""

import asyncio
from datetime import timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import pytest

from ...ports.checking import Checkable
from ...ports.faults import Fault, NotConfigured, Refused, Unavailable
from ...ports.files import ElsewhereFiles, StoredFile, UploadReceiver
from ..fake_provider.faults import ProviderFault
from .expectations import must_raise
from .harnesses import FilesHarness, check_hidden

KEY, OTHER = "5e" * 32, "0f" * 32
"""Keys like those of the service: 32 random bytes as lower-case hex digits."""
JPEG = "image/jpeg"
FACE = b"\xff\xd8\xff" + b" a face"
LARGE = b"\xff\xd8\xff" + bytes(range(256)) * 4096
"""A little over 1 MB."""
LIMIT = 10 * 1024 * 1024
LASTS = timedelta(minutes=15)

BROKEN_READS = (
    ProviderFault.LOST_BEFORE,
    ProviderFault.CUT_IN_HEAD,
    ProviderFault.SERVER_ERROR,
    ProviderFault.BAD_GATEWAY,
    ProviderFault.OVERLOADED,
    ProviderFault.TIMED_OUT,
    ProviderFault.BUSY,
    ProviderFault.REDIRECT,
)


def granted(harness: FilesHarness, key: str = KEY, content_type: str = JPEG, limit: int = LIMIT) -> str:
    return harness.files.grant(key, content_type, limit, harness.clock.now() + LASTS)


async def stored(harness: FilesHarness, content: bytes = FACE, key: str = KEY) -> None:
    """Upload a file as a client does."""
    assert await harness.put(granted(harness, key), JPEG, content), "a file of the granted type was not taken"


async def content_of(harness: FilesHarness, key: str = KEY) -> list[bytes]:
    return [part async for part in harness.files.read(key)]


class TestFiles:
    """A key holds a completely uploaded file or nothing."""

    async def test_under_a_key_that_nobody_filled_there_is_nothing(self, files_harness: FilesHarness) -> None:
        granted(files_harness)
        assert await files_harness.files.stat(KEY) is None, "a key without a file has no stat; a grant alone makes none"
        with must_raise("a file that is not there cannot be read", Refused):
            await content_of(files_harness)

    @pytest.mark.parametrize("content", [FACE, LARGE], ids=["small", "large"])
    async def test_uploaded_file_is_read_unchanged(self, files_harness: FilesHarness, content: bytes) -> None:
        await stored(files_harness, content)
        assert await files_harness.files.stat(KEY) == StoredFile(key=KEY, size=len(content)), "stat gives key and size"
        parts = await content_of(files_harness)
        assert b"".join(parts) == content, "a file is read as it was uploaded"
        assert all(parts), "a part is empty"
        assert max(map(len, parts)) < 1024 * 1024, "a large file is held in memory whole"

    async def test_keys_have_nothing_to_do_with_one_another(self, files_harness: FilesHarness) -> None:
        await stored(files_harness)
        assert await files_harness.files.stat(OTHER) is None, "an upload fills its own key alone"
        await stored(files_harness, LARGE, OTHER)
        await files_harness.files.remove(OTHER)
        assert b"".join(await content_of(files_harness)) == FACE, "removing one key leaves the others"

    async def test_removed_file_is_gone_and_may_be_removed_again(self, files_harness: FilesHarness) -> None:
        await stored(files_harness)
        for _ in range(2):
            await files_harness.files.remove(KEY)
            assert await files_harness.files.stat(KEY) is None, "a removed file is gone; removing it again is no error"
        with must_raise("a file that is not there cannot be read", Refused):
            await content_of(files_harness)

    async def test_an_upload_that_breaks_off_leaves_nothing(self, files_harness: FilesHarness) -> None:
        await files_harness.break_off(granted(files_harness), JPEG, LARGE)
        assert await files_harness.files.stat(KEY) is None, "an upload that broke off leaves no file"
        await stored(files_harness)

    async def test_simultaneous_uploads_keep_one_whole(self, files_harness: FilesHarness) -> None:
        address, contents = granted(files_harness), [FACE + bytes([each]) * 100_000 for each in range(4)]
        await asyncio.gather(*(files_harness.put(address, JPEG, content) for content in contents))
        assert b"".join(await content_of(files_harness)) in contents, "of simultaneous uploads one is kept whole"


class TestAddresses:
    """A URL is the permission to upload one file of one type for a limited time."""

    async def test_it_ends(self, files_harness: FilesHarness) -> None:
        address = granted(files_harness)
        await files_harness.pass_time(LASTS)
        assert not await files_harness.put(address, JPEG, FACE), "a URL takes no upload after its end"
        assert await files_harness.files.stat(KEY) is None, "a refused upload leaves no file"

    async def test_it_lasts_until_then(self, files_harness: FilesHarness) -> None:
        address = granted(files_harness)
        await files_harness.pass_time(LASTS - timedelta(seconds=2))
        assert await files_harness.put(address, JPEG, FACE), "a URL takes an upload until its end"

    async def test_it_is_for_its_key_alone(self, files_harness: FilesHarness) -> None:
        assert not await files_harness.put(granted(files_harness).replace(KEY, OTHER), JPEG, FACE), (
            "a URL is for its key alone"
        )
        assert await files_harness.files.stat(OTHER) is None, "a refused upload leaves no file"

    async def test_no_value_of_it_can_be_changed(self, files_harness: FilesHarness) -> None:
        """No parameter of the permission can be changed or removed. Other parameters may be."""
        address = urlsplit(granted(files_harness))
        terms = parse_qsl(address.query, keep_blank_values=True)
        assert terms, "there is nothing that was signed"
        for number, (name, value) in enumerate(terms):
            if name in files_harness.unsigned:
                continue
            changed = value[:-1] + ("0" if value[-1:] != "0" else "1")
            for altered in ([(name, changed)], []):
                query = urlencode([*terms[:number], *altered, *terms[number + 1 :]])
                assert not await files_harness.put(urlunsplit(address._replace(query=query)), JPEG, FACE), (
                    f"{name} cannot be changed"
                )
        assert await files_harness.files.stat(KEY) is None, "a refused upload leaves no file"

    async def test_a_file_that_is_there_is_not_overwritten(self, files_harness: FilesHarness) -> None:
        if not files_harness.keeps_the_first:
            pytest.skip("the store cannot refuse a second upload")
        await stored(files_harness)
        again = await files_harness.put(granted(files_harness), JPEG, LARGE)
        assert not again, "a second upload under a key is refused where `keeps_the_first`"
        assert b"".join(await content_of(files_harness)) == FACE, "the first file stays"

    async def test_another_type_is_not_taken(self, files_harness: FilesHarness) -> None:
        if not files_harness.minds_the_type:
            pytest.skip("the store cannot refuse another type")
        other = await files_harness.put(granted(files_harness), "image/png", b"\x89PNG\r\n\x1a\n a page")
        assert not other, "another type than was granted is refused where `minds_the_type`"
        assert await files_harness.files.stat(KEY) is None, "a refused upload leaves no file"

    async def test_more_than_was_granted_is_not_taken_or_is_seen(self, files_harness: FilesHarness) -> None:
        """The service checks the size with `stat` before it uses a file."""
        taken = await files_harness.put(granted(files_harness, limit=len(FACE) - 1), JPEG, FACE)
        found = await files_harness.files.stat(KEY)
        assert (found is not None) is taken, "a file is there exactly if the upload was accepted"
        assert found is None or found.size == len(FACE), "stat gives the true size, also above the granted one"

    async def test_it_leads_where_the_store_says(self, files_harness: FilesHarness) -> None:
        files, address = files_harness.files, urlsplit(granted(files_harness))
        is_elsewhere, receives = isinstance(files, ElsewhereFiles), isinstance(files, UploadReceiver)
        assert is_elsewhere is not receives, "uploads go to `upload_origin`, or the store receives them: one of both"
        if isinstance(files, ElsewhereFiles):
            assert files.upload_origin == f"{address.scheme}://{address.netloc}", (
                "`upload_origin` is the origin of its URLs"
            )


class TestFailures:
    """A failed read is not reported as an absent file, and faults contain no credentials."""

    async def test_a_store_that_is_away(self, files_harness: FilesHarness) -> None:
        await stored(files_harness)
        await files_harness.be_away()
        assert granted(files_harness, OTHER), "an address is signed here, and nobody is asked"
        for call in (files_harness.files.stat(KEY), files_harness.files.remove(KEY), content_of(files_harness)):
            with must_raise("a store that does not answer is unavailable", Unavailable):
                await call

    @pytest.mark.parametrize("fault", BROKEN_READS)
    async def test_a_read_that_fails_is_no_absence(self, files_harness: FilesHarness, fault: ProviderFault) -> None:
        await stored(files_harness)
        await files_harness.spoil_reads(fault)
        for key in (KEY, OTHER):
            with must_raise("a read that fails is no absence", Unavailable):
                await files_harness.files.stat(key)
            with must_raise("a read that fails is no absence", Unavailable):
                await content_of(files_harness, key)
        await files_harness.recover()
        assert await files_harness.files.stat(KEY) is not None, "after a failed read the file is still there"

    async def test_half_a_file_is_not_taken_for_all_of_it(self, files_harness: FilesHarness) -> None:
        await stored(files_harness)
        await files_harness.spoil_reads(ProviderFault.CUT_IN_BODY)
        with must_raise("half a file is not taken for all of it", Unavailable):
            await content_of(files_harness)

    async def test_credentials_that_are_refused(self, files_harness: FilesHarness) -> None:
        """The read raises instead of reporting an absent file. `check`, which passed before, raises NotConfigured."""
        files = files_harness.files
        if isinstance(files, Checkable):
            await files.check()
        await files_harness.refuse_credentials()
        with must_raise("refused credentials are a fault of the configuration", NotConfigured, Unavailable) as refused:
            await files.stat(KEY)
        check_hidden(files_harness.secrets, files, refused.value)
        if isinstance(files, Checkable):
            with must_raise("`check` finds credentials that are refused", NotConfigured):
                await files.check()

    async def test_no_credential_shows(self, files_harness: FilesHarness) -> None:
        """Neither the repr, nor a URL, nor a fault contains a credential."""
        address = granted(files_harness)
        with must_raise("a file that is not there cannot be read", Fault) as raised:
            await content_of(files_harness)
        check_hidden(files_harness.secrets, files_harness.files, address, raised.value)
