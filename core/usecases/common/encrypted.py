"""Encrypted and tagged fields, with the associated data of each. The associated data is bound into the value, so a
value moved to another record does not decrypt."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ....ports.notes import ENCRYPTED, ProviderNote, note_aad
from ....ports.vault import Vault, VaultError
from ...domain import ids
from ...domain.accounts.accounts import Account, ApiKey, Caller, Settings, money_settings, without_money
from ...domain.chains import Chain, ChainHead
from ...domain.errors import Refusal
from ...domain.exchanges.exchanges import Exchange
from ...domain.exchanges.funds import ExchangeTransfer
from ...domain.exports.exports import ExportChunk
from ...domain.installation import Installation
from ...domain.kyc.clients import Client
from ...domain.notifications import NotificationAddress
from ...domain.operators.pending_actions import PendingAction
from ...domain.payloads import Payload
from ...domain.payments.payer_contact import PayerContact, email_key, payer_contact
from ...domain.payments.payment_links import LinkAnswer, LinkAnswers
from ...domain.payments.payments import Payment
from ...domain.people.notifications import TelegramChat
from ...domain.people.payment_notes import PaymentNotes
from ...domain.people.people import Invitation, Letter, User
from ...domain.people.views import SavedViews
from ...domain.receipts.receipts import FiscalReceipt
from ...domain.refunds.refunds import Refund
from ...domain.settlement.withdrawals import Withdrawal
from ...domain.subscriptions.subscriptions import Subscription
from ...domain.webhooks.endpoints import WebhookEndpoint
from ...domain.webhooks.events import Event
from .chains import CHAINS

log = logging.getLogger("cambist.tags")


def waiting_secret_aad(account_id: str) -> str:
    """Associated data of a webhook secret that waits for a second operator."""
    return f"pending_actions.webhook_secret:{account_id}"


def asked_arguments_aad(action_id: str) -> str:
    """Associated data of the arguments of a change that waits for a second person."""
    return f"pending_actions.arguments:{action_id}"


def webhook_secret_aad(holder: str) -> str:
    """Associated data of the webhook secret of an account or a further endpoint."""
    table = "webhook_endpoints.secret" if holder.startswith(ids.ENDPOINT) else "accounts.webhook_secret"
    return f"{table}:{holder}"


def webhook_headers_aad(holder: str) -> str:
    """Associated data of the static headers of an account's own or a further webhook endpoint."""
    table = "webhook_endpoints.headers" if holder.startswith(ids.ENDPOINT) else "accounts.webhook_headers"
    return f"{table}:{holder}"


def user_email_aad(user_id: str) -> str:
    return f"users.email:{user_id}"


def password_aad(user_id: str) -> str:
    return f"users.password:{user_id}"


def totp_aad(user_id: str) -> str:
    return f"users.totp:{user_id}"


def invitation_email_aad(invitation_id: str) -> str:
    return f"invitations.email:{invitation_id}"


def letter_aad(letter_id: str) -> str:
    return f"letters.body:{letter_id}"


def payment_notes_aad(payment_id: str) -> str:
    return f"payment_notes.body:{payment_id}"


def link_answers_aad(payment_id: str) -> str:
    return f"link_answers.body:{payment_id}"


def export_chunk_aad(chunk_id: str) -> str:
    return f"export_chunks.body:{chunk_id}"


def telegram_chat_aad(user_id: str) -> str:
    return f"telegram_chats.chat:{user_id}"


def payer_name_aad(payment_id: str) -> str:
    return f"payments.payer_name:{payment_id}"


def saved_views_aad(membership_id: str) -> str:
    return f"saved_views.views:{membership_id}"


_KEY_LENGTH = 32


def confirmation_key(vault: Vault, payment_id: str) -> str:
    """Return the part of the address of a payment's confirmation that nobody can guess."""
    return vault.fingerprint(f"confirmation:{payment_id}").hex()[:_KEY_LENGTH]


def private_aad(payment_id: str) -> str:
    return f"payments.private:{payment_id}"


def refund_aad(refund_id: str) -> str:
    return f"refunds.private:{refund_id}"


def receipt_aad(receipt_id: str) -> str:
    return f"receipts.private:{receipt_id}"


