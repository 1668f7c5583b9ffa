"""Realistic slips of the code, each of which a world must notice within 200 seeds (docs/reliability.md "Mutants")."""

from tests.mutants import Mutant


def _domain(room: str, right: str, wrong: str) -> Mutant:
    return Mutant(f"core/domain/{room}.py", right, wrong)


def _usecase(room: str, right: str, wrong: str) -> Mutant:
    return Mutant(f"core/usecases/{room}.py", right, wrong)


MUTANTS: dict[str, Mutant] = {
    "each try of a refund is another operation at the bank": _usecase(
        "refunds/progress",
        "operation=subject.refund.id,\n            reference",
        'operation=f"{subject.refund.id}-{subject.refund.version}-{subject.payment.version}",\n            reference',
    ),
    "an unknown outcome counts as a refusal": _usecase(
        "operations/engine",
        "row.unknown(subject), fault)\n    except NotConfigured",
        "row.refused(subject, Refused(str(fault))), fault)\n    except NotConfigured",
    ),
    "a refund is not held against the balance": _usecase(
        "refunds/money",
        "if not await may_take(unit, payment.account_id, payment.mode, value, overdraft=overdraft):",
        "if value.units < 0:",
    ),
    "a settlement takes what was paid today": _usecase(
        "settlement/run", "paid_at=Below(cutoff)", "paid_at=Below(run.batch.started_at)"
    ),
    "a payout that nobody sees counts as failed": _usecase(
        "signed_transfers/engine",
        "if seen.state is TransferState.FAILED:",
        "if seen.state in (TransferState.FAILED, TransferState.UNSEEN):",
    ),
    "late money does not count": _domain(
        "payments/reports", "<= max(payment.created_at + LATE_WINDOW, payment.expires_at)", "<= payment.expires_at"
    ),
    "a second transfer is nobody's": _domain(
        "payments/reports",
        'return Decision(strays=_strays(arrivals, payment.transfer_id, "second_transfer"))',
        "return Decision()",
    ),
    "every answer of a receiver is good": _domain(
        "webhooks/delivery",
        "probe, good, status, delivered_at = outcome.probe, outcome.good,",
        "probe, good, status, delivered_at = outcome.probe, True,",
    ),
    "a notice is answered and not kept": _usecase(
        "notice_intake", "    await _keep(ports, adapter, operations)\n    return", "    return"
    ),
    "nobody looks for late money": _usecase(
        "payments/progress",
        "        return next_late_poll(ports, payment, looked)",
        "        return None",
    ),
    "a save overwrites what others saved": Mutant(
        "adapters/storage/memory/memory.py",
        'if row is None or (version is not None and row[self.mapped.codec.index["version"]] != version):',
        "if row is None:",
    ),
    "a key is not written down": _usecase(
        "payments/payments",
        "            unit[IdempotencyKey].add(key_record)\n            add_payment",
        "            key_record.id.strip()\n            add_payment",
    ),
    "what is stray is not booked": _usecase(
        "payments/moves", "    book_suspense(ports, unit, suspense, source)\n", "    suspense.id.strip()\n"
    ),
    "a payment's move is told to nobody": _usecase("payments/moves", "    announce_payment,\n    plan", "    plan"),
    "a move is told before it is true": _usecase(
        "payments/moves",
        "    for write in FOLLOWS:\n        await write(ports, unit, move)",
        "    for write in FOLLOWS:\n        if write is announce_payment:\n"
        "            async with ports.storage.unit() as apart:\n                await write(ports, apart, move)\n"
        "                await apart.commit()\n        else:\n"
        "            await write(ports, unit, move)",
    ),
    "each attempt has another webhook id": _domain(
        "webhooks/signing", '"X-Webhook-Id": event_id,', '"X-Webhook-Id": f"{event_id}-{timestamp}",'
    ),
    "money that came back from a payer is nobody's": _usecase(
        "refunds/steps",
        "        payment = give_back(ports, unit, payment, refund, reversed_=True)",
        "        payment.id.strip()",
    ),
    "refunds may be more than what came": _domain(
        "refunds/refunds",
        "if refund.status in _COUNTED)",
        "if refund.status in _COUNTED and refund.status is _S.COMPLETED)",
    ),
    "a refund that is under way can be cancelled": _usecase(
        "refunds/refunds",
        "    if refund.status is not RefundStatus.PENDING:\n        raise _not_pending(refund)\n    await CARRY_OUT",
        "    if refund.status is not RefundStatus.PENDING:\n        return refund\n    await CARRY_OUT",
    ),
    "a payout that ended is not taken out of what is reserved": _usecase(
        "settlement/withdrawal_progress",
        "        book_payout(ports, unit, last, EntryKind.PAYOUT_SENT, Purse.RESERVED, Purse.PAID_OUT)",
        "        last.id.strip()",
    ),
    "whoever lost a job ends it": _usecase(
        "schedule",
        "return present is not None and (present.version, present.created_at) == (job.version, job.created_at)",
        "return present is not None",
    ),
    "another signature replaces the first": _usecase(
        "signed_transfers/engine",
        "return await row.store(ports, unit, present, signed) if _is_as_seen(row, present, seen) else present",
        "return await row.store(ports, unit, present, signed)",
    ),
    "of two who take at once both may": _usecase(
        "ledger/ledger", "    else:\n        unit[LedgerAccount].save(row)\n    return True", "    return True"
    ),
    "an attempt that is pending blocks no other": _domain(
        "subscriptions/charge_decisions",
        "if state.attempts is not None and state.attempts.pending:\n        return Blocked(period=state",
        "if state.attempts is not None and False:\n        return Blocked(period=state",
    ),
    "what was paid late of a period opens it again": _domain(
        "subscriptions/charge_moves", '        changes["attempts"] = msgspec.structs.replace(attempts, paid=True)\n', ""
    ),
    "a charge whose answer was lost has failed": _usecase(
        "subscriptions/charge_progress", "        return Opening.UNKNOWN\n", "        return FailureReason.UNKNOWN\n"
    ),
}
"""By what each does."""
