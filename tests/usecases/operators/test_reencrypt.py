"""Rotation of the vault's keys: everything sealed is sealed anew, beside a working service, and broken off anywhere."""

import ast
import asyncio
import types
import typing
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

import cambist
from cambist.adapters.clock import VirtualClock
from cambist.adapters.files.local import LocalFiles
from cambist.adapters.storage.table.catalogue import CATALOGUE
from cambist.adapters.vault.aes import AesVault
from cambist.core.domain.accounts.accounts import Account, ApiKey
from cambist.core.domain.chains import ChainHead
from cambist.core.domain.kyc.clients import Client
from cambist.core.domain.kyc.kyc import Upload
from cambist.core.domain.money import Rub, Usdt
from cambist.core.domain.payments.payments import Payment
from cambist.core.domain.webhooks.events import Event
from cambist.core.usecases.common.encrypted import ENCRYPTED_FIELDS, EncryptedField
from cambist.core.usecases.common.units import retrying
from cambist.core.usecases.operators import reencrypt as room
from cambist.core.usecases.operators.reencrypt import KeyReport, inspect_keys, reencrypt
from cambist.ports.bundle import Ports
from cambist.ports.storage import OneOf, Unit
from tests.apps import open_test_app
from tests.contracts.storage_kit import START
from tests.planting import beneath

PEPPER = bytes(range(32))
OLD, NEW = bytes(32), bytes([7]) * 32
BEFORE = AesVault({1: OLD}, 1, PEPPER)
BETWEEN = AesVault({1: OLD, 2: NEW}, 2, PEPPER)
AFTER = AesVault({2: NEW}, 2, PEPPER)

NOT_ENCRYPTED = {
    "ApiKey.secret_digest": "a digest under the pepper",
    "Client.phone_digest": "a digest under the pepper",
    "Payment.payer_email_digest": "a digest under the pepper",
    "Exchange.phone_digest": "a digest under the pepper",
    "Exchange.active_slot": "a digest under the pepper",
    "Upload.holder": "a digest under the pepper",
    "Operator.digest": "a digest under the pepper",
    "User.email_digest": "a digest under the pepper",
    "Passkey.public_key": "a public key",
    "User.recovery": "digests of random codes",
    "Invitation.email_digest": "a digest under the pepper",
    "Invitation.token_digest": "a digest of a random token",
    "ResetToken.email_digest": "a digest under the pepper",
    "DayHead.leaves": "hashes of the accounts' days with random salts",
    "JournalEntry.seal": "a link of the ledger's chain, and a tag, for which that of the head stands",
    "AuditEntry.seal": "the same of the audit log's",
    "ChainHead.seal": "a link of a chain",
    "Logo.body": "a picture for everybody",
    "Withdrawal.blob": "a signed transfer, which is broadcast for all to see",
    "Exchange.blob": "a signed transfer, which is broadcast for all to see",
    "ExchangeTransfer.sent_back": "a signed transfer, which is broadcast for all to see",
}
"""Fields of type bytes that are not encrypted, each with the reason."""


def holds_bytes(hint: Any, seen: frozenset[Any] = frozenset()) -> bool:
    """Whether a value of this type has bytes in it, however deep."""
    if hint is bytes:
        return True
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct) and hint not in seen:
        return any(holds_bytes(each, seen | {hint}) for each in get_type_hints(hint).values())
    return any(holds_bytes(each, seen) for each in get_args(hint))


def test_every_bytes_field_is_reencrypted_or_known_as_not_encrypted() -> None:
    """A new sealed field that a rotation forgot would be lost with the old key."""
    found = {
        f"{table.kind.__name__}.{name}"
        for table in CATALOGUE
        for name, hint in get_type_hints(table.kind).items()
        if holds_bytes(hint)
    }
    reencrypted = {room.field_name(field) for field in room._ALL}
    assert found == reencrypted | set(NOT_ENCRYPTED)
    assert not reencrypted & set(NOT_ENCRYPTED)


