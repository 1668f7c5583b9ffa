"""The hosted KYC page: a client acts for itself, by the link that the merchant got from POST /kyc/check.

The link names account and phone, so nothing that the browser says can name another client. Whoever has a session that
the page began by itself (kyc_begin.py) is told nothing of a client who is known; what he himself registers he may
follow.
"""

import msgspec

from ....ports.bundle import Ports
from ...domain.accounts.accounts import Account, KycDemand, KycFlow, Mode
from ...domain.errors import Refusal
from ...domain.kyc.kyc import RegisterOrder, UploadOrder, open_holder
from ...domain.masked import Masked
from ...domain.payer.kyc_page import Face, return_address
from ..accounts.admission import admit_stranger
from ..kyc.check import KycAnswer, check_client
from ..kyc.gate import client_id, find_client
from ..kyc.links import KycLink, new_session, open_link
from ..kyc.register import AlreadyKnown, register_client
from ..kyc.uploads import Grant, grant_to_client
from ..kyc.verifiers import is_left_behind, may_begin

PER_MINUTE = 60
"""Calls by links of one client in a window: the page polls every three seconds."""


class KycView(Masked, frozen=True, kw_only=True):
    """What the page shows. Its repr hides the phone."""

    _shown = ("face",)

    face: Face
    phone: str
    merchant: str
    was_refused: bool
    """The client was refused and may try again."""
    reason: str | None
    """Why, in English; the page has words of its own for it."""
    form_url: str | None
    back: str | None


async def view(ports: Ports, session: str, redirect: str | None) -> KycView | None:
    """What the holder of a link sees; None when the link is none, or is over.

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
    """A place for a document that only this client's check may use; None as above.

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
    """What came of a registration. Its repr hides the session."""

    _shown = ("status",)

    status: str
    session: str | None = None
    """By which who began the check himself follows it, instead of by the one that he had."""


async def register(ports: Ports, session: str, given: RegisterOrder) -> Registered | None:
    """Register the link's client with what was given, whatever phone it names; None as above. Whoever has nobody to
    vouch for him begins a check where there is none, and is told no other's.

    Raises: Refusal RATE_LIMIT_EXCEEDED, PROVIDER_DISABLED, KYC_NOT_REQUIRED, and what kyc_register.register_client
    raises.
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
