"""Roles of a merchant's people, and the rights of each: one table (docs/dashboard.md "Roles")."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from ..accounts.accounts import Mode
from ..accounts.key_terms import Right


class Role(StrEnum):
    """Role of a person in one account."""

    OWNER = "owner"
    ADMIN = "admin"
    FINANCE = "finance"
    SUPPORT = "support"
    DEVELOPER = "developer"
    VIEWER = "viewer"


class PersonRight(StrEnum):
    """Rights of people. The first seven are those of API keys (key_terms.py: `Right`); no key can have the others."""

    READ = Right.READ.value
    PAYMENTS = Right.PAYMENTS.value
    REFUNDS = Right.REFUNDS.value
    EXCHANGES = Right.EXCHANGES.value
    KYC = Right.KYC.value
    WEBHOOKS = Right.WEBHOOKS.value
    SANDBOX = Right.SANDBOX.value
    MONEY = "money"
    """Balance, settlements, payouts, turnover."""
    PAYER_DATA = "payer_data"
    """Unmasked phone and e-mail of a payer; each look is audited."""
    EXPORT = "export"
    APPROVE = "approve"
    """Approving the refund of another person."""
    PAYOUT_DETAILS = "payout_details"
    """The wallet to which payouts go."""
    KEYS = "keys"
    LOGS = "logs"
    """The log of requests, and webhooks with their bodies."""
    SHOPS = "shops"
    PEOPLE = "people"
    AUDIT = "audit"
    NOTES = "notes"
    """Notes on payments: they may contain what a payer said, so a viewer does not read them."""
    OWNER = "owner"
    """Making another person an owner, and closing the account."""


class Grant(msgspec.Struct, frozen=True):
    """How a role has a right."""

    modes: tuple[Mode, ...] = tuple(Mode)
    step_up: bool = False
    """Whether the person must have confirmed the password or passkey within the last minutes."""


_YES = Grant()
_CONFIRMED = Grant(step_up=True)
_TEST = Grant(modes=(Mode.TEST,))

_ALL_READ = {PersonRight.READ: _YES}

ROLES: Mapping[Role, Mapping[PersonRight, Grant]] = {
    Role.OWNER: {
        **_ALL_READ,
        PersonRight.PAYMENTS: _YES,
        PersonRight.REFUNDS: _YES,
        PersonRight.EXCHANGES: _YES,
        PersonRight.KYC: _YES,
        PersonRight.WEBHOOKS: _CONFIRMED,
        PersonRight.SANDBOX: _YES,
        PersonRight.MONEY: _YES,
        PersonRight.PAYER_DATA: _CONFIRMED,
        PersonRight.EXPORT: _CONFIRMED,
        PersonRight.APPROVE: _CONFIRMED,
        PersonRight.PAYOUT_DETAILS: _CONFIRMED,
        PersonRight.KEYS: _CONFIRMED,
        PersonRight.LOGS: _YES,
        PersonRight.SHOPS: _CONFIRMED,
        PersonRight.PEOPLE: _CONFIRMED,
        PersonRight.AUDIT: _YES,
        PersonRight.NOTES: _YES,
        PersonRight.OWNER: _CONFIRMED,
    },
    Role.ADMIN: {
        **_ALL_READ,
        PersonRight.PAYMENTS: _YES,
        PersonRight.REFUNDS: _YES,
        PersonRight.EXCHANGES: _YES,
        PersonRight.KYC: _YES,
        PersonRight.WEBHOOKS: _CONFIRMED,
        PersonRight.SANDBOX: _YES,
        PersonRight.MONEY: _YES,
        PersonRight.PAYER_DATA: _CONFIRMED,
        PersonRight.EXPORT: _CONFIRMED,
        PersonRight.APPROVE: _CONFIRMED,
        PersonRight.KEYS: _CONFIRMED,
        PersonRight.LOGS: _YES,
        PersonRight.SHOPS: _CONFIRMED,
        PersonRight.PEOPLE: _CONFIRMED,
        PersonRight.AUDIT: _YES,
        PersonRight.NOTES: _YES,
    },
    Role.FINANCE: {
        **_ALL_READ,
        PersonRight.REFUNDS: _YES,
        PersonRight.EXCHANGES: _YES,
        PersonRight.SANDBOX: _YES,
        PersonRight.MONEY: _YES,
        PersonRight.EXPORT: _CONFIRMED,
        PersonRight.APPROVE: _CONFIRMED,
        PersonRight.AUDIT: _YES,
        PersonRight.NOTES: _YES,
    },
    Role.SUPPORT: {
        **_ALL_READ,
        PersonRight.PAYMENTS: _YES,
        PersonRight.REFUNDS: _YES,
        PersonRight.KYC: _YES,
        PersonRight.SANDBOX: _YES,
        PersonRight.PAYER_DATA: _CONFIRMED,
        PersonRight.NOTES: _YES,
    },
    Role.DEVELOPER: {
        **_ALL_READ,
        PersonRight.PAYMENTS: _TEST,
        PersonRight.REFUNDS: _TEST,
        PersonRight.WEBHOOKS: _CONFIRMED,
        PersonRight.SANDBOX: _YES,
        PersonRight.KEYS: _CONFIRMED,
        PersonRight.LOGS: _YES,
        PersonRight.NOTES: _TEST,
    },
    Role.VIEWER: _ALL_READ,
}
"""What each role may do. A right that is missing here is denied."""

MONEY_ROLES = frozenset((Role.OWNER, Role.ADMIN, Role.FINANCE))
"""Roles that need a second factor in live mode, and whose sessions are short."""

_API_RIGHTS = tuple(Right)
_NOT_FOR_DEVELOPERS = frozenset((Right.REFUNDS, Right.EXCHANGES, Right.KYC))


def grant(role: Role, right: PersonRight, mode: Mode) -> Grant | None:
    """Return how the role has the right in this mode; None: it does not."""
    found = ROLES[role].get(right)
    return found if found is not None and mode in found.modes else None


def api_rights(role: Role, mode: Mode) -> tuple[str, ...]:
    """Return the rights of API operations that the role has, in the order of Right."""
    return tuple(each.value for each in _API_RIGHTS if grant(role, PersonRight(each.value), mode) is not None)


def key_rights(role: Role, mode: Mode) -> tuple[str, ...]:
    """Return the rights that a key may get from a person of this role: at most the person's own. A developer may give
    all rights in test mode, and in live mode none that move money or read clients' data."""
    if role is Role.DEVELOPER:
        allowed = [each for each in _API_RIGHTS if mode is Mode.TEST or each not in _NOT_FOR_DEVELOPERS]
        return tuple(each.value for each in allowed)
    return api_rights(role, mode)


def holders(right: PersonRight, mode: Mode) -> tuple[Role, ...]:
    """Return the roles that have a right, for people who lack it."""
    return tuple(role for role in Role if grant(role, right, mode) is not None)


def may_manage(actor: Role, other: Role) -> bool:
    """Return whether a person of one role may invite, change or remove a person of another. Only owners touch
    owners."""
    return actor is Role.OWNER or (actor is Role.ADMIN and other is not Role.OWNER)
