"""Meanings and forms of fields that many records of the API have. A meaning of one record stands with its field."""

from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta


def among(values: Iterable[str | None]) -> Meta:
    """Describe a field that has one of these values. The rules of the record check it."""
    return Meta(extra_json_schema={"enum": [*values]})


def limits(**schema: Any) -> Meta:
    """Describe limits of a field, in words of JSON Schema. The rules of the record check them."""
    return Meta(extra_json_schema=schema)


RubText = Annotated[str, limits(pattern=r"^[0-9]{1,10}(\.[0-9]{1,2})?$", examples=["1500.00"])]
UsdtText = Annotated[str, limits(pattern=r"^[0-9]{1,10}(\.[0-9]{1,8})?$", examples=["100"])]
RussianPhone = Annotated[str, limits(pattern=r"^\+7[0-9]{10}$", examples=["+79001234567"])]
Phone = Annotated[str, limits(pattern=r"^\+[0-9]{10,15}$", examples=["+79001234567"])]
MomentText = Annotated[str, limits(format="date-time")]
UuidText = Annotated[str, limits(format="uuid")]

ACTUAL_AMOUNT_RUB = Meta(description="The amount really paid; null until money arrives")
AMOUNT_RUB = Meta(description="RUB: up to 2 decimals in requests, always 2 in answers")
AMOUNT_USDT = Meta(description="USDT, 8 decimals; set on a payment when it is settled")
ANSWER = Meta(description="`responded`, or the connection error; null before the first attempt")
CLIENT_PHONE = Meta(description="`+` and 10 to 15 digits")
COMPLETED_AT = Meta(description="Time of completion; null until then")
CREATED_AT = Meta(description="Time of creation")
CRYPTO_DEPOSIT_ADDRESS = Meta(description="Address to which the client sends USDT")
DATA = Meta(description="Elements of this page")
ENDPOINT_ID = Meta(description="The further webhook endpoint; null: the account's own")
ERROR = Meta(description="Reason of the refusal")
EVENT = Meta(description="Type of the event")
EXPIRES_AT = Meta(description="Deadline")
EXTERNAL_ID = Meta(description="Your own id of the object")
FAILURE_REASON = Meta(description="Reason of the failure; only on failed objects")
ID = Meta(description="Id of the object")
METADATA = Meta(description="Your own keys; reserved keys are dropped")
METHOD_ID = Meta(description="Id of the terminal")
NETWORK = Meta(description="Blockchain network")
NEXT_ALLOWED_AT = Meta(description="Time from which a charge is allowed")
NOTE = Meta(description="Remark for people")
OUTCOME = Meta(description="The outcome to simulate or decide")
PAGINATION = Meta(description="Page number and number of pages")
PAYER_NAME = Meta(description="Name of the payer as reported by the bank; absent if the bank reports none")
PAYMENTS = Meta(description="Number of payments")
PAYMENT_ID = Meta(description="Id of the payment")
PAYMENT_METHOD = Meta(description="`sbp`, or `recurring` for bindings and charges")
PERIOD_REF = Meta(description="Id of the subscription period that the charge is for")
PHONE = Meta(description="`+7` and 10 digits")
PREVIOUS_STATUS = Meta(description="Previous status; the same where only a flag or a link changed")
RATE = Meta(description="RUB per USDT for the client")
RATE_MARKET = Meta(description="RUB per USDT, without markup")
SANDBOX = Meta(description="True in test mode, absent in live mode")
SENT_AT = Meta(description="Time of sending")
SHOP_ID = Meta(description="Id of the shop; your default shop if absent")
SHOP_NAME = Meta(description="Name of the shop")
STATUS = Meta(description="Status")
SUBSCRIPTION_ID = Meta(description="Id of the subscription")
TIMESTAMP = Meta(description="Time of the event")
TOOK_MS = Meta(description="Duration in milliseconds")
TX_HASH = Meta(description="Hash of the transaction on the blockchain")
WITHDRAWAL_ID = Meta(description="Id of the payout")
