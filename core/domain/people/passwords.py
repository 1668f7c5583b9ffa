"""Rules of passwords, one-time codes and recovery codes (docs/dashboard.md "Sign-in")."""

import base64
import hmac
import re
import struct
import unicodedata
from collections.abc import Iterable
from hashlib import sha1, sha256

from ..errors import Refusal
from .guessable import is_guessable, own_words

SHORTEST, LONGEST = 12, 128
TOTP_SECONDS = 30
TOTP_DIGITS = 6
TOTP_SECRET_BYTES = 20
RECOVERY_CODES = 10
_RECOVERY_BYTES = 10


def new_password(text: str, names: Iterable[str] = ()) -> str:
    """Return a new password as it is hashed. `names`: what it must not consist of: the person's address, the account.

    Raises: Refusal VALIDATION_ERROR for one that is too short, too long or easily guessed.
    """
    password = unicodedata.normalize("NFC", text)
    if not SHORTEST <= len(password) <= LONGEST:
        raise Refusal("VALIDATION_ERROR", f"A password has {SHORTEST} to {LONGEST} characters: take a sentence")
    if is_guessable(password):
        raise Refusal(
            "VALIDATION_ERROR",
            "This password consists of what guessing programs try first: common words, rows of keys, digits. "
            "Choose another, such as four random words",
        )
    if is_guessable(password, own_words(names)):
        raise Refusal(
            "VALIDATION_ERROR",
            "This password consists of your address or the account's name: choose another, such as four random words",
        )
    return password


def given_password(text: str) -> str:
    """Return a password that was typed to sign in, in the form that is hashed."""
    return unicodedata.normalize("NFC", text)


def totp_code(secret: bytes, step: int) -> str:
    """Return the code of a time step (RFC 6238, SHA-1, six digits)."""
    digest = hmac.new(secret, struct.pack(">Q", step), sha1).digest()
    offset = digest[-1] & 0xF
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFF_FFFF
    return f"{number % 10**TOTP_DIGITS:0{TOTP_DIGITS}d}"


def totp_step(secret: bytes, code: str, now: float, last: int) -> int | None:
    """Return the step of a code that is valid now, one step early or late, and later than the last accepted one. None:
    the code is wrong or was used. Takes the same time for each code."""
    given = code.strip().replace(" ", "").encode("ascii", "replace")
    present = int(now) // TOTP_SECONDS
    found = None
    for step in (present - 1, present, present + 1):
        if hmac.compare_digest(totp_code(secret, step).encode(), given) and step > last:
            found = step
    return found


def totp_address(secret: bytes, person: str, issuer: str) -> str:
    """Return the `otpauth:` address for the QR code of an authenticator app."""
    from urllib.parse import quote

    text = base64.b32encode(secret).decode().rstrip("=")
    return f"otpauth://totp/{quote(issuer)}:{quote(person)}?secret={text}&issuer={quote(issuer)}"


def recovery_text(random: bytes) -> str:
    """Return a recovery code as people write it down: 16 letters and digits in groups of four."""
    text = base64.b32encode(random[:_RECOVERY_BYTES]).decode().lower()
    return "-".join(text[start : start + 4] for start in range(0, 16, 4))


def recovery_digest(code: str) -> bytes:
    """Return the digest by which a recovery code is stored: it has 80 random bits, so a plain digest suffices."""
    return sha256(re.sub(r"[^a-z2-7]", "", code.lower()).encode()).digest()
