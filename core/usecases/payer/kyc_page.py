"""The hosted KYC page, on which clients act for themselves with the link from POST /kyc/check.

The link contains account and phone, so no input of the browser can select another client. A session that the page
started itself (kyc_begin.py) reveals nothing about a known client, but can follow a check that it registered.
"""

import msgspec

from ....ports.bundle import Ports
from ...domain.accounts.accounts import Account, KycDemand, KycFlow, Mode
from ...domain.errors import Refusal
from ...domain.kyc.kyc import RegisterOrder, UploadOrder, open_holder
from ...domain.masked import Masked
from ...domain.payer.kyc_page import Face, return_address
from ..accounts.rate_limits import admit_stranger
from ..kyc.check import KycAnswer, check_client
from ..kyc.gate import client_id, find_client
from ..kyc.links import KycLink, new_session, open_link
from ..kyc.register import AlreadyKnown, register_client
from ..kyc.uploads import Grant, grant_to_client
from ..kyc.verifiers import is_left_behind, may_begin

PER_MINUTE = 60
"""Calls with links of one client in a window; the page polls every three seconds."""


class KycView(Masked, frozen=True, kw_only=True):
    """The data of the page. Its repr hides the phone."""

    _shown = ("face",)

    face: Face
    phone: str
    merchant: str
    was_refused: bool
    """Whether the client was refused and may try again."""
    reason: str | None
    """The reason, in English; the page has texts of its own for it."""
    form_url: str | None
    back: str | None


async def view(ports: Ports, session: str, redirect: str | None) -> KycView | None:
    """Return the page for the holder of a link; None when the link is invalid or has expired.

    Raises: Refusal RATE_LIMIT_EXCEEDED, PROVIDER_DISABLED, PROVIDER_ERROR, KYC_UNAVAILABLE.
    """
    opened = await _opened(ports, session)
    if opened is None:
        return None
    link, account = opened
    face, answer, was_refused = await _standing(ports, link, account)
    return KycView(
        face=face,
        phone=link.phone,
        merchant=account.name,
        was_refused=was_refused,
        reason=answer.error,
        form_url=answer.url if face is Face.FORM else None,
        back=return_address(redirect, account.settings.return_url),
    )


async def grant(ports: Ports, session: str, order: UploadOrder) -> Grant | None:
    """Grant an upload that only this client's check may use; None as in `view`.

    Raises: Refusal RATE_LIMIT_EXCEEDED, PROVIDER_DISABLED, KYC_NOT_REQUIRED, VALIDATION_ERROR.
    """
    opened = await _opened(ports, session)
    if opened is None:
        return None
    link, account = opened
    _must_be_required(account)
    holder = client_id(ports, account.id, Mode.LIVE, link.phone)
    if not link.vouched:
        holder = open_holder(holder)
    return await grant_to_client(ports, account.id, Mode.LIVE, order, holder)


class Registered(Masked, frozen=True, kw_only=True):
    """Result of a registration. Its repr hides the session."""

    _shown = ("status",)

    status: str
    session: str | None = None
    """The session with which an anonymous visitor follows the check, replacing the previous one."""


async def register(ports: Ports, session: str, given: RegisterOrder) -> Registered | None:
    """Register the link's client with the given data; the phone in the data is ignored. None as in `view`. An anonymous
    visitor begins a check only if the client has none, and sees no existing one.

    Raises: Refusal RATE_LIMIT_EXCEEDED, PROVIDER_DISABLED, KYC_NOT_REQUIRED, and refusals of
    kyc_register.register_client.
    """
    opened = await _opened(ports, session)
    if opened is None:
        return None
    link, account = opened
    _must_be_required(account)
    order = msgspec.structs.replace(given, phone=link.phone)
    if link.vouched:
        return Registered(status=(await register_client(ports, account, Mode.LIVE, order)).status)
    try:
        answer = await register_client(ports, account, Mode.LIVE, order, only_new=True)
    except AlreadyKnown:
        return Registered(status=Face.RECEIVED)
    return Registered(status=answer.status, session=new_session(ports, account.id, link.phone))


async def _opened(ports: Ports, session: str) -> tuple[KycLink, Account] | None:
    link = open_link(ports, session)
    if link is None:
        return None
    name = client_id(ports, link.account_id, Mode.LIVE, link.phone).hex()[:32]
    counted = await admit_stranger(ports, "kyc-page", name, PER_MINUTE)
    if counted.over:
        raise Refusal("RATE_LIMIT_EXCEEDED", "Too many requests", retry_after=counted.wait)
    account = await ports.storage.get(Account, link.account_id)
    return None if account is None else (link, account)


def _must_be_required(account: Account) -> None:
    if account.settings.kyc is KycDemand.DISABLED:
        raise Refusal("PROVIDER_DISABLED", "KYC is disabled for the account")
    if account.settings.kyc is KycDemand.OFF:
        raise Refusal("KYC_NOT_REQUIRED", "The account requires no KYC")


async def _standing(ports: Ports, link: KycLink, account: Account) -> tuple[Face, KycAnswer, bool]:
    if account.settings.kyc is KycDemand.OFF:
        return Face.NOT_REQUIRED, KycAnswer(status="not_required"), False
    _must_be_required(account)
    if not link.vouched:
        return await _unvouched(ports, link, account), KycAnswer(status="required"), False
    answer = await check_client(ports, account.id, Mode.LIVE, link.phone)
    if answer.status in ("verified", "processing"):
        return Face(answer.status), answer, False
    async with ports.storage.unit() as unit:
        client = await find_client(ports, unit, account.id, Mode.LIVE, link.phone)
    if client is not None and client.blocked:
        return Face.FAILED, answer, False
    if client is not None and client.form_url is not None and not is_left_behind(ports, client):
        return Face.FORM, answer, False
    return _wanted(account), answer, answer.status == "failed"


async def _unvouched(ports: Ports, link: KycLink, account: Account) -> Face:
    async with ports.storage.unit() as unit:
        client = await find_client(ports, unit, link.account_id, Mode.LIVE, link.phone)
    return _wanted(account) if client is None or may_begin(ports, client) else Face.RECEIVED


def _wanted(account: Account) -> Face:
    return Face.DETAILS if account.settings.kyc_flow is KycFlow.REDIRECT else Face.DOCUMENTS
