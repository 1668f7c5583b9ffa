"""The vault keeps what ports/vault.py promises, and a key file holds it together."""

import hmac
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from threading import Barrier

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.vault import key_file as room
from cambist.adapters.vault.aes import AesVault
from cambist.adapters.vault.key_file import add_key, drop_key, load_or_create
from cambist.adapters.vault.memory import MemoryVault
from cambist.ports.vault import Vault, VaultError
from tests.tables import table

OLD, NEW, PEPPER = bytes(range(32)), bytes(range(32, 64)), bytes(range(64, 96))
PLACE = "payments.payer_name:pay_1"


def one_key() -> AesVault:
    return AesVault({1: OLD}, 1, PEPPER)


@pytest.fixture(params=["sealed", "memory"])
def vault(request: pytest.FixtureRequest) -> Vault:
    return one_key() if request.param == "sealed" else MemoryVault()


class TestContract:
    @given(plain=st.binary(max_size=200), place=st.text(max_size=50))
    def test_encrypted_value_decrypts_with_its_associated_data(self, plain: bytes, place: str) -> None:
        vault = one_key()
        assert vault.decrypt(vault.encrypt(plain, place), place) == plain

    def test_the_content_does_not_show_and_equal_contents_look_different(self, vault: Vault) -> None:
        sealed = [vault.encrypt(b"Ivan Petrovich P.", PLACE) for _ in range(50)]
        assert len(set(sealed)) == 50
        assert not any(b"Ivan" in one for one in sealed)

    def test_a_value_moved_elsewhere_does_not_open(self, vault: Vault) -> None:
        sealed = vault.encrypt(b"4510 123456", PLACE)
        with pytest.raises(VaultError):
            vault.decrypt(sealed, "payments.payer_name:pay_2")

    def test_any_altered_byte_is_noticed(self, vault: Vault) -> None:
        sealed = vault.encrypt(b"4510 123456", PLACE)
        for position in range(len(sealed)):
            altered = bytearray(sealed)
            altered[position] ^= 1
            with pytest.raises(VaultError):
                vault.decrypt(bytes(altered), PLACE)

    def test_a_tag_fits_what_it_was_made_of_and_nothing_else(self, vault: Vault) -> None:
        tag = vault.tag(b"said", PLACE)
        assert vault.fits(tag, b"said", PLACE)
        assert vault.key_of(tag) == vault.current
        for said, place in ((b"Said", PLACE), (b"said", f"{PLACE}0"), (f"{PLACE[-1]}said".encode(), PLACE[:-1])):
            assert not vault.fits(tag, said, place)
        for position in range(1, len(tag)):
            altered = bytearray(tag)
            altered[position] ^= 1
            assert not vault.fits(bytes(altered), b"said", PLACE)
        for other in (b"", tag[:-1], tag + b"x", bytes((200,)) + tag[1:]):
            with pytest.raises(VaultError):
                vault.fits(other, b"said", PLACE)

    def test_a_tag_is_by_a_key_of_its_own(self) -> None:
        """The tag's key is neither the encryption key nor the pepper. A tag from before a key rotation still matches
        after it."""
        tag = one_key().tag(b"said", PLACE)
        for key in (OLD, PEPPER):
            assert not AesVault({1: PEPPER}, 1, OLD).fits(tag, b"said", PLACE)
            assert hmac.digest(key, b"said", "sha256") != tag[1:]
        assert AesVault({1: OLD, 2: NEW}, 2, PEPPER).fits(tag, b"said", PLACE)
        with pytest.raises(VaultError, match="key 1"):
            AesVault({2: NEW}, 2, PEPPER).fits(tag, b"said", PLACE)

    def test_any_cut_is_noticed(self, vault: Vault) -> None:
        sealed = vault.encrypt(b"4510 123456", PLACE)
        for length in range(len(sealed)):
            with pytest.raises(VaultError):
                vault.decrypt(sealed[:length], PLACE)

    def test_a_fingerprint_is_keyed_and_the_same_each_time(self) -> None:
        vault = one_key()
        secret = "ab" * 32
        assert vault.fingerprint(secret) == hmac.new(PEPPER, secret.encode(), sha256).digest()
        assert vault.fingerprint(secret) != AesVault({1: OLD}, 1, bytes(32)).fingerprint(secret)

    @given(st.text(st.characters(), max_size=50))
    def test_any_text_has_a_fingerprint(self, text: str) -> None:
        """Headers are fingerprinted before authorization, so no text may raise."""
        assert len(one_key().fingerprint(text)) == 32