def calls(name: str) -> Iterator[tuple[Path, ast.Call]]:
    """Every call of a method of this name in the use cases."""
    for path in sorted((Path(cambist.__file__).parent / "core" / "usecases").rglob("*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if f".{name}(" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
                yield path, node


def test_core_encrypts_only_with_associated_data_of_the_list() -> None:
    """Encrypted text could also be in a field of another type, so the calls of `encrypt` are checked as well."""
    known = {field.aad.__name__ for field in ENCRYPTED_FIELDS}
    # A secret that waits for a second operator lives as long as its action: some days.
    allowed = {
        ("links.py", "_PLACE"),
        # A link in a letter, which no row holds.
        ("email_change.py", "_PLACE"),
        ("doctor.py", "aad"),
        ("encrypted.py", "aad"),
        ("accounts.py", "waiting_secret_aad"),
        # A request that waits for a second person for three days at most.
        ("second_person.py", "asked_arguments_aad"),
    }
    sealing = [(path, call) for path, call in calls("encrypt") if ast.unparse(call.func).endswith("vault.encrypt")]
    assert len(sealing) > len(known)
    for path, call in sealing:
        aad = call.args[1]
        named = aad.func.id if isinstance(aad, ast.Call) and isinstance(aad.func, ast.Name) else ast.unparse(aad)
        assert named in known or (path.name, named) in allowed, f"{path}: {ast.unparse(call)}"


def blank(kind: type[Any], record_id: str, **given: Any) -> Any:
    """A record with as little in it as its type allows."""
    hints = get_type_hints(kind)
    needed = {
        field.name: filler(hints[field.name])
        for field in msgspec.structs.fields(kind)
        if field.required and field.name not in given
    }
    return kind(**{**needed, "id": record_id, **given})


def filler(hint: Any) -> Any:
    if get_origin(hint) in (typing.Union, types.UnionType):
        return None if type(None) in get_args(hint) else filler(get_args(hint)[0])
    if hint is datetime:
        return START
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return next(iter(hint))
    if hint in (Rub, Usdt):
        return hint(0)
    return {str: "x", int: 0, bool: False, bytes: b"x"}[hint]


def plain_of(field: EncryptedField, record_id: str) -> bytes:
    return f"{room.field_name(field)} of {record_id}".encode()


def encrypted_records(vault: AesVault, count: int, prefix: str = "old") -> list[Any]:
    """`count` records of each kind, with every sealed field filled."""
    records = []
    for kind in {field.record: None for field in ENCRYPTED_FIELDS}:
        fields = [field for field in ENCRYPTED_FIELDS if field.record is kind]
        for number in range(count):
            record_id = f"{prefix}-{number}"
            digests = ("phone_digest", "email_digest", "token_digest")
            unique = {name: f"{prefix}{number}".encode() for name in digests if name in get_type_hints(kind)}
            values = {
                field.name: field.mark + vault.encrypt(plain_of(field, record_id), field.aad(record_id))
                for field in fields
            }
            records.append(blank(kind, record_id, **unique, **values))
    return records


@asynccontextmanager
async def storage_of(*records: Any) -> AsyncIterator[Ports]:
    async with open_test_app(receiver=False) as app:
        app.made_up = True
        async with beneath(app.ports).unit() as unit:
            for head in await unit[ChainHead].find():
                unit[ChainHead].remove(head)
            for key in await unit[ApiKey].find():
                unit[ApiKey].remove(key)
            for record in records:
                unit[type(record)].add(record)
            await unit.commit()
        yield app.ports
        # The app checks every payload at its end, and these events have invalid ones.
        async with beneath(app.ports).unit() as unit:
            for event in await unit[Event].find(limit=10_000):
                unit[Event].remove(event)
            await unit.commit()


def keyed(ports: Ports, vault: AesVault) -> Ports:
    return msgspec.structs.replace(ports, vault=vault)


async def test_everything_opens_with_the_new_key_alone() -> None:
    async with storage_of(*encrypted_records(BEFORE, 3)) as ports:
        before = await inspect_keys(keyed(ports, BETWEEN))
        assert (before.old_in_use, before.droppable) == ((1,), ())
        assert {each.field: each.by_key for each in before.fields} == {
            room.field_name(f): {1: 3} for f in ENCRYPTED_FIELDS
        }

        report = await reencrypt(keyed(ports, BETWEEN))
        assert (report.old_in_use, report.droppable, report.unopened_count) == ((), (1,), 0)
        assert report.in_use == {2: 3 * len(ENCRYPTED_FIELDS)}
        assert report.reencrypted == 3 * len({field.record for field in ENCRYPTED_FIELDS})

        async with ports.storage.unit() as unit:
            for field in ENCRYPTED_FIELDS:
                for record in await unit[field.record].find(id="old-0"):
                    assert AFTER.decrypt(field.value(record) or b"", field.aad("old-0")) == plain_of(field, "old-0")


async def test_value_encrypted_with_the_current_key_is_left_alone() -> None:
    """A second run writes nothing, so concurrent readers of a record do not become stale."""
    async with storage_of(*encrypted_records(AFTER, 2)) as ports:
        assert (await reencrypt(keyed(ports, BETWEEN))).reencrypted == 0
        async with ports.storage.unit() as unit:
            assert {record.version for record in await unit[Client].find()} == {0}


async def test_broken_off_anywhere_another_run_goes_on() -> None:
    many = room.AT_ONCE + 10
    async with storage_of(*encrypted_records(BEFORE, many)) as ports:
        ours = keyed(ports, BETWEEN)
        commits = 0

        class BrokenOff(Exception):
            pass

        def breaks(_kind: str, _seen: int, reencrypted: int) -> None:
            nonlocal commits
            commits += reencrypted > 0
            if commits == 2:
                raise BrokenOff

        with pytest.raises(BrokenOff):
            await reencrypt(ours, progress=breaks)
        half = await inspect_keys(ours)
        assert set(half.in_use) == {1, 2}
        report = await reencrypt(ours)
        assert (report.old_in_use, report.in_use) == ((), {2: many * len(ENCRYPTED_FIELDS)})
        assert 0 < report.reencrypted < many * len({field.record for field in ENCRYPTED_FIELDS})


async def test_a_record_that_changes_meanwhile_loses_neither_change() -> None:
    """The version guards each commit: the loser reads again."""
    async with storage_of(*encrypted_records(BEFORE, 20)) as ports:

        async def rename() -> None:
            for number in range(20):

                async def work(unit: Unit, number: int = number) -> None:
                    account = await unit[Account].get(f"old-{number}")
                    assert account is not None
                    await asyncio.sleep(0)
                    unit[Account].save(msgspec.structs.replace(account, name=f"new {number}"))

                await retrying(ports.storage, work)

        report, *_ = await asyncio.gather(reencrypt(keyed(ports, BETWEEN)), rename(), rename())
        assert report.old_in_use == ()
        async with ports.storage.unit() as unit:
            names = {
                account.id: account.name for account in await unit[Account].find() if account.id.startswith("old-")
            }
        assert names == {f"old-{number}": f"new {number}" for number in range(20)}


async def test_value_encrypted_with_the_old_key_meanwhile_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is dropped too early takes data with it."""
    async with storage_of(*encrypted_records(BEFORE, 1)) as ports:
        late = blank(Payment, "pay-late", private=BEFORE.encrypt(b"x", "payments.private:pay-late"))
        walks = 0
        original = room._walk

        async def walk(*arguments: Any, writes: bool) -> KeyReport:
            nonlocal walks
            walks += 1
            report = await original(*arguments, writes=writes)
            if writes:  # as another process would, right behind the walk
                async with beneath(ports).unit() as unit:
                    unit[Payment].add(late)
                    await unit.commit()
            return report

        monkeypatch.setattr(room, "_walk", walk)
        report = await reencrypt(keyed(ports, BETWEEN))
        assert walks == 2
        assert (report.old_in_use, report.in_use[1], report.droppable) == ((1,), 1, ())


async def test_missing_or_undecryptable_value_does_not_stop_others_of_its_record() -> None:
    lost = AesVault({9: bytes([9]) * 32}, 9, PEPPER)
    field = next(each for each in ENCRYPTED_FIELDS if (each.record, each.name) == (Account, "previous_secret"))
    firsts = {"acc-none": None, "acc-lost": lost.encrypt(b"x", field.aad("acc-lost"))}
    records = [
        blank(Account, name, webhook_secret=first, previous_secret=BEFORE.encrypt(b"former", field.aad(name)))
        for name, first in firsts.items()
    ]
    async with storage_of(*records) as ports:
        told = list[tuple[str, int, int]]()
        report = await reencrypt(keyed(ports, BETWEEN), progress=lambda *each: told.append(each))
        assert (report.reencrypted, report.unopened_count, report.in_use[2]) == (2, 1, 2)
        async with ports.storage.unit() as unit:
            for account in await unit[Account].find(id=OneOf(tuple(firsts))):
                assert account.previous_secret is not None
                assert AFTER.decrypt(account.previous_secret, field.aad(account.id)) == b"former"
                assert account.webhook_secret == firsts[account.id]
            accounts = len(await unit[Account].find())
        assert [each for each in told if each[0] == "Account"] == [("Account", accounts, 2)]


async def test_undecryptable_value_is_named_and_left_as_it_is() -> None:
    lost = AesVault({9: bytes([9]) * 32}, 9, PEPPER)
    record = blank(Client, "lost", phone=lost.encrypt(b"+7", "clients.phone:lost"), phone_digest=b"1")
    moved = blank(Client, "moved", phone=BEFORE.encrypt(b"+7", "clients.phone:other"), phone_digest=b"2")
    async with storage_of(record, moved, *encrypted_records(BEFORE, 1)) as ports:
        report = await reencrypt(keyed(ports, BETWEEN))
        assert report.unopened_count == 2
        assert [(each.field, each.record_id) for each in report.unopened] == [
            ("Client.phone", "lost"),
            ("Client.phone", "moved"),
        ]
        assert "key 9" in report.unopened[0].reason
        assert report.old_in_use == (1, 9)
        async with ports.storage.unit() as unit:
            assert (await unit[Client].get("lost")) == record


KEY, GONE = "5e" * 32, "0f" * 32


def files_in(folder: Path, vault: AesVault) -> LocalFiles:
    return LocalFiles(folder, "https://pay.example", vault, VirtualClock())


async def uploaded(folder: Path, key: str) -> None:
    """A document that the old key encrypts."""
    files = files_in(folder, BEFORE)
    address = files.grant(key, "application/pdf", 1000, VirtualClock().now() + timedelta(minutes=10))

    async def parts() -> AsyncIterator[bytes]:
        yield b"%PDF-1.7"

    await files.receive(key, dict(parse_qsl(urlsplit(address).query)), parts())


class _Tidied(LocalFiles):
    """The row of a document goes while the document is encrypted anew, as a worker's tidying may have it."""

    ports: Ports

    async def encrypt_anew(self, key: str) -> None:
        async with self.ports.storage.unit() as unit:
            [row] = await unit[Upload].find(id=key)
            unit[Upload].remove(row)
            await unit.commit()
        await self.remove(key)
        (self._folder / key).write_bytes(b"there again")


async def test_documents_are_counted_and_encrypted_anew(tmp_path: Path) -> None:
    await uploaded(tmp_path, KEY)
    async with storage_of(blank(Upload, KEY), blank(Upload, GONE)) as ports:
        ours = msgspec.structs.replace(keyed(ports, BETWEEN), files=files_in(tmp_path, BETWEEN))
        before = await inspect_keys(ours)
        assert ({each.field: each.by_key for each in before.fields}, before.old_in_use) == (
            {room.DOCUMENTS: {1: 1}},
            (1,),
        )
        report = await reencrypt(ours)
        assert (report.in_use, report.reencrypted, report.droppable) == ({2: 1}, 1, (1,))
    assert [part async for part in files_in(tmp_path, AFTER).read(KEY)] == [b"%PDF-1.7"]


async def test_a_document_that_was_removed_meanwhile_does_not_come_back(tmp_path: Path) -> None:
    await uploaded(tmp_path, KEY)
    async with storage_of(blank(Upload, KEY)) as ports:
        files = _Tidied(tmp_path, "https://pay.example", BETWEEN, VirtualClock())
        files.ports = ports
        await reencrypt(msgspec.structs.replace(keyed(ports, BETWEEN), files=files))
    assert [*tmp_path.iterdir()] == []


async def test_a_document_that_does_not_decrypt_is_named(tmp_path: Path) -> None:
    await uploaded(tmp_path, KEY)
    (tmp_path / KEY).write_bytes((tmp_path / KEY).read_bytes()[:-1])
    async with storage_of(blank(Upload, KEY)) as ports:
        ours = msgspec.structs.replace(keyed(ports, BETWEEN), files=files_in(tmp_path, BETWEEN))
        [unopened] = (await inspect_keys(ours)).unopened
    assert (unopened.field, unopened.record_id) == (room.DOCUMENTS, KEY)