def mandate_aad(subscription_id: str) -> str:
    return f"subscriptions.mandate_token:{subscription_id}"


def client_phone_aad(client_id: str) -> str:
    return f"clients.phone:{client_id}"


def kyc_request_aad(client_id: str) -> str:
    return f"clients.request:{client_id}"


def exchange_phone_aad(exchange_id: str) -> str:
    return f"exchanges.client_phone:{exchange_id}"


def event_body_aad(event_id: str) -> str:
    return f"events.body:{event_id}"


def notification_secret_aad(adapter: str) -> str:
    return f"notification_addresses.secret:{adapter}"


def open_notification_secret(vault: Vault, adapter: str, sealed: bytes) -> str:
    """Return a secret of a provider's notification address, the current or the former one. Raises: VaultError."""
    return vault.decrypt(sealed, notification_secret_aad(adapter)).decode()


def open_exchange_phone(vault: Vault, exchange: Exchange) -> str:
    """Return the phone of an exchange's client in E.164. Raises: VaultError."""
    return vault.decrypt(exchange.client_phone, exchange_phone_aad(exchange.id)).decode()


def open_client_phone(vault: Vault, client: Client) -> str:
    """Return the client's phone in E.164. Raises: VaultError."""
    return vault.decrypt(client.phone, client_phone_aad(client.id)).decode()


def open_mandate_token(vault: Vault, subscription: Subscription) -> str | None:
    """Return the bank's token of the mandate. None before the first binding. Raises: VaultError."""
    if subscription.mandate_token is None:
        return None
    return vault.decrypt(subscription.mandate_token, mandate_aad(subscription.id)).decode()


def open_private_data(vault: Vault, payment: Payment) -> PayerContact | None:
    """Return the payer's contact data, as the merchant gave it. None without contact data. Raises: VaultError."""
    if payment.private is None:
        return None
    return payer_contact(vault.decrypt(payment.private, private_aad(payment.id)))


_DIGEST_BYTES = 16
"""A shorter digest keeps the index small, and no two addresses of an account meet by chance."""


def payer_email_digest(vault: Vault, caller: Caller, email: str | None) -> bytes | None:
    """Return the digest under which payments of a payer's e-mail address are found: other accounts and modes have other
    digests of the same address. None without an address."""
    key = email_key(email)
    if key is None:
        return None
    return vault.fingerprint(f"payer_email:{caller.account_id}:{caller.mode}:{key}")[:_DIGEST_BYTES]


def open_payer_name(vault: Vault, payment: Payment) -> str | None:
    """Return the payer's name as the bank reported it. Raises: VaultError."""
    if payment.payer_name is None:
        return None
    return vault.decrypt(payment.payer_name, payer_name_aad(payment.id)).decode()


def encrypt_event_body(vault: Vault, event_id: str, payload: Payload) -> bytes:
    """Encode the payload of an event and encrypt it for this event alone."""
    return vault.encrypt(msgspec.json.encode(payload), event_body_aad(event_id))


def open_event_body(vault: Vault, event: Event) -> bytes:
    """Return the payload of an event as it is sent. Raises: VaultError."""
    return vault.decrypt(event.body, event_body_aad(event.id))


def encrypt_link_answers(vault: Vault, payment_id: str, answers: Sequence[LinkAnswer]) -> bytes:
    """Encrypt what a payer filled in, for this payment alone."""
    return vault.encrypt(msgspec.json.encode(answers), link_answers_aad(payment_id))


def open_link_answers(vault: Vault, answers: LinkAnswers) -> list[LinkAnswer]:
    """Return what the payer filled in. Raises: VaultError."""
    plain = vault.decrypt(answers.body, link_answers_aad(answers.id))
    return msgspec.json.decode(plain, type=list[LinkAnswer])


def open_webhook_secret(vault: Vault, holder: str, sealed: bytes) -> str:
    """Return a signing secret of this account or further endpoint, the current or the previous one. Raises:
    VaultError."""
    return vault.decrypt(sealed, webhook_secret_aad(holder)).decode()