class TestRotation:
    def test_old_key_still_decrypts_and_the_current_one_encrypts(self) -> None:
        before = one_key()
        after = AesVault({1: OLD, 2: NEW}, 2, PEPPER)
        assert after.decrypt(before.encrypt(b"x", PLACE), PLACE) == b"x"
        with pytest.raises(VaultError, match="key 2"):
            before.decrypt(after.encrypt(b"x", PLACE), PLACE)

    def test_the_same_id_with_another_key_does_not_open(self) -> None:
        with pytest.raises(VaultError):
            AesVault({1: NEW}, 1, PEPPER).decrypt(one_key().encrypt(b"x", PLACE), PLACE)


class TestSecrecy:
    def test_no_repr_shows_a_key(self) -> None:
        vault = AesVault({1: OLD, 2: NEW}, 2, PEPPER)
        shown = repr(vault) + str(vault) + f"{[vault]}"
        assert shown == "<AesVault>" * 2 + "[<AesVault>]"

    @table(
        "build",
        [
            lambda: AesVault({1: OLD}, 2, PEPPER),
            lambda: AesVault({}, 1, PEPPER),
            lambda: AesVault({1: OLD[:-1]}, 1, PEPPER),
            lambda: AesVault({1: OLD, 2: b""}, 1, PEPPER),
            lambda: AesVault({256: OLD}, 256, PEPPER),
            lambda: AesVault({-1: OLD}, -1, PEPPER),
            lambda: AesVault({1: OLD}, 1, PEPPER[:-1]),
        ],
    )
    def test_a_wrong_set_of_keys_is_refused_without_being_quoted(self, build: Callable[[], AesVault]) -> None:
        with pytest.raises(VaultError) as caught:
            build()
        assert not any(part in str(caught.value) for part in ("\\x", OLD.hex()[:8], PEPPER.hex()[:8]))


