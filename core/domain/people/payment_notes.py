"""Notes of a merchant's people on a payment, and the letters by which they sent its link (docs/dashboard.md
"Payments")."""

from datetime import datetime, timedelta

import msgspec

from ..errors import Refusal
from ..masked import Masked
from ..shapes import has_control

NOTE = "note_"
NOTES_MOST = 50
"""Notes on one payment."""
NOTE_LONGEST = 1000
"""Characters of a note."""
LINKS_MOST = 5
"""Letters with the link of one payment within LINKS_WITHIN."""
LINKS_WITHIN = timedelta(hours=1)
_SENT_KEPT = 20
"""Letters that the record remembers, the newest."""


class PaymentNote(Masked, frozen=True, kw_only=True):
    """A note. Only its author may delete it."""

    _shown = ("id", "author", "at")

    id: str
    author: str
    """Id of the person."""
    at: datetime
    text: str


class SentLink(Masked, frozen=True, kw_only=True):
    """A letter with the payment's link."""

    _shown = ("author", "at")

    author: str
    at: datetime
    to: str
    """The masked address."""


class NoteBook(Masked, frozen=True, kw_only=True):
    """Decrypted content of a payment's record."""

    notes: tuple[PaymentNote, ...] = ()
    """Oldest first."""
    sent: tuple[SentLink, ...] = ()
    """Oldest first."""


class PaymentNotes(Masked, frozen=True, kw_only=True):
    """Stored notes and sent links of one payment. One record holds all of them, so that its version guards their
    number."""

    _shown = ("id", "account_id", "notes", "links")

    id: str
    """The payment's id."""
    account_id: str
    body: bytes
    """The NoteBook, encrypted."""
    notes: int = 0
    """Number of notes."""
    links: int = 0
    """Number of letters ever sent."""
    version: int = 0


def read_note(text: str) -> str:
    """Return the text of a note: trimmed, with plain line ends. Raises: Refusal VALIDATION_ERROR."""
    clean = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if not clean or len(clean) > NOTE_LONGEST or has_control(clean.replace("\n", " ").replace("\t", " ")):
        raise Refusal("VALIDATION_ERROR", f"A note has 1 to {NOTE_LONGEST} printable characters")
    return clean


def with_note(book: NoteBook, note: PaymentNote) -> NoteBook:
    """Return the book with one more note; the same note twice is one. Raises: Refusal INVALID_STATE when it is full."""
    if any((each.id, each.author) == (note.id, note.author) for each in book.notes):
        return book
    if len(book.notes) >= NOTES_MOST:
        raise Refusal("INVALID_STATE", f"The payment has {NOTES_MOST} notes already: delete one of yours first")
    return msgspec.structs.replace(book, notes=(*book.notes, note))


def without_note(book: NoteBook, note_id: str, author: str) -> NoteBook:
    """Return the book without a note of this author. Raises: Refusal NOTE_NOT_FOUND, also for a note of another
    person."""
    left = tuple(each for each in book.notes if not (each.id == note_id and each.author == author))
    if len(left) == len(book.notes):
        raise Refusal("NOTE_NOT_FOUND", "You have no such note on this payment")
    return msgspec.structs.replace(book, notes=left)


def with_link(book: NoteBook, link: SentLink) -> NoteBook:
    """Return the book with one more letter. Raises: Refusal LINK_LIMIT after LINKS_MOST within LINKS_WITHIN."""
    recent = [each.at for each in book.sent if link.at - each.at < LINKS_WITHIN]
    if len(recent) >= LINKS_MOST:
        wait = recent[-LINKS_MOST] + LINKS_WITHIN - link.at
        raise Refusal(
            "LINK_LIMIT",
            f"The link was sent {LINKS_MOST} times within an hour: try again later",
            retry_after=max(1, int(wait.total_seconds())),
        )
    return msgspec.structs.replace(book, sent=(*book.sent, link)[-_SENT_KEPT:])
