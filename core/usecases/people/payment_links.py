"""Sending a payment's link to the payer by mail, on behalf of a person (docs/dashboard.md "Payments")."""

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain.accounts.accounts import Account
from ...domain.accounts.shops import Shop, seller_name
from ...domain.days import MOSCOW
from ...domain.errors import Refusal
from ...domain.payer.brand import brand_of
from ...domain.payer.window import order_number
from ...domain.payments.payment_links import PaymentLink
from ...domain.payments.payments import Payment, PaymentStatus
from ...domain.people.letters import TO_PAYERS
from ...domain.people.payment_notes import SentLink, with_link
from ...domain.people.people import masked_email, read_email
from ...domain.people.roles import PersonRight
from ..common.units import retrying
from ..payments.payments import get_payment
from .letters import add_letter
from .payment_notes import MADE_MEANWHILE, change_book
from .sessions import Actor, by_person, require
from .sign_in import take_attempt


def seller_values(account: Account, shop: Shop | None, order: str | None, language: str) -> dict[str, str]:
    """Return the seller's values of a letter to a payer: name, and the lines at its end."""
    name = account.name if shop is None else seller_name(shop, account)
    known = {"order": order, "contact": brand_of(account, shop).contact}
    lines = [text.format(**{part: known[part]}) for part, text in TO_PAYERS[language].items() if known[part]]
    return {"shop": " ".join(name.split()), "seller": "".join(lines)}


def can_send_link(ports: Ports, payment: Payment) -> bool:
    """Return whether the link is of use now, and can be sent."""
    now = ports.clock.now()
    return ports.mailer is not None and payment.status is PaymentStatus.PENDING and now < payment.expires_at


async def send_link(ports: Ports, actor: Actor, payment_id: str, address: str, language: str = "ru") -> SentLink:
    """Send the payment's link to an address. The address itself is only in the letter; record and audit log have its
    mask.

    Raises: Refusal PERSON_RIGHT_MISSING, PAYMENT_NOT_FOUND, VALIDATION_ERROR; INVALID_STATE unless the payment can
    still be paid; FEATURE_NOT_ENABLED without e-mail; LINK_LIMIT.
    """
    require(actor, PersonRight.PAYMENTS)
    payment = await get_payment(ports, actor.caller, payment_id)
    email = read_email(address)
    if ports.mailer is None:
        raise Refusal("FEATURE_NOT_ENABLED", "The service sends no e-mail: copy the link and send it yourself")
    if not can_send_link(ports, payment):
        raise Refusal("INVALID_STATE", "The payment can no longer be paid: create a new one")
    # A test clock can be advanced and test payments cost nothing, so the bound per payment alone stops nobody.
    await take_attempt(
        ports, f"link:{actor.user.id}", code="LINK_LIMIT", message="You sent many links within an hour: try again later"
    )
    ports = by_person(ports, actor, "payment.send_link", payment.id)
    sent = SentLink(author=actor.user.id, at=ports.clock.now(), to=masked_email(email))

    async def work(unit: Unit) -> SentLink:
        shop = await unit[Shop].get(payment.shop_id)
        values = {
            **seller_values(actor.account, shop, order_number(payment.external_id), language),
            "amount": str(payment.amount),
            "link": ports.urls.payment_page(payment.id),
            "until": f"{payment.expires_at.astimezone(MOSCOW):%d.%m.%Y %H:%M}",
        }
        await change_book(ports, unit, payment, lambda book: with_link(book, sent), links=1)
        add_letter(ports, unit, email, "payment_link", language, values)
        return sent

    return await retrying(ports.storage, work, again_on=MADE_MEANWHILE)


async def send_payment_link(ports: Ports, actor: Actor, link: PaymentLink, address: str, language: str = "ru") -> str:
    """Send the page of an active payment link to an address, and return the address's mask. The address itself is only
    in the letter.

    Raises: Refusal PERSON_RIGHT_MISSING, VALIDATION_ERROR; FEATURE_NOT_ENABLED without e-mail; LINK_LIMIT.
    """
    require(actor, PersonRight.PAYMENTS)
    email = read_email(address)
    if ports.mailer is None:
        raise Refusal("FEATURE_NOT_ENABLED", "The service sends no e-mail: copy the link and send it yourself")
    await take_attempt(
        ports, f"link:{actor.user.id}", code="LINK_LIMIT", message="You sent many links within an hour: try again later"
    )
    ports = by_person(ports, actor, "paylink.send", link.id)

    async def work(unit: Unit) -> str:
        shop = await unit[Shop].get(link.shop_id)
        amount = "" if link.amount is None else f" {link.amount} {'₽' if language == 'ru' else 'RUB'}"
        values = {
            **seller_values(actor.account, shop, order_number(link.external_id), language),
            "sum": amount,
            "description": " ".join(link.description.split()),
            "link": ports.urls.link_page(link.id),
        }
        add_letter(ports, unit, email, "payment_request", language, values)
        return masked_email(email)

    return await retrying(ports.storage, work)
