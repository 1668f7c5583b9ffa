"""Notes of people on a payment (docs/dashboard.md "Payments"). They are encrypted, and neither logs nor the audit log
contain their text."""

from collections.abc import Callable

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Snapshot, Unit
from ...domain import ids
from ...domain.ids import canonical_uuid
from ...domain.payments.payments import Payment
from ...domain.people.payment_notes import NOTE, NoteBook, PaymentNote, PaymentNotes, read_note, with_note, without_note
from ...domain.people.people import User
from ...domain.people.roles import PersonRight
from ..common.encrypted import payment_notes_aad
from ..common.units import retrying
from ..payments.payments import get_payment
from .sessions import Actor, by_person, require
from .users import email_of

MADE_MEANWHILE = ("payment_notes_id",)


class ShownNote(msgspec.Struct, frozen=True, kw_only=True):
    """A note with the address of its author."""

    note: PaymentNote
    author: str
    """Empty when the person no longer exists."""
    is_own: bool

    def __repr__(self) -> str:
        return f"ShownNote({self.note!r}, ***)"


def open_book(ports: Ports, found: PaymentNotes | None) -> NoteBook:
    """Return the decrypted content. Raises: VaultError."""
    if found is None:
        return NoteBook()
    return msgspec.json.decode(ports.vault.decrypt(found.body, payment_notes_aad(found.id)), type=NoteBook)


async def read_book(ports: Ports, payment: Payment) -> NoteBook:
    """Return notes and sent links of a payment. Raises: VaultError."""
    return open_book(ports, await ports.storage.get(PaymentNotes, payment.id))


async def change_book(
    ports: Ports, unit: Unit, payment: Payment, change: Callable[[NoteBook], NoteBook], *, links: int = 0
) -> PaymentNotes:
    """Change the content in the unit; `links`: letters that this adds."""
    found = await unit[PaymentNotes].get(payment.id)
    book = change(open_book(ports, found))
    body = ports.vault.encrypt(msgspec.json.encode(book), payment_notes_aad(payment.id))
    if found is None:
        made = PaymentNotes(id=payment.id, account_id=payment.account_id, body=body, notes=len(book.notes), links=links)
        return unit[PaymentNotes].add(made)
    after = msgspec.structs.replace(found, body=body, notes=len(book.notes), links=found.links + links)
    return unit[PaymentNotes].save(after)


async def list_notes(ports: Ports, actor: Actor, payment_id: str) -> list[ShownNote]:
    """Return the notes on a payment, oldest first. Raises: Refusal PERSON_RIGHT_MISSING, PAYMENT_NOT_FOUND."""
    require(actor, PersonRight.NOTES)
    payment = await get_payment(ports, actor.caller, payment_id)
    book = await read_book(ports, payment)
    async with ports.storage.snapshot() as seen:
        names = await names_of(ports, seen, {each.author for each in book.notes})
    return [
        ShownNote(note=each, author=names.get(each.author, ""), is_own=each.author == actor.user.id)
        for each in book.notes
    ]


async def names_of(ports: Ports, seen: Snapshot, people: set[str]) -> dict[str, str]:
    """Return the addresses of people by id; those who no longer exist are left out."""
    found: dict[str, str] = {}
    for user_id in sorted(people):
        user = await seen[User].get(user_id)
        if user is not None:
            found[user_id] = email_of(ports, user)
    return found


async def add_note(ports: Ports, actor: Actor, payment_id: str, text: str, *, key: str = "") -> PaymentNote:
    """Add a note to a payment, once per key. Without a UUID as key, each call adds one.

    Raises: Refusal PERSON_RIGHT_MISSING, PAYMENT_NOT_FOUND, VALIDATION_ERROR; INVALID_STATE when the payment has
    NOTES_MOST notes.
    """
    require(actor, PersonRight.NOTES)
    payment = await get_payment(ports, actor.caller, payment_id)
    note = PaymentNote(
        id=ids.prefixed(NOTE, canonical_uuid(key) or ports.ids.uuid()),
        author=actor.user.id,
        at=ports.clock.now(),
        text=read_note(text),
    )
    ports = by_person(ports, actor, "payment.note", payment.id)

    async def work(unit: Unit) -> PaymentNote:
        await change_book(ports, unit, payment, lambda book: with_note(book, note))
        return note

    return await retrying(ports.storage, work, again_on=MADE_MEANWHILE)


async def delete_note(ports: Ports, actor: Actor, payment_id: str, note_id: str) -> None:
    """Delete a note of the person's own. Raises: Refusal PERSON_RIGHT_MISSING, PAYMENT_NOT_FOUND; NOTE_NOT_FOUND, also
    for a note of another person."""
    require(actor, PersonRight.NOTES)
    payment = await get_payment(ports, actor.caller, payment_id)
    ports = by_person(ports, actor, "payment.note_delete", payment.id)

    async def work(unit: Unit) -> None:
        await change_book(ports, unit, payment, lambda book: without_note(book, note_id, actor.user.id))

    await retrying(ports.storage, work)
