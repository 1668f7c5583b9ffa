"""The catalogue of all refusals: each code with its HTTP status and the recommended reaction of a merchant's program.

The table of docs/errors.md "All codes" is generated from it. Tests compare both with the codes that are raised.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

E = TypeVar("E", bound=StrEnum)


class Retry(StrEnum):
    """How to handle the same request after this answer."""

    NEVER = "never"
    """The request itself is wrong: change it. The Idempotency-Key is not locked unless the entry says so."""
    SAME_KEY = "same_key"
    """Send the same request again later, with the same Idempotency-Key."""
    NEW_KEY = "new_key"
    """The key keeps this answer: try again with a new key."""


_AWAY = 503


class Entry(msgspec.Struct, frozen=True):
    """One code. `status` is its usual status, `variants` further ones of the same code."""

    code: str
    status: int
    meaning: str
    retry: Retry = Retry.NEVER
    variants: tuple[int, ...] = ()

    def retry_at(self, status: int) -> Retry:
        """Return the reaction to this code with this status: PAYMENT_ROUTE_UNAVAILABLE is final with 400, but not with
        503."""
        return Retry.SAME_KEY if self.retry is Retry.NEVER and status == _AWAY else self.retry


_ENTRIES = (
    Entry(
        "VALIDATION_ERROR",
        400,
        "The body, a header or a query value is not of the documented shape; with 422: "
        "the shape is right and a value breaks its rule",
        variants=(422,),
    ),
    Entry("MISSING_IDEMPOTENCY_KEY", 400, "A creating request needs the header Idempotency-Key"),
    Entry("CURSOR_INVALID", 400, "The address of a page of a list is damaged: start at the list's top; dashboard only"),
    Entry("INVALID_AMOUNT", 400, "The amount is zero, below zero, or above the largest allowed"),
    Entry("AMOUNT_BELOW_MINIMUM", 400, "A one-off payment is at least 30 RUB"),
    Entry("AMOUNT_TOO_LOW", 400, "The minimum of an exchange is 1000 RUB"),
    Entry("AMOUNT_TOO_HIGH", 400, "The maximum of an exchange is 1000000 RUB"),
    Entry("FEATURE_NOT_ENABLED", 400, "The option is not connected to the account, or not to this object"),
    Entry("SHOP_NOT_FOUND", 400, "The account has no shop of this id"),
    Entry("KYC_REQUIRED", 400, "The client must be verified before this payment"),
    Entry("KYC_PROCESSING", 400, "The client's verification is in progress", Retry.SAME_KEY),
    Entry("KYC_FAILED", 400, "The client's verification was refused"),
    Entry("KYC_NOT_REQUIRED", 400, "The account requires no KYC, so there is nothing to register"),
    Entry("SANDBOX_NOT_SUPPORTED", 400, "KYC works in live mode only"),
    Entry("METHOD_NOT_AVAILABLE", 400, "The account offers no terminal of this method_id"),
    Entry("METHOD_SELECTION_DISABLED", 400, "Choosing a terminal is off for the account", variants=(403,)),
    Entry(
        "PAYMENT_ROUTE_UNAVAILABLE",
        400,
        "No working route for this payment; with 503: the check failed for now",
        variants=(503,),
    ),
    Entry("OVER_REMAINING", 400, "The refund is of more than is left of the payment, or nothing is left of it"),
    Entry("PARTIAL_BEFORE_SETTLEMENT", 400, "This terminal allows partial refunds only after settlement"),
    Entry("Unauthorized", 401, "The key pair is not valid"),
    Entry("SIGN_IN_FAILED", 401, "Address, password or code is wrong; dashboard only"),
    Entry("KEY_ADDRESS_NOT_ALLOWED", 403, "The key may not be used from this address"),
    Entry("KEY_RIGHT_MISSING", 403, "The key has not the right that the operation needs: `details.right`"),
    Entry("PERSON_RIGHT_MISSING", 403, "The person's role lacks the right: `details.right`; dashboard only"),
    Entry("SECOND_FACTOR_NEEDED", 403, "The role needs an authenticator app in live mode; dashboard only"),
    Entry("STEP_UP_NEEDED", 403, "The person must confirm the password first; dashboard only"),
    Entry("FORM_REFUSED", 403, "The form is not from this page: open the page again; dashboard only"),
    Entry("LIVE_MODE_DENIED", 403, "The person may work in test mode only; dashboard only"),
    Entry("NO_ACCOUNT", 403, "The person belongs to no account, or not to this one; dashboard only"),
    Entry("SHOP_DISABLED", 403, "The shop takes no new payments"),
    Entry("DIRECT_LINK_NOT_ALLOWED", 403, "The bank's own link of this payment is not for the merchant"),
    Entry("PROVIDER_DISABLED", 403, "KYC is disabled for the account"),
    Entry("CLIENT_BLOCKED", 403, "The exchange client is blocked"),
    Entry("UPLOAD_FORBIDDEN", 403, "The upload's address was not granted, was altered, or has expired"),
    Entry("NOT_FOUND", 404, "Unknown path, or a feature that is not on for the account"),
    Entry("EVENT_NOT_FOUND", 404, "No event of this id in this account and mode"),
    Entry("EXCHANGE_NOT_FOUND", 404, "No exchange of this id in this account and mode"),
    Entry("GATEWAY_NOT_FOUND", 404, "No gateway of this id in this mode"),
    Entry("PAYMENT_NOT_FOUND", 404, "No payment of this id in this account and mode"),
    Entry("PAYMENT_LINK_NOT_FOUND", 404, "No payment link of this id in this account and mode"),
    Entry("REFUND_NOT_FOUND", 404, "No refund of this id in this account and mode"),
    Entry("RECEIPT_NOT_FOUND", 404, "No receipt of this id in this account and mode"),
    Entry("SUBSCRIPTION_NOT_FOUND", 404, "No subscription of this id in this account and mode"),
    Entry("WEBHOOK_ENDPOINT_NOT_FOUND", 404, "No further webhook endpoint of this id in this account and mode"),
    Entry("EXCHANGE_RATE_NOT_SUPPORTED", 404, "Terminals have no rate of their own; see GET /rates"),
    Entry("SETTLEMENT_NOT_FOUND", 404, "No settlement of this id in this account and mode"),
    Entry("WITHDRAWAL_NOT_FOUND", 404, "No withdrawal of this id in this account and mode"),
    Entry("SUSPENSE_NOT_FOUND", 404, "No money in suspense of this id; met by operators only"),
    Entry("TERMINAL_NOT_FOUND", 404, "No terminal of this id; met by operators only"),
    Entry("ACCOUNT_NOT_FOUND", 404, "No account of this id; met by operators only"),
    Entry("KEY_NOT_FOUND", 404, "No key of this id or name in force; met by operators only"),
    Entry(
        "ACTION_NOT_FOUND", 404, "No action of this id waits for a second operator, or waited; met by operators only"
    ),
    Entry("CLIENT_NOT_FOUND", 404, "No end client of this id; dashboard and operators only"),
    Entry("USER_NOT_FOUND", 404, "No person of this id or address; dashboard and operators only"),
    Entry("INVITATION_NOT_FOUND", 404, "The invitation was accepted, revoked or has expired; dashboard only"),
    Entry("VIEW_NOT_FOUND", 404, "The person has no such saved view; dashboard only"),
    Entry("RESEND_NOT_FOUND", 404, "The account and mode have no resend of this id; dashboard only"),
    Entry("NOTE_NOT_FOUND", 404, "The person has no such note on this payment; dashboard only"),
    Entry("REPORT_NOT_FOUND", 404, "There is no report of this id, or it has expired"),
    Entry("EXPORT_NOT_FOUND", 404, "There is no file of this id, it is not ready yet, or it has expired"),
    Entry("RESET_VOID", 404, "The link of the letter was used or has expired; dashboard only"),
    Entry("UNSUBSCRIBE_VOID", 404, "The link to unsubscribe was used or is not whole; dashboard only"),
    Entry("METHOD_NOT_ALLOWED", 405, "The path does not know this method; see the header Allow"),
    Entry(
        "IDEMPOTENCY_KEY_REUSED",
        409,
        "The key already belongs to a resource of another kind, or to a subscription of another shop",
    ),
    Entry("IDEMPOTENCY_TERMINAL", 409, "The exchange of this key has finished already", Retry.NEW_KEY),
    Entry("EXCHANGE_IN_PROGRESS", 409, "The client has an active exchange; the key is not locked", Retry.SAME_KEY),
    Entry("UPLOAD_LIMIT", 409, "Too many documents that no check has used yet", Retry.SAME_KEY),
    Entry("INVALID_STATE", 409, "The object is not in a state that allows this"),
    Entry("SECOND_PERSON_NEEDED", 409, "Another person of the account has to approve it; dashboard only"),
    Entry("REQUEST_NOT_FOUND", 404, "No request for another person's approval of this id; dashboard only"),
    Entry("SECOND_OPERATOR_NEEDED", 409, "The action waits until another operator confirms it; met by operators only"),
    Entry("REPORT_NOT_READY", 409, "The report is still being written"),
    Entry("EXPORTS_BUSY", 409, "The account or the person has as many exports as it may have"),
    Entry("RESEND_BUSY", 409, "Another resend of webhooks is running in this mode; dashboard only"),
    Entry("LAST_OWNER", 409, "The account would have no owner; dashboard only"),
    Entry("INVALID_STATUS", 409, "The payment is not in a status that allows this"),
    Entry("DELIVERY_PROOF_LOCKED", 409, "The transfer is confirmed; its hash cannot be replaced"),
    Entry("DELIVERY_PROOF_CONFLICT", 409, "Another request changed the hash meanwhile; read it and repeat"),
    Entry("LIMIT_PER_PAYMENT", 409, "The payment has had all the refund applications that it may have"),
    Entry("WEBHOOK_ENDPOINT_LIMIT", 409, "The account has all the webhook endpoints that it may have in this mode"),
    Entry("UPLOAD_EXISTS", 409, "The file was uploaded already; an address takes one file once"),
    Entry("CHARGE_MANDATE_INACTIVE", 409, "The subscription is not active, or its mandate is not bound or was revoked"),
    Entry("CHARGE_BEFORE_WINDOW", 409, "Too early; see `details.next_allowed_at`", Retry.SAME_KEY),
    Entry(
        "RECURRING_CHARGE_EXHAUSTED",
        409,
        "The period's attempts or hours are used up; the next period starts at `details.next_allowed_at`",
        Retry.SAME_KEY,
    ),
    Entry("CHARGE_PERIOD_OCCUPIED", 409, "The period already holds a charge with another external_id"),
    Entry("CAP_EXCEEDED", 409, "The amount is above the cap of a charge, or of a period"),
    Entry("WITHDRAWAL_DISCONTINUED", 410, "Payouts are automatic; there are no manual withdrawals"),
    Entry("PAYLOAD_TOO_LARGE", 413, "The body is over 100 KB, or an uploaded file over its limit"),
    Entry("SHOP_MARKUP_NOT_SET", 422, "The shop has no markup yet"),
    Entry(
        "PAYER_DATA_REQUIRED",
        422,
        "Fields that the terminal or a receipt requires are missing: `details.missing_fields`",
    ),
    Entry("RESEND_TOO_LARGE", 422, "The span has more events than one resend may have; dashboard only"),
    Entry("EXPORT_TOO_LARGE", 422, "The filter fits more rows than a file may have"),
    Entry("PAYMENT_UNAVAILABLE", 422, "Acceptance is off for the account"),
    Entry("CLIENT_NOT_REGISTERED", 422, "The exchange client has not passed KYC"),
    Entry("RATE_LIMIT_EXCEEDED", 429, "Too many requests; see Retry-After", Retry.SAME_KEY),
    Entry("LINK_LIMIT", 429, "Too many payment links were sent by mail within an hour; dashboard only"),
    Entry("TOO_MANY_GUESSES", 429, "Too many wrong passwords or codes, or requests for a new address; dashboard only"),
    Entry("HEADERS_TOO_LARGE", 431, "The head of the request is over 32 KB, or has more than 100 headers"),
    Entry("INTERNAL_ERROR", 500, "Our fault; quote the request id", Retry.SAME_KEY),
    Entry("KYC_PERSIST_FAILED", 500, "The verifier took the client and the record was not saved; do not repeat"),
    Entry("RECURRING_NOT_SUPPORTED", 501, "The account may not charge by mandate; no payment was created"),
    Entry("PROVIDER_ERROR", 502, "The provider gave no definite answer; the key keeps this answer", Retry.NEW_KEY),
    Entry("RATE_INVALID", 502, "No rate to exchange by; nothing was created", Retry.SAME_KEY),
    Entry(
        "FEATURE_DISABLED",
        503,
        "This direction of exchange is off for all merchants for the moment; nothing was created",
        Retry.SAME_KEY,
    ),
    Entry("RATE_UNAVAILABLE", 503, "No source gives a rate that can be believed; nothing was done", Retry.SAME_KEY),
    Entry("KYC_UNAVAILABLE", 503, "KYC is required and away for the moment", Retry.SAME_KEY),
    Entry(
        "PROVIDER_NOT_CONFIGURED",
        503,
        "No provider can do this at present; nothing was created, and the period is free",
        Retry.SAME_KEY,
    ),
    Entry(
        "ACCOUNT_MOVING",
        503,
        "The account is being moved to other servers and takes no changes for some seconds; see Retry-After",
        Retry.SAME_KEY,
    ),
    Entry("PROVIDER_UNAVAILABLE", 503, "A provider or a part of the service is away for the moment", Retry.SAME_KEY),
)

CATALOGUE: Mapping[str, Entry] = {entry.code: entry for entry in _ENTRIES}


def doc_url(base_url: str, code: str) -> str:
    """Return the URL of a code's documentation on the service at `base_url`: its row of docs/errors.md "All codes"."""
    return f"{base_url.rstrip('/')}/docs/errors#{code}"