def encrypt_webhook_headers(vault: Vault, holder: str, headers: dict[str, str]) -> bytes | None:
    """Encrypt an endpoint's static headers. None for an empty dictionary."""
    return vault.encrypt(msgspec.json.encode(headers), webhook_headers_aad(holder)) if headers else None


def open_webhook_headers(vault: Vault, holder: str, sealed: bytes) -> dict[str, str]:
    """Return the static headers of an account's own or a further webhook endpoint. Raises: VaultError."""
    return msgspec.json.decode(vault.decrypt(sealed, webhook_headers_aad(holder)), type=dict[str, str])


def _settings_said(account: Account) -> bytes:
    said = {name: str(value) for name, value in money_settings(account.settings).items()}
    return msgspec.json.encode(said, order="deterministic")


def _settings_aad(account: Account) -> str:
    return f"accounts.settings:{account.id}"


def tag_settings(vault: Vault, account: Account) -> Account:
    """Return the account with a tag over its settings that move money. Call it only where an operator sets them."""
    is_set = bool(money_settings(account.settings))
    tag = vault.tag(_settings_said(account), _settings_aad(account)) if is_set else None
    return msgspec.structs.replace(account, settings_tag=tag)


def settings_fit(vault: Vault, account: Account) -> bool:
    """Return whether the settings that move money are as an operator set them."""
    if account.settings_tag is None:
        return not money_settings(account.settings)
    return _fits(vault, account.settings_tag, _settings_said(account), _settings_aad(account))


def true_settings(vault: Vault, account: Account) -> Settings:
    """Return the settings for decisions about money. If they are not as an operator set them, log an error and return
    defaults that send no money: refunds wait for an operator, and there is no overdraft, wallet or exchange."""
    if settings_fit(vault, account):
        return account.settings
    log.error("settings of %s that move money are not what the vault tagged: nothing leaves by them", account.id)
    return without_money(account.settings)


def _key_said(key: ApiKey) -> bytes:
    terms = (key.rights, key.addresses, key.ends_at, key.name, key.made_by)
    return msgspec.json.encode((key.account_id, key.mode, key.secret_digest.hex(), *terms))


def _key_aad(key: ApiKey) -> str:
    return f"api_keys:{key.id}"


def tag_key(vault: Vault, key: ApiKey) -> ApiKey:
    """Return the key with a tag over its owner, the digest of its secret, its rights, its expiry and its maker."""
    return msgspec.structs.replace(key, tag=vault.tag(_key_said(key), _key_aad(key)))


def key_fits(vault: Vault, key: ApiKey) -> bool:
    """Return whether the key is as the service wrote it."""
    return key.tag is not None and _fits(vault, key.tag, _key_said(key), _key_aad(key))


def _pay_said(payment: Payment) -> bytes:
    whose = (payment.account_id, payment.mode, payment.bank_reference)
    return msgspec.json.encode((*whose, payment.qr_payload, payment.bank_link, payment.link_kind))


def _pay_aad(payment: Payment) -> str:
    return f"payments.pay_tag:{payment.id}"


def pay_tag(vault: Vault, payment: Payment) -> bytes | None:
    """Return the tag over a payment's QR code and link, its owner and its bank's reference. None while no bank has
    given a QR code or link."""
    if payment.qr_payload is None and payment.bank_link is None:
        return None
    return vault.tag(_pay_said(payment), _pay_aad(payment))


def pay_to_fits(vault: Vault, payment: Payment) -> bool:
    """Return whether the payment's QR code and link are as its bank gave them."""
    if payment.pay_tag is None:
        return payment.qr_payload is None and payment.bank_link is None
    return _fits(vault, payment.pay_tag, _pay_said(payment), _pay_aad(payment))


def require_pay_to(vault: Vault, payment: Payment) -> None:
    """Check a payment's QR code and link, and log altered ones. Raises: Refusal PROVIDER_UNAVAILABLE for altered
    ones."""
    if not pay_to_fits(vault, payment):
        log.error("where the payer of %s pays is not what the vault tagged: it is not shown", payment.id)
        raise Refusal("PROVIDER_UNAVAILABLE", "The payment cannot be paid at present")


def _link_said(subscription: Subscription) -> bytes:
    return msgspec.json.encode((subscription.account_id, subscription.mode, subscription.binding_url))


