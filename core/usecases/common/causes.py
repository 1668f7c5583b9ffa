"""Ids of operations that send money. In live mode they follow from their causes. So a database restored from a backup
queries its providers about operations that they know, instead of creating new ones (docs/decisions.md "After a
restore").

In test mode ids are new. No money is sent there, and an object created with a key may be deleted and created again with
it.
"""

from ....ports.bundle import Ports
from ...domain import ids
from ...domain.accounts.accounts import Mode


def caused_id(ports: Ports, mode: Mode, prefix: str, *causes: str) -> str:
    """Return the id for these causes. In live mode no other causes give the same id."""
    return ids.derived(prefix, *causes) if mode is Mode.LIVE else ids.prefixed(prefix, ports.ids.uuid())


def caused_charge_id(ports: Ports, mode: Mode, subscription_id: str, key_record: str) -> str:
    """Return the id of the charge that an idempotency key creates. Whoever knows a payment's id can open its payment
    window, so nobody may be able to derive it from the key. Therefore the vault's secret is part of it."""
    if mode is not Mode.LIVE:
        return ids.prefixed(ids.PAYMENT, ports.ids.uuid())
    return ids.derived_after(ids.PAYMENT, subscription_id, ports.vault.fingerprint(f"charge:{key_record}"))
