"""English words for what docs/generate.py makes of the code; docs/russian.py has the same in Russian."""

from collections.abc import Mapping

from cambist.core.domain.errors import Retry

DO: Mapping[Retry, str] = {
    Retry.NEVER: "change the request",
    Retry.SAME_KEY: "again later, same key",
    Retry.NEW_KEY: "again, new key",
}

ERRORS_HEAD = """# Errors

Every error has one form, whatever went wrong:

```json
{"error": {"code": "AMOUNT_BELOW_MINIMUM", "message": "A one-off payment is at least 30 RUB"}}
```

- Go by `code` and by the HTTP status. `message` is for people and may change; do not show it to payers.
- `details` is there only where it says more: an array of `{path, message}` for fields, or an object (`missing_fields`,
  `next_allowed_at`, `right`, or `payment_id` and `failure_reason` of a refused charge).
- `X-Request-Id` is on every answer. Quote it when you ask the service's operator.
- The header `Link` leads to the code's row below: `<https://…/docs/errors#CODE>; rel="help"`, at the service's own
  address. The Python client has it as `doc_url` of its exceptions, the command line prints it.
- A code that you do not know: treat it by its status. 4xx: change the request. 429 and 5xx: the same request again
  later, with the same `Idempotency-Key`.

"Same key": the key is not used up, and a repeat cannot create a second object. "New key": the key keeps this answer for
ever. "Change the request": a repeat gives the same answer until something is different; unless the table says
otherwise the key is free, so you may send the corrected request with it.

"Later" is what `Retry-After` says. Without that header: after 30 to 60 seconds for 5xx, and for the rest once what the
message names has happened. No answer at all (a timeout, a connection that broke) is like a 500: it may have been done,
so the same request with the same key. [The Python client](client.md#errors) does all of this by itself.

## All codes

| HTTP | Code | Meaning | What to do |
|---|---|---|---|
"""
ERRORS_BY_CALL = """

## By call

Beside these, every call may meet `VALIDATION_ERROR`, `Unauthorized`, `KEY_ADDRESS_NOT_ALLOWED` and `KEY_RIGHT_MISSING`
([keys with fewer rights](concepts.md#keys-with-fewer-rights)), `RATE_LIMIT_EXCEEDED`, `HEADERS_TOO_LARGE`,
`INTERNAL_ERROR` and, under [overload](limits.md#overload), `PROVIDER_UNAVAILABLE`; a `POST` `PAYLOAD_TOO_LARGE`; one
that creates something `MISSING_IDEMPOTENCY_KEY` and `IDEMPOTENCY_KEY_REUSED`; the [sandbox](sandbox.md) of a live key
`NOT_FOUND`.

| Call | Codes |
|---|---|
"""

STATES_HEAD = """# States

The statuses of each object, and the moves between them. A move that is not here does not happen. A thick frame marks a
state that nothing leads out of.
"""
STATES_COLUMNS = "| From | To | When |"
STATES_MORE = "More"

PAYLOADS_HEAD = """# Payloads

The body of each [event](webhooks.md#events): a JSON object with these fields and no other. A field that is not required
is left out where there is nothing to say; "or null" means that it is there and null. Text whose values are not listed
may get further ones.
"""
PAYLOADS_COLUMNS = "| Field | Required | Type | |"
YES, NO = "yes", "no"
OR = "or"
BETWEEN = "{} to {}"

SETTINGS_HEAD = """# Settings

All settings of an installation, and of the adapters that come with cambist. Each is a variable of the environment,
or a key of `cambist.toml` in lower case without `CAMBIST_`: `CAMBIST_LOG_LEVEL` is `log_level`. A secret may also come
from a file: `CAMBIST_VAULT_KEY_FILE=/path`. `cambist config check` shows the values in force and where each comes from.
[Settings and secrets](operations.md#settings-and-secrets) says when to set them, and the pages of the
[providers](providers/index.md) what to enter there. Each adapter that receives notifications also has
`CAMBIST_<ADAPTER>_NOTIFICATION_NETWORKS` ([notifications](operations.md#notifications-of-providers)).
"""
"""Begin of docs/settings.md."""
