"""Headers of answers and of webhooks with their descriptions, for the OpenAPI document."""

from collections.abc import Mapping

RATE_HEADERS: Mapping[str, str] = {
    "X-RateLimit-Limit": "Requests per window of 60 seconds",
    "X-RateLimit-Remaining": "Requests left in the window",
    "X-RateLimit-Reset": "When the window ends, in Unix seconds",
}
HELP_HEADER = ("Link", '`<…/docs/errors#CODE>; rel="help"`: where the code is explained')
"""Header of every refusal."""
LETTER_HEADERS: Mapping[str, str] = {
    "X-Webhook-Id": "The event's id, the same over all attempts: by it duplicates are told",
    "X-Webhook-Timestamp": "Unix seconds of this attempt",
    "X-Webhook-Signature": "`sha256=` and the hex HMAC-SHA256 of `<timestamp>.<raw body>`",
    "X-Webhook-Event": "The event's type",
    "X-Webhook-Attempt": "Counts from 1",
    "X-Webhook-Sequence": "Rises per object",
    "webhook-id": "Standard Webhooks: as X-Webhook-Id",
    "webhook-timestamp": "Standard Webhooks: as X-Webhook-Timestamp",
    "webhook-signature": "Standard Webhooks: `v1,<base64>`, several with a space",
}
RETRY_HEADER = (
    "X-Webhook-Retry-Of",
    "Only of a payment that its payer made after another one failed or expired: the id of that one",
)
RECEIPT_HEADER = (
    "X-Webhook-Receipt-Status",
    "Only of a payment with a receipt: `pending`, `succeeded` or `failed` at the time of sending",
)
"""Headers that only some webhooks about payments carry."""