def _link_aad(subscription: Subscription) -> str:
    return f"subscriptions.binding_url:{subscription.id}"


def tag_link(vault: Vault, subscription: Subscription) -> Subscription:
    """Return the subscription with a tag over its binding link. Call it only where the link is set."""
    is_set = subscription.binding_url is not None
    tag = vault.tag(_link_said(subscription), _link_aad(subscription)) if is_set else None
    return msgspec.structs.replace(subscription, link_tag=tag)


def with_link_tag(vault: Vault, before: Subscription, after: Subscription) -> Subscription:
    """Return the changed subscription, with a new tag if its binding link changed."""
    return after if after.binding_url == before.binding_url else tag_link(vault, after)


def link_fits(vault: Vault, subscription: Subscription) -> bool:
    """Return whether the binding link is as the service or its bank set it."""
    if subscription.link_tag is None:
        return subscription.binding_url is None
    return _fits(vault, subscription.link_tag, _link_said(subscription), _link_aad(subscription))


def binding_url(vault: Vault, subscription: Subscription) -> str | None:
    """Return the binding link to show to the payer. None if it is altered, with an error in the log."""
    if link_fits(vault, subscription):
        return subscription.binding_url
    log.error("the binding_url of %s is not what the vault tagged: it is not shown", subscription.id)
    return None


def _payout_said(withdrawal: Withdrawal) -> bytes:
    whose = (withdrawal.account_id, withdrawal.mode, withdrawal.amount.units)
    return msgspec.json.encode((*whose, withdrawal.wallet, withdrawal.network, withdrawal.sender))


def _payout_aad(withdrawal: Withdrawal) -> str:
    return f"withdrawals.wallet:{withdrawal.id}"


def tag_withdrawal(vault: Vault, withdrawal: Withdrawal) -> Withdrawal:
    """Return the payout with a tag over its recipient, amount and wallet."""
    return msgspec.structs.replace(withdrawal, tag=vault.tag(_payout_said(withdrawal), _payout_aad(withdrawal)))


def withdrawal_fits(vault: Vault, withdrawal: Withdrawal) -> bool:
    """Return whether the payout has the recipient and amount with which it was created."""
    if withdrawal.tag is None:
        return False
    return _fits(vault, withdrawal.tag, _payout_said(withdrawal), _payout_aad(withdrawal))


def _exchange_said(exchange: Exchange) -> bytes:
    whose = (exchange.account_id, exchange.mode, exchange.direction)
    amounts = (exchange.amount_usdt.units, exchange.amount_rub.kopecks)
    to_us = (exchange.crypto_deposit_address, exchange.invoice_payload)
    to_client = (exchange.network, exchange.client_wallet, exchange.client_bank_id)
    return msgspec.json.encode((*whose, *amounts, *to_client, *to_us))


def _exchange_aad(exchange: Exchange) -> str:
    return f"exchanges.client_wallet:{exchange.id}"


def tag_exchange(vault: Vault, exchange: Exchange) -> Exchange:
    """Return the exchange with a tag over both amounts and both destinations. The phone is encrypted."""
    return msgspec.structs.replace(exchange, tag=vault.tag(_exchange_said(exchange), _exchange_aad(exchange)))


def with_deposit(vault: Vault, exchange: Exchange, **changes: Any) -> Exchange:
    """Return the exchange with other deposit data. It gets a new tag only if the old tag fits, so that altered data
    stays detectable."""
    after = msgspec.structs.replace(exchange, **changes)
    return tag_exchange(vault, after) if exchange_fits(vault, exchange) else after


def deposit_address(vault: Vault, exchange: Exchange) -> str | None:
    """Return the address to which the client sends USDT. None if it is altered, with an error in the log."""
    if exchange.crypto_deposit_address is None or _is_tagged(vault, exchange):
        return exchange.crypto_deposit_address
    log.error("the deposit address of %s is not what the vault tagged: it is not shown", exchange.id)
    return None


def _is_tagged(vault: Vault, exchange: Exchange) -> bool:
    return exchange.tag is not None and _fits(vault, exchange.tag, _exchange_said(exchange), _exchange_aad(exchange))


