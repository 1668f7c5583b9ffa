"""Check that the vault's pepper and keys are those of the database.

The row of the installation stores a check value of the pepper and of each key that ever encrypted anything. With
another pepper no API key is accepted. With another key under the same id, other processes cannot decrypt what this one
encrypts.
"""

import hmac

import msgspec

from ...ports.clock import Clock, Ids
from ...ports.storage import Storage, Unit
from ...ports.vault import Vault
from ..domain.accounts.accounts import Account
from ..domain.installation import INSTALLATION, Because, Installation
from .common.encrypted import tag_hold
from .common.quarantine import RACES, read_installation
from .common.units import retrying

PEPPER = "pepper"
_SAID = b"cambist"
_PLACE = "installations.vault_checks"


def misfits(vault: Vault, checks: dict[str, str]) -> list[str]:
    """Return the names of differing parts: `pepper`, `key 2`; `keys` when the vault has none of the database's keys."""
    found = [PEPPER] if not hmac.compare_digest(checks.get(PEPPER, _pepper(vault)), _pepper(vault)) else []
    keys = {int(name): bytes.fromhex(value) for name, value in checks.items() if name != PEPPER}
    ours = sorted(keys.keys() & vault.keys)
    if keys and not ours:
        found.append("keys")
    return found + [f"key {number}" for number in ours if not vault.fits(keys[number], _SAID, _PLACE)]


async def vault_misfits(storage: Storage, vault: Vault) -> list[str]:
    """Return the names of the parts that differ from the row of the database. A missing or unreadable row differs in
    nothing.

    Raises: Unavailable.
    """
    installation = await read_installation(storage, vault)
    return [] if installation is None else misfits(vault, installation.vault_checks)


async def settle_vault_checks(storage: Storage, vault: Vault, clock: Clock, ids: Ids) -> list[str]:
    """Compare the check values and write missing ones: at the first start, and when a key encrypts for the first time.

    They are written once. Only while the database has no account do they follow the vault. Raises: Unavailable.
    """
    present = await read_installation(storage, vault)
    if present is not None and present.held_because is Because.UNREADABLE:
        return []
    if present is not None and _is_noted(vault, present):
        return misfits(vault, present.vault_checks)

    async def work(unit: Unit) -> list[str]:
        row = await unit[Installation].get(INSTALLATION)
        found = [] if row is None else misfits(vault, row.vault_checks)
        if found and await unit[Account].find(limit=1):
            return found
        known = {} if row is None or found else row.vault_checks
        _write(unit, row, {**present_checks(vault), **known}, vault, clock, ids, tags=bool(found))
        return []

    return await retrying(storage, work, again_on=RACES)


async def adopt_vault(storage: Storage, vault: Vault, clock: Clock, ids: Ids) -> None:
    """Adopt the vault's pepper and current key as the database's own, whatever it had before."""

    async def work(unit: Unit) -> None:
        row = await unit[Installation].get(INSTALLATION)
        _write(unit, row, present_checks(vault), vault, clock, ids, tags=True)

    await retrying(storage, work, again_on=RACES)


def _write(
    unit: Unit, row: Installation | None, checks: dict[str, str], vault: Vault, clock: Clock, ids: Ids, *, tags: bool
) -> None:
    """Write the check values. `tags`: the vault is another one, so it tags the hold as it stands."""
    if row is None:
        fresh = Installation(mark=str(ids.uuid()), marked_at=clock.now(), vault_checks=checks)
        unit[Installation].add(tag_hold(vault, fresh))
    elif checks != row.vault_checks:
        after = msgspec.structs.replace(row, vault_checks=checks)
        unit[Installation].save(tag_hold(vault, after) if tags else after)


def present_checks(vault: Vault) -> dict[str, str]:
    """Return the check values of the pepper and the current key."""
    return {PEPPER: _pepper(vault), str(vault.current): vault.tag(_SAID, _PLACE).hex()}


def _pepper(vault: Vault) -> str:
    return vault.fingerprint(_PLACE).hex()


def _is_noted(vault: Vault, installation: Installation) -> bool:
    return {PEPPER, str(vault.current)} <= installation.vault_checks.keys() and not misfits(
        vault, installation.vault_checks
    )
