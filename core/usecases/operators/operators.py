"""Operators' keys: creation, listing, revocation and sign-in (docs/operations.md "Operators' keys")."""

import hmac

import msgspec

from ....ports.bundle import Ports
from ....ports.storage import Unit
from ...domain import ids
from ...domain.errors import Refusal
from ...domain.masked import Masked
from ...domain.operators.operators import OPERATOR, Operator, OperatorKey, ended, operator_name, read_key
from ..actions.four_eyes import gated
from ..common.units import retrying

NAME_TAKEN = "operators_name"
"""Unique rule of the storage: a name belongs to one operator forever."""
_SECRET_BYTES = 32


class NewOperator(Masked, frozen=True, kw_only=True):
    """A new operator. Its key exists in plain text only here."""

    _shown = ("operator",)

    operator: Operator
    key: OperatorKey


async def create_operator(ports: Ports, name: str) -> NewOperator:
    """Create an operator with a key.

    Raises: Refusal VALIDATION_ERROR for an invalid name, INVALID_STATE for a used one; Waits when a second operator has
    to confirm, which is so from the third operator on.
    """
    wanted = operator_name(name)
    ports = gated(ports, "create_operator", wanted)
    key = OperatorKey(name=wanted, secret=ports.ids.secret(_SECRET_BYTES))
    record_id = ids.prefixed(OPERATOR, ports.ids.uuid())
    digest = _digest(ports, record_id, key)
    fresh = Operator(id=record_id, name=wanted, digest=digest, created_at=ports.clock.now())

    async def work(unit: Unit) -> Operator:
        if await unit[Operator].find(name=wanted, limit=1):
            raise Refusal("INVALID_STATE", "An operator has or had this name: choose another")
        return unit[Operator].add(fresh)

    return NewOperator(operator=await retrying(ports.storage, work, again_on=(NAME_TAKEN,)), key=key)


async def end_operator(ports: Ports, name: str) -> Operator:
    """Revoke an operator's key at once.

    Raises: Refusal NOT_FOUND when no active operator has the name; Waits when a second operator has to confirm.
    """
    ports = gated(ports, "end_operator", name)

    async def work(unit: Unit) -> Operator:
        found = await unit[Operator].find(name=name, limit=1)
        if not found or found[0].ended_at is not None:
            raise Refusal("NOT_FOUND", "No operator in force has this name")
        return unit[Operator].save(ended(found[0], ports.clock.now()))

    return await retrying(ports.storage, work)


async def list_operators(ports: Ports) -> list[Operator]:
    """Return all operators, oldest first."""
    return [each async for batch in ports.storage.scan(Operator, readable=True) for each in batch]


async def sign_in(ports: Ports, text: str | None) -> Operator | None:
    """Return the operator of this key. Without a key, return None while there is no active operator, so that the first
    one can be created.

    Raises: Refusal Unauthorized without a key, or for an invalid or revoked one.
    """
    async with ports.storage.unit() as unit:
        if text is None:
            if await unit[Operator].find(ended_at=None, limit=1):
                raise Refusal(
                    "Unauthorized", "Operators must sign in on this installation: set CAMBIST_OPERATOR_KEY to your key"
                )
            return None
        key = read_key(text)
        found = [] if key is None else await unit[Operator].find(name=key.name, limit=1)
    for each in found:
        if key is not None and hmac.compare_digest(each.digest, _digest(ports, each.id, key)) and each.ended_at is None:
            return each
    raise Refusal("Unauthorized", "No operator in force has this key (CAMBIST_OPERATOR_KEY)")


def _digest(ports: Ports, record_id: str, key: OperatorKey) -> bytes:
    return ports.vault.fingerprint(msgspec.json.encode(("operator", record_id, key.name, key.secret)).decode())
