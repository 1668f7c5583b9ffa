"""Documents on the local disk are encrypted, and no change of a file goes unnoticed (docs/security.md)."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.files import encrypted
from cambist.adapters.files.local import LocalFiles
from cambist.adapters.vault.aes import AesVault
from cambist.ports.faults import Refused
from cambist.ports.files import EncryptedFiles, StoredFile

KEY, OTHER = "5e" * 32, "0f" * 32
PEPPER = bytes(range(32))
BEFORE = AesVault({1: bytes(32)}, 1, PEPPER)
BETWEEN = AesVault({1: bytes(32), 2: bytes([7]) * 32}, 2, PEPPER)
AFTER = AesVault({2: bytes([7]) * 32}, 2, PEPPER)
PART = 1000
HEAD = 24
FRAME = 8 + 29
"""Bytes that the lengths, key id, nonce and tag add to a part."""
CONTENT = b"\xff\xd8\xff" + bytes(range(256)) * 10


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("cambist.adapters.files.encrypted", "cambist.adapters.files.local"):
        monkeypatch.setattr(f"{room}.PART", PART)


def files_in(folder: Path, vault: AesVault = BEFORE) -> LocalFiles:
    return LocalFiles(folder, "https://pay.example", vault, VirtualClock())


async def stored(files: LocalFiles, content: bytes, key: str = KEY) -> None:
    url = files.grant(key, "image/jpeg", 10**6, VirtualClock().now() + timedelta(minutes=10))

    async def parts() -> object:
        yield content

    await files.receive(key, dict(httpx.URL(url).params), parts())  # type: ignore[arg-type]  # an iterator it is


async def content_of(files: LocalFiles, key: str = KEY) -> bytes:
    return b"".join([part async for part in files.read(key)])


@pytest.mark.parametrize("size", [3, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 1])
async def test_content_of_any_size_is_read_as_it_was_and_lies_encrypted(tmp_path: Path, size: int) -> None:
    files, content = files_in(tmp_path), CONTENT[:size]
    await stored(files, content)
    assert await content_of(files) == content
    assert await files.stat(KEY) == StoredFile(key=KEY, size=size)
    written = (tmp_path / KEY).read_bytes()
    assert content[:3] not in written
    assert len(written) == HEAD + size + FRAME * max(1, -(-size // PART))


def _cut(whole: bytes) -> bytes:
    """Leave out the last part."""
    return whole[: HEAD + 2 * (PART + FRAME)]


def _cut_within(whole: bytes) -> bytes:
    return whole[:-1]


def _swapped(whole: bytes) -> bytes:
    """Exchange the first two parts, which have one size."""
    first, second = HEAD + PART + FRAME, HEAD + 2 * (PART + FRAME)
    return whole[:HEAD] + whole[first:second] + whole[HEAD:first] + whole[second:]


def _doubled(whole: bytes) -> bytes:
    return whole[: HEAD + PART + FRAME] + whole[HEAD:]


def _continued(whole: bytes) -> bytes:
    return whole + whole[HEAD : HEAD + PART + FRAME]


def _of_another_upload(whole: bytes) -> bytes:
    return whole[:8] + bytes(16) + whole[HEAD:]


def _plain(_whole: bytes) -> bytes:
    return CONTENT


def _empty(_whole: bytes) -> bytes:
    return b""


def _without_parts(whole: bytes) -> bytes:
    return whole[:HEAD]


@pytest.mark.parametrize(
    "change", [_cut, _cut_within, _swapped, _doubled, _continued, _of_another_upload, _plain, _empty, _without_parts]
)
async def test_a_changed_file_is_refused(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    files = files_in(tmp_path)
    await stored(files, CONTENT)
    path = tmp_path / KEY
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(Refused, match="altered"):
        await content_of(files)


async def test_a_flipped_bit_anywhere_is_noticed(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    await stored(files, CONTENT[:5])
    path = tmp_path / KEY
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(Refused):
            await content_of(files)


async def test_a_file_under_another_key_is_refused(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    await stored(files, CONTENT)
    (tmp_path / KEY).rename(tmp_path / OTHER)
    with pytest.raises(Refused, match="altered"):
        await content_of(files, OTHER)


async def test_parts_never_exceed_their_bound_in_memory(tmp_path: Path) -> None:
    """A file that states a huge part is refused before it is read."""
    files = files_in(tmp_path)
    await stored(files, CONTENT)
    path = tmp_path / KEY
    whole = path.read_bytes()
    path.write_bytes(whole[:HEAD] + b"\xff" * 8 + whole[HEAD + 8 :])
    with pytest.raises(Refused, match="too large"):
        await content_of(files)
    assert await files.stat(KEY) is None


async def test_a_file_is_encrypted_anew_with_the_current_key(tmp_path: Path) -> None:
    await stored(files_in(tmp_path), CONTENT)
    between = files_in(tmp_path, BETWEEN)
    assert isinstance(between, EncryptedFiles)
    assert (await between.key_of(KEY), await between.key_of(OTHER)) == (1, None)
    await between.encrypt_anew(KEY)
    assert await between.key_of(KEY) == 2
    assert await content_of(files_in(tmp_path, AFTER)) == CONTENT
    assert [each.name for each in tmp_path.iterdir()] == [KEY]


async def test_overhead_of_the_vault_fits_its_bound() -> None:
    assert len(BEFORE.encrypt(b"", "place")) < encrypted._OVERHEAD
