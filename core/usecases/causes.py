"""Ids of what sends money: in live mode they follow from their causes, so that a database that was restored from a
backup asks its providers about the operations that they know, instead of making new ones
(docs/decisions.md "What a restored database has forgotten").

In test mode they are new ones: no money is sent there, and what was made by a key may be deleted and made again by it.
"""

from ...ports.bundle import Ports
from ..domain import ids
from ..domain.accounts.accounts import Mode


def caused_id(ports: Ports, mode: Mode, prefix: str, *causes: str) -> str:
    """The id of what these causes bring about, and nothing else ever does."""
    return ids.derived(prefix, *causes) if mode is Mode.LIVE else ids.prefixed(prefix, ports.ids.uuid())


def caused_charge_id(ports: Ports, mode: Mode, subscription_id: str, key_record: str) -> str:
    """The id of the charge that a key brings about. A payment's id opens its window, so nobody may tell it from the
    key: the vault's own secret is in it."""
    if mode is not Mode.LIVE:
        return ids.prefixed(ids.PAYMENT, ports.ids.uuid())
    return ids.derived_after(ids.PAYMENT, subscription_id, ports.vault.fingerprint(f"charge:{key_record}"))
