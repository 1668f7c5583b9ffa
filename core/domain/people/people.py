"""Records of merchants' people (docs/dashboard.md "People").

E-mail addresses are encrypted, and found by a keyed digest. Tokens of sessions, invitations and letters exist only in
browsers and letters; the storage has their digests.
"""

import re
import unicodedata
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from ..accounts.accounts import Mode
from ..errors import Refusal
from ..masked import Masked
from .roles import MONEY_ROLES, Role

USER = "usr_"
INVITATION = "inv_"

EMAIL_LONGEST = 254
_EMAIL = re.compile(r"[^\s@<>()\[\],;:\\\"]{1,64}@[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?\.[a-z0-9-]{2,63}\Z")

INVITATION_LIVES = timedelta(days=7)
RESET_LIVES = timedelta(minutes=30)
EMAIL_CHANGE_LIVES = timedelta(minutes=30)
STEP_UP_LIVES = timedelta(minutes=10)
"""How long a confirmed password or passkey lets a person do what needs one."""
SEEN_EVERY = timedelta(minutes=1)
"""A session's row is written at most this often because the person is there."""
MEMBERS_MOST = 200
"""People of one account, at most."""
SESSIONS_MOST = 20
"""Sessions of one person, at most; a further one ends the oldest."""


class User(Masked, frozen=True, kw_only=True):
    """A person. The same person may belong to several accounts."""

    _shown = ("id", "created_at", "disabled_at", "security")

    id: str
    email: bytes
    """Encrypted."""
    email_digest: bytes
    """The vault's digest of the address in lower case."""
    created_at: datetime
    language: str = "ru"
    password: bytes | None = None
    """Argon2id hash, encrypted; None: no password is set."""
    totp: bytes | None = None
    """Secret of the authenticator app, encrypted; None: none is set up."""
    totp_step: int = 0
    """Last accepted time step; a code is accepted once."""
    totp_pending: bytes | None = None
    """Secret that awaits its first code, encrypted."""
    recovery: tuple[bytes, ...] = ()
    """Digests of unused recovery codes."""
    security: int = 0
    """Rises with each change of password or factors: sessions and letters of an earlier number are void."""
    disabled_at: datetime | None = None
    """When an operator disabled the person in all accounts."""
    version: int = 0

    @property
    def has_second_factor(self) -> bool:
        return self.totp is not None


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """A person in one account."""

    id: str
    """`<account>:<user>`."""
    account_id: str
    user_id: str
    role: Role
    created_at: datetime
    shops: tuple[str, ...] | None = None
    """Shops to which the person is limited; None: all."""
    live: bool = True
    """Whether the person may enter live mode."""
    invited_by: str | None = None
    """The person who invited; None: an operator."""
    seen_at: datetime | None = None
    """When the person last signed in to this account or switched to it."""
    version: int = 0


class Invitation(Masked, frozen=True, kw_only=True):
    """An invitation by a link. It gives no access until its holder accepts it."""

    _shown = ("id", "account_id", "role", "created_at", "expires_at", "accepted_at", "revoked_at")

    id: str
    account_id: str
    email: bytes
    """Encrypted."""
    email_digest: bytes
    token_digest: bytes
    role: Role
    created_at: datetime
    expires_at: datetime
    shops: tuple[str, ...] | None = None
    live: bool = True
    invited_by: str | None = None
    """The person who invites; None: an operator."""
    accepted_at: datetime | None = None
    revoked_at: datetime | None = None
    version: int = 0

    def is_open(self, now: datetime) -> bool:
        """Return whether it can still be accepted."""
        return self.accepted_at is None and self.revoked_at is None and now < self.expires_at


class Session(Masked, frozen=True, kw_only=True):
    """A signed-in browser."""

    _shown = ("user_id", "account_id", "mode", "created_at", "seen_at", "method")

    id: str
    """Digest of the token."""
    user_id: str
    account_id: str
    mode: Mode
    created_at: datetime
    seen_at: datetime
    method: str
    """`password`, `passkey` or `link`."""
    security: int
    """The person's security number at the sign-in."""
    stepped_up_at: datetime | None = None
    device: str = ""
    """Browser and system, for people."""
    network: str = ""
    """Network of the client at the sign-in."""
    version: int = 0


class Letter(Masked, frozen=True, kw_only=True):
    """A letter to a person that waits to be sent, encrypted as a whole."""

    _shown = ("id", "created_at")

    id: str
    body: bytes
    created_at: datetime
    version: int = 0


class ResetToken(Masked, frozen=True, kw_only=True):
    """A link by which a person sets a new password. Bound to the person's address and security number."""

    _shown = ("user_id", "expires_at")

    id: str
    """Digest of the token."""
    user_id: str
    email_digest: bytes
    security: int
    expires_at: datetime
    version: int = 0


def membership_id(account_id: str, user_id: str) -> str:
    return f"{account_id}:{user_id}"


def read_email(text: str) -> str:
    """Return an e-mail address in its stored form: normalized, in lower case. Raises: Refusal VALIDATION_ERROR."""
    address = unicodedata.normalize("NFC", text.strip()).lower()
    if len(address) > EMAIL_LONGEST or not address.isascii() or not address.isprintable() or not _EMAIL.match(address):
        raise Refusal("VALIDATION_ERROR", "This is not an e-mail address: write it like olga@shop.example")
    return address


def masked_email(address: str) -> str:
    """Return an address for logs and lists of strangers: `o***@shop.example`."""
    name, _, host = address.partition("@")
    return f"{name[:1]}***@{host}"


def token_digest(token: str) -> str:
    """Return the digest by which a token is stored and found. Tokens are random, so a plain digest suffices."""
    return sha256(token.encode()).hexdigest()


def idle_limit(role: Role) -> timedelta:
    """Return how long a session of this role may be unused."""
    return timedelta(minutes=30) if role in MONEY_ROLES else timedelta(hours=12)


def absolute_limit(role: Role) -> timedelta:
    """Return how long a session of this role may last."""
    return timedelta(hours=12) if role in MONEY_ROLES else timedelta(days=7)


PASSKEYS_MOST = 20
PASSKEY_NAME_LONGEST = 60


class Passkey(Masked, frozen=True, kw_only=True):
    """A passkey of a person."""

    _shown = ("user_id", "name", "created_at")

    id: str
    """The credential's id, in base64url."""
    user_id: str
    rp_id: str
    """The host at which it was made; it works nowhere else."""
    public_key: bytes
    sign_count: int
    """Last counter that it sent; passkeys on several devices always send 0."""
    name: str
    is_synced: bool
    created_at: datetime
    used_at: datetime | None = None
    version: int = 0


class UsedChallenge(msgspec.Struct, frozen=True, kw_only=True):
    """Mark of a passkey challenge that was answered, rightly or not: it counts once."""

    id: str
    """Digest of the challenge."""
    expires_at: datetime
    version: int = 0
