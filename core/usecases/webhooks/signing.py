"""The signed webhook of an event (docs/webhooks.md "The signature")."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from ....ports.notifier import WebhookRequest
from ....ports.storage import OneOf, Unit
from ....ports.vault import Vault, VaultError
from ...domain.accounts.accounts import Mode
from ...domain.receipts.receipts import FiscalReceipt
from ...domain.webhooks.endpoints import Receiver
from ...domain.webhooks.events import Event, OpenEvent
from ...domain.webhooks.signing import Signer, headers
from ..common.encrypted import open_event_body, open_webhook_headers, open_webhook_secret

log = logging.getLogger("cambist.webhooks")

_SIGNERS = 256
"""Maximum number of cached signers, of some kilobytes each."""


class Signers:
    """Cache of signers. Decrypting a secret and preparing its key takes longer than a signature.

    The cache key includes the encrypted secret, so a changed secret never uses an old signer.
    """

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._made: dict[tuple[str, bytes], Signer] = {}
        self._headers: dict[tuple[str, bytes], Mapping[str, str]] = {}

    def of(self, holder: str, sealed: bytes) -> Signer:
        """Return the signer for a secret of an account or a further endpoint. Raises: VaultError."""
        key = (holder, sealed)
        signer = self._made.get(key)
        if signer is None:
            signer = Signer(open_webhook_secret(self._vault, holder, sealed))
            if len(self._made) >= _SIGNERS:
                del self._made[next(iter(self._made))]
            self._made[key] = signer
        return signer

    def static_headers(self, holder: str, sealed: bytes | None) -> Mapping[str, str]:
        """Return an endpoint's static headers, empty without any. Raises: VaultError."""
        if sealed is None:
            return {}
        key = (holder, sealed)
        found = self._headers.get(key)
        if found is None:
            found = open_webhook_headers(self._vault, holder, sealed)
            if len(self._headers) >= _SIGNERS:
                del self._headers[next(iter(self._headers))]
            self._headers[key] = found
        return found


async def receipt_statuses(unit: Unit, events: Iterable[Event]) -> Mapping[str, str]:
    """Return the status of each existing receipt that these events name, by its id."""
    named = tuple(event.receipt_id for event in events if event.receipt_id is not None)
    if not named:
        return {}
    found = await unit[FiscalReceipt].find(id=OneOf(named), limit=len(named), quick=True, readable=True)
    return {receipt.id: receipt.status.value for receipt in found}


_NO_RECEIPTS: Mapping[str, str] = {}


def opened(vault: Vault, events: Iterable[Event], receipts: Mapping[str, str] = _NO_RECEIPTS) -> Iterator[OpenEvent]:
    """Decrypt events. An event whose body does not decrypt is logged and left out, so that it does not block the
    others. `receipts`: statuses of receipts."""
    for event in events:
        try:
            body = open_event_body(vault, event)
        except VaultError as error:
            log.error("%s is not delivered: %s", event.id, error)  # noqa: TRY400 - the traceback would say no more
        else:
            status = receipts.get(event.receipt_id or "")
            yield OpenEvent(
                id=event.id,
                type=event.type,
                sequence=event.sequence,
                body=body,
                retry_of=event.retry_of,
                receipt_status=status,
            )


def signed_webhook(
    signers: Signers,
    receiver: Receiver,
    mode: Mode,
    *,
    event_id: str,
    event: str,
    sequence: int,
    attempt: int,
    body: bytes,
    now: datetime,
    retry_of: str | None = None,
    receipt_status: str | None = None,
) -> WebhookRequest:
    """Return the request to post to the receiver at `now`. Raises: VaultError."""
    old, until = receiver.previous_secret, receiver.previous_until
    previous = None
    if old is not None and until is not None and now < until:
        previous = signers.of(receiver.holder, old)
    return WebhookRequest(
        url=receiver.url,
        headers={
            **signers.static_headers(receiver.holder, receiver.headers),
            **headers(
                signers.of(receiver.holder, receiver.secret),
                previous=previous,
                event_id=event_id,
                event=event,
                sequence=sequence,
                attempt=attempt,
                timestamp=int(now.timestamp()),
                body=body,
                retry_of=retry_of,
            ),
            **({} if receipt_status is None else {"X-Webhook-Receipt-Status": receipt_status}),
        },
        body=body,
        open_network=mode is Mode.TEST,
    )