class FieldFault(msgspec.Struct, frozen=True):
    """One element of `error.details` of a shape error: the field and its fault."""

    path: Annotated[str, Meta(description="Path of the field, with dots; `$` is the whole body")]
    message: Annotated[str, Meta(description="Text for people; it may change")]


class Refusal(Exception):
    """A documented refusal. Only the frontends convert it to their error format.

    `details` is sent unchanged; `status` is only for codes with several (422 VALIDATION_ERROR).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        details: Mapping[str, Any] | Sequence[FieldFault] | None = None,
        retry_after: int | None = None,
    ) -> None:
        entry = CATALOGUE[code]
        if status is not None and status != entry.status and status not in entry.variants:
            raise ValueError(f"{code} has no variant {status}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status or entry.status
        self.details = details
        self.retry_after = retry_after
        """Value of the header Retry-After, in seconds; None: no header."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the state, because the arguments are not those of Exception."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


def shape_error(path: str, message: str) -> Refusal:
    """Return `400 VALIDATION_ERROR` for one field."""
    return Refusal("VALIDATION_ERROR", f"{path}: {message}", details=[FieldFault(path, message)])


def read_choice(path: str, text: str, kind: type[E]) -> E:
    """Return the member named by the text, in any case. Raises: Refusal VALIDATION_ERROR that lists all members."""
    try:
        return kind(text.lower())
    except ValueError:
        raise shape_error(path, f"must be one of: {', '.join(kind)}") from None


def value_error(path: str, message: str) -> Refusal:
    """Return `422 VALIDATION_ERROR`: the shape is right, the value breaks its rule. Does not lock the key."""
    return Refusal("VALIDATION_ERROR", f"{path}: {message}", status=422, details=[FieldFault(path, message)])