def exchange_fits(vault: Vault, exchange: Exchange) -> bool:
    """Return whether the exchange's amounts and destination are as created, including the sum of a payout's parts."""
    planned = sum(part.amount.kopecks for part in exchange.parts)
    return _is_tagged(vault, exchange) and (not exchange.parts or planned == exchange.amount_rub.kopecks)


def _return_said(transfer: ExchangeTransfer) -> bytes:
    back = transfer.sent_back
    what = None if back is None else (back.operation, back.amount, back.address, back.sender)
    return msgspec.json.encode((transfer.account_id, transfer.mode, transfer.currency, what))


def _return_aad(transfer: ExchangeTransfer) -> str:
    return f"exchange_transfers.sent_back:{transfer.id}"


def tag_return(vault: Vault, transfer: ExchangeTransfer) -> ExchangeTransfer:
    """Return the transfer with a tag over its return and destination. Call it only where that was decided."""
    return msgspec.structs.replace(transfer, return_tag=vault.tag(_return_said(transfer), _return_aad(transfer)))


def return_fits(vault: Vault, transfer: ExchangeTransfer) -> bool:
    """Return whether the return is as it was decided."""
    if transfer.return_tag is None:
        return False
    return _fits(vault, transfer.return_tag, _return_said(transfer), _return_aad(transfer))


def _hold_said(row: Installation) -> bytes:
    return msgspec.json.encode((row.held_since, row.held_because, row.as_of, row.lacks_since))


def _hold_aad(row: Installation) -> str:
    return f"installations.hold:{row.id}"


def tag_hold(vault: Vault, row: Installation) -> Installation:
    """Return the installation with a tag over its hold. Only call it where the hold was decided."""
    return msgspec.structs.replace(row, hold_tag=vault.tag(_hold_said(row), _hold_aad(row)))


def hold_fits(vault: Vault, row: Installation) -> bool:
    """Return whether the service wrote what the row says of the hold."""
    return row.hold_tag is not None and _fits(vault, row.hold_tag, _hold_said(row), _hold_aad(row))


def _action_said(action: PendingAction) -> bytes:
    what = (
        action.use_case,
        action.action,
        action.object_id,
        action.account_id,
        action.mode,
        action.arguments,
        action.shown,
        action.needs_right,
    )
    return msgspec.json.encode(
        (*what, action.operator, action.reason, action.created_at, action.expires_at), order="deterministic"
    )


def _action_aad(action: PendingAction) -> str:
    return f"pending_actions:{action.id}"


def tag_action(vault: Vault, action: PendingAction) -> PendingAction:
    """Return the action with a tag over its operator and content. Call it only where the action is first stored."""
    return msgspec.structs.replace(action, tag=vault.tag(_action_said(action), _action_aad(action)))


def action_fits(vault: Vault, action: PendingAction) -> bool:
    """Return whether the action was requested by the operator that it names."""
    return action.tag is not None and _fits(vault, action.tag, _action_said(action), _action_aad(action))


def _fits(vault: Vault, tag: bytes, said: bytes, aad: str) -> bool:
    try:
        return vault.fits(tag, said, aad)
    except VaultError:
        return False


class EncryptedField(msgspec.Struct, frozen=True):
    """A field of a record that holds an encrypted value or null."""

    record: type[Any]
    name: str
    aad: Callable[[str], str]
    """Returns the associated data for a record's id."""

    mark: bytes = b""
    """Prefix of an encrypted value, if the field may also hold unencrypted values."""

    def value(self, record: Any) -> bytes | None:
        """Return the encrypted value, or None without one."""
        kept: bytes | None = getattr(record, self.name)
        return None if kept is None or not kept.startswith(self.mark) else kept.removeprefix(self.mark)

    def judge(self, vault: Vault, record: Any) -> None:
        """Check that the value decrypts. Raises: VaultError otherwise."""
        vault.decrypt(self.value(record) or b"", self.aad(record.id))

    def anew(self, vault: Vault, record: Any) -> bytes:
        """Return the value encrypted by the current key. Raises: VaultError."""
        aad = self.aad(record.id)
        return self.mark + vault.encrypt(vault.decrypt(self.value(record) or b"", aad), aad)


