"""Approval and rejection of refunds by a merchant's people: never by the person who applied, or who made the API key
that did (docs/dashboard.md "Refunds")."""

from ....ports.bundle import Ports
from ...domain.errors import Refusal
from ...domain.people.roles import PersonRight
from ...domain.refunds.refunds import Refund
from ..refunds.refunds import approve_refund, get_refund, reject_refund
from .sessions import Actor, by_person, require


def applied_for_by(refund: Refund, actor: Actor) -> bool:
    """Return whether the person applied for the refund, or a program with a key whose secret the person was shown."""
    return actor.user.id in (refund.applicant, refund.key_maker)


async def approve(ports: Ports, actor: Actor, refund_id: str) -> Refund:
    """Approve a pending refund of another person or a program.

    Raises: Refusal PERSON_RIGHT_MISSING, STEP_UP_NEEDED, REFUND_NOT_FOUND; INVALID_STATE for the person's own, and
    unless it is pending; Waits when two operators guard it.
    """
    require(actor, PersonRight.APPROVE)
    found = await get_refund(ports, actor.caller, refund_id)
    if applied_for_by(found, actor):
        raise Refusal("INVALID_STATE", "You or a key that you made applied for it: another person must approve it")
    return await approve_refund(by_person(ports, actor, "refund.approve", refund_id), refund_id)


async def reject(ports: Ports, actor: Actor, refund_id: str, reason: str) -> Refund:
    """Reject a pending refund. Raises: as `approve`; VALIDATION_ERROR without a reason."""
    require(actor, PersonRight.APPROVE)
    await get_refund(ports, actor.caller, refund_id)
    return await reject_refund(by_person(ports, actor, "refund.reject", refund_id), refund_id, reason)
