"""Slips in subscriptions and their charges."""

from tests.simulation.mutants.slips import Slip, domain, usecase

SUBSCRIPTIONS: dict[str, Slip] = {
    "an attempt that is pending blocks no other": domain(
        "subscriptions/charge_decisions",
        "if state.attempts is not None and state.attempts.pending:\n        return Blocked(period=state",
        "if state.attempts is not None and False:\n        return Blocked(period=state",
    ),
    "a late success of a period opens it again": domain(
        "subscriptions/charge_moves", '        changes["attempts"] = msgspec.structs.replace(attempts, paid=True)\n', ""
    ),
    "a charge whose answer was lost has failed": usecase(
        "subscriptions/charge_progress", "        return Opening.UNKNOWN\n", "        return FailureReason.UNKNOWN\n"
    ),
    "the event of used-up attempts is sent again and again": domain(
        "subscriptions/charge_moves",
        "attempts=msgspec.structs.replace(attempts, announced=True)))",
        "attempts=msgspec.structs.replace(attempts, announced=False)))",
    ),
    "a subscription may take more than its payer confirmed": domain(
        "subscriptions/moves",
        '    changes |= {"amount": min(subscription.amount, shown), "cap_amount": min(',
        '    _ = {"amount": min(subscription.amount, shown), "cap_amount": min(',
    ),
    "a cancelled subscription leaves its mandate at the bank": domain(
        "subscriptions/moves",
        "        _T.CANCELLED,\n        now,\n        past_due=False,\n        rebind_required=False,\n"
        "        binding_url_pending=False,\n        revoke_pending=_is_known_to_a_bank(subscription),\n",
        "        _T.CANCELLED,\n        now,\n        past_due=False,\n        rebind_required=False,\n"
        "        binding_url_pending=False,\n",
    ),
    "each try of a charge is another operation at the bank": usecase(
        "subscriptions/charge_progress",
        "        operation=payment.id,\n        reference=subscription.mandate_reference",
        '        operation=f"{payment.id}-{payment.version}",\n        reference=subscription.mandate_reference',
    ),
    "a charge that failed counts as its period's payment": domain(
        "subscriptions/charge_moves",
        "    return changed(subscription, now, attempts=msgspec.structs.replace(attempts, pending=False))\n\n\n"
        "def charge_succeeded",
        "    attempts = msgspec.structs.replace(attempts, pending=False, paid=True)\n"
        "    return changed(subscription, now, attempts=attempts)\n\n\n"
        "def charge_succeeded",
    ),
}