class TaggedField(msgspec.Struct, frozen=True):
    """A field of a record that holds the vault's tag over other fields, or null."""

    record: type[Any]
    name: str
    aad: Callable[[Any], str]
    said: Callable[[Any], bytes]
    """Returns the tagged content of the record."""

    def value(self, record: Any) -> bytes | None:
        """Return the tag, or None without one."""
        tag: bytes | None = getattr(record, self.name)
        return tag

    def judge(self, vault: Vault, record: Any) -> None:
        """Check the tag. Raises: VaultError when it does not fit."""
        if not vault.fits(getattr(record, self.name), self.said(record), self.aad(record)):
            raise VaultError("a tag does not fit what it stands for")

    def anew(self, vault: Vault, record: Any) -> bytes:
        """Return a tag by the current key. Raises: VaultError when the current tag does not fit."""
        self.judge(vault, record)
        return vault.tag(self.said(record), self.aad(record))


ENCRYPTED_FIELDS: tuple[EncryptedField, ...] = (
    EncryptedField(Account, "webhook_secret", webhook_secret_aad),
    EncryptedField(Account, "previous_secret", webhook_secret_aad),
    EncryptedField(Account, "webhook_headers", webhook_headers_aad),
    EncryptedField(WebhookEndpoint, "secret", webhook_secret_aad),
    EncryptedField(WebhookEndpoint, "previous_secret", webhook_secret_aad),
    EncryptedField(WebhookEndpoint, "headers", webhook_headers_aad),
    EncryptedField(User, "email", user_email_aad),
    EncryptedField(User, "password", password_aad),
    EncryptedField(User, "totp", totp_aad),
    EncryptedField(User, "totp_pending", totp_aad),
    EncryptedField(Invitation, "email", invitation_email_aad),
    EncryptedField(Letter, "body", letter_aad),
    EncryptedField(PaymentNotes, "body", payment_notes_aad),
    EncryptedField(LinkAnswers, "body", link_answers_aad),
    EncryptedField(ExportChunk, "body", export_chunk_aad),
    EncryptedField(TelegramChat, "chat", telegram_chat_aad),
    EncryptedField(SavedViews, "views", saved_views_aad),
    EncryptedField(Payment, "private", private_aad),
    EncryptedField(Refund, "private", refund_aad),
    EncryptedField(FiscalReceipt, "private", receipt_aad),
    EncryptedField(Payment, "payer_name", payer_name_aad),
    EncryptedField(Subscription, "mandate_token", mandate_aad),
    EncryptedField(Client, "phone", client_phone_aad),
    EncryptedField(Client, "request", kyc_request_aad),
    EncryptedField(Exchange, "client_phone", exchange_phone_aad),
    EncryptedField(Event, "body", event_body_aad),
    EncryptedField(ProviderNote, "body", note_aad, mark=ENCRYPTED),
    EncryptedField(NotificationAddress, "secret", notification_secret_aad),
    EncryptedField(NotificationAddress, "former", notification_secret_aad),
)
"""All encrypted fields in the storage, which a key rotation encrypts again."""


def _chain_of(head: ChainHead) -> Chain:
    return next(chain for chain in CHAINS if chain.head_id == head.id)


TAGGED: tuple[TaggedField, ...] = (
    TaggedField(ChainHead, "tag", lambda head: _chain_of(head).head_aad(head.number), lambda head: bytes(head.seal)),
    TaggedField(Account, "settings_tag", _settings_aad, _settings_said),
    TaggedField(ApiKey, "tag", _key_aad, _key_said),
    TaggedField(Payment, "pay_tag", _pay_aad, _pay_said),
    TaggedField(Subscription, "link_tag", _link_aad, _link_said),
    TaggedField(Withdrawal, "tag", _payout_aad, _payout_said),
    TaggedField(Exchange, "tag", _exchange_aad, _exchange_said),
    TaggedField(ExchangeTransfer, "return_tag", _return_aad, _return_said),
    TaggedField(Installation, "hold_tag", _hold_aad, _hold_said),
    TaggedField(PendingAction, "tag", _action_aad, _action_said),
)
"""All tagged fields that a key rotation tags again. The tags of a chain's rows stay, because the head's tag covers them
all."""