class TestKeyFile:
    def test_is_made_once_and_read_ever_after(self, tmp_path: Path) -> None:
        path = tmp_path / "data" / "vault.json"
        first = load_or_create(path)
        content = path.read_bytes()
        second = load_or_create(path)
        assert path.read_bytes() == content
        assert second.decrypt(first.encrypt(b"x", PLACE), PLACE) == b"x"
        assert second.fingerprint("s") == first.fingerprint("s")
        assert load_or_create(tmp_path / "other.json").fingerprint("s") != first.fingerprint("s")

    @pytest.mark.skipif(os.name != "posix", reason="modes are a POSIX matter")
    def test_only_the_owner_may_read_it(self, tmp_path: Path) -> None:
        path = tmp_path / "vault.json"
        before = os.umask(0)
        try:
            load_or_create(path)
        finally:
            os.umask(before)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.chmod(0o640)
        with pytest.raises(VaultError, match="0600"):
            load_or_create(path)

    def test_simultaneous_starts_read_the_same_file(self, tmp_path: Path) -> None:
        path = tmp_path / "vault.json"
        barrier = Barrier(8)

        def start() -> bytes:
            barrier.wait()
            return load_or_create(path).fingerprint("s")

        with ThreadPoolExecutor(8) as pool:
            prints = {job.result() for job in [pool.submit(start) for _ in range(8)]}
        assert len(prints) == 1
        assert [entry.name for entry in tmp_path.iterdir()] == ["vault.json"], "no draft is left"

    def test_second_writer_keeps_the_first_file(self, tmp_path: Path) -> None:
        path = tmp_path / "vault.json"
        first = load_or_create(path)
        room._create(path)
        assert load_or_create(path).fingerprint("s") == first.fingerprint("s")
        assert [entry.name for entry in tmp_path.iterdir()] == ["vault.json"]

    def test_a_key_added_by_hand_takes_over(self, tmp_path: Path) -> None:
        path = tmp_path / "vault.json"
        first = load_or_create(path)
        content = msgspec.json.decode(path.read_bytes())
        content["keys"]["2"] = NEW.hex()
        content["current"] = 2
        path.write_bytes(msgspec.json.encode(content))
        second = load_or_create(path)
        assert second.decrypt(first.encrypt(b"x", PLACE), PLACE) == b"x"
        assert second.encrypt(b"x", PLACE)[0] == 2

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{",
            b"\xff",
            b"[" * 100_000,
            b'{"current": 1, "keys": {"1": "zz"}, "pepper": "00"}',
            b'{"current": 1, "keys": {"1": "' + OLD.hex().encode() + b'"}}',
            b'{"current": 1, "keys": {"1": "' + OLD.hex().encode() + b'"}, "pepper": "0011"}',
            b'{"current": 2, "keys": {"1": "' + OLD.hex().encode() + b'"}, "pepper": "' + PEPPER.hex().encode() + b'"}',
        ],
    )
    def test_a_damaged_file_is_refused_and_left_as_it_is(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "vault.json"
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(VaultError) as caught:
            load_or_create(path)
        assert path.read_bytes() == content
        assert OLD.hex()[:8] not in str(caught.value)

    def test_a_place_that_cannot_be_written_is_a_vault_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(VaultError, match="cannot be read or written"):
            load_or_create(tmp_path / "file" / "vault.json")

    def test_a_record_of_the_file_shows_nothing(self, tmp_path: Path) -> None:
        content = room._KeyFile(current=1, keys={1: OLD.hex()}, pepper=PEPPER.hex())
        assert repr(content) == "<key file>"


class TestKeyFileRotation:
    """A fresh key beside the old ones; the old one goes when nothing needs it any more."""

    def test_new_key_encrypts_and_the_old_one_still_decrypts(self, tmp_path: Path) -> None:
        path = tmp_path / "vault.key"
        sealed, fingerprint = load_or_create(path).encrypt(b"x", "p"), load_or_create(path).fingerprint("s")
        assert add_key(path) == 2
        after = load_or_create(path)
        assert (after.current, sorted(after.keys)) == (2, [1, 2])
        assert after.key_of(sealed) == 1
        assert after.decrypt(sealed, "p") == b"x"
        assert after.key_of(after.encrypt(b"x", "p")) == 2
        assert after.fingerprint("s") == fingerprint, "API secrets stay valid"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [each.name for each in tmp_path.iterdir()] == ["vault.key"]

    def test_a_dropped_key_is_gone_and_its_id_is_never_given_again(self, tmp_path: Path) -> None:
        path = tmp_path / "vault.key"
        sealed = load_or_create(path).encrypt(b"x", "p")
        add_key(path)
        drop_key(path, 1)
        with pytest.raises(VaultError, match="key 1"):
            load_or_create(path).decrypt(sealed, "p")
        assert add_key(path) == 3

    @pytest.mark.parametrize(("number", "why"), [(1, "seals"), (7, "no key 7")])
    def test_current_and_unknown_keys_cannot_be_dropped(self, tmp_path: Path, number: int, why: str) -> None:
        path = tmp_path / "vault.key"
        load_or_create(path)
        before = path.read_bytes()
        with pytest.raises(VaultError, match=why):
            drop_key(path, number)
        assert path.read_bytes() == before
