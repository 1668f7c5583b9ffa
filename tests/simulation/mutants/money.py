"""Slips over money: payments, refunds, settlement, payouts, the ledger and its movements."""

from tests.mutants import Mutant
from tests.simulation.mutants.slips import Slip, at, domain, slip, usecase

PAYMENTS: dict[str, Slip] = {
    "an unknown outcome counts as a refusal": usecase(
        "operations/engine",
        "row.unknown(subject), fault)\n    except NotConfigured",
        "row.refused(subject, Refused(str(fault))), fault)\n    except NotConfigured",
    ),
    "late money does not count": domain(
        "payments/reports", "<= max(payment.created_at + LATE_WINDOW, payment.expires_at)", "<= payment.expires_at"
    ),
    "a second transfer is nobody's": domain(
        "payments/reports",
        'return Decision(unapplied=_unapplied(arrivals, payment.transfer_id, "second_transfer"))',
        "return Decision()",
    ),
    "a kopeck less is enough": domain(
        "payments/reports",
        "if first.amount == payment.amount else",
        "if abs(first.amount.kopecks - payment.amount.kopecks) <= 1 else",
    ),
    "a payment is paid when we hear of it": domain(
        "payments/reports",
        '"paid_at"] = now if decision.arrival is None else min(decision.arrival.at, now)',
        '"paid_at"] = now',
    ),
    "late money is not polled for": usecase(
        "payments/progress",
        "        return next_late_poll(ports, payment, looked)",
        "        return None",
    ),
    "an unapplied transfer is not booked": usecase(
        "payments/moves",
        "        book_suspense(ports, unit, unit[Suspense].add(money), source)\n",
        "        unit[Suspense].add(money)\n",
    ),
    "a transfer is booked again when its review ends": usecase(
        "payments/bookings",
        "        if before.transfer_id is None:\n            _book(ports, unit, after, EntryKind.REVIEW,",
        "        if before.transfer_id is not None:\n            _book(ports, unit, after, EntryKind.RECEIPT,",
    ),
    "a payment's move has no event": usecase("payments/moves", "    announce_payment,\n    plan", "    plan"),
    "a move's event is written before the move": usecase(
        "payments/moves",
        "    for write in FOLLOWS:\n        await write(ports, unit, move)",
        "    for write in FOLLOWS:\n        if write is announce_payment:\n"
        "            async with ports.storage.unit() as apart:\n                await write(ports, apart, move)\n"
        "                await apart.commit()\n        else:\n"
        "            await write(ports, unit, move)",
    ),
    "a move's event is written in a later unit": slip(
        Mutant(
            "core/usecases/payments/moves.py",
            "    for write in FOLLOWS:\n        await write(ports, unit, move)",
            "    for write in FOLLOWS:\n        if write is not announce_payment:\n"
            "            await write(ports, unit, move)\n"
            "    LATER.add(asyncio.create_task(_tell(ports, move)))",
        ),
        Mutant(
            "core/usecases/payments/moves.py",
            "def _encrypt_name(",
            "LATER: set[asyncio.Task[None]] = set()\n\n\n"
            "async def _tell(ports: Ports, move: PaymentMove) -> None:\n"
            "    await ports.clock.sleep(0.5)\n"
            "    stored = await ports.storage.get(Payment, move.after.id)\n"
            "    if stored is not None and stored.sequence >= move.after.sequence:\n"
            "        async with ports.storage.unit() as unit:\n"
            "            await announce_payment(ports, unit, move)\n"
            "            await unit.commit()\n\n\n"
            "def _encrypt_name(",
        ),
        Mutant("core/usecases/payments/moves.py", "from collections.abc", "import asyncio\nfrom collections.abc"),
    ),
    "the key of an unknown outcome is free again": usecase(
        "payments/opening",
        "        except OutcomeUnknown:\n            return await _outcome_unknown(ports, payment)\n"
        "        except (Unavailable, NotConfigured):",
        "        except (OutcomeUnknown, Unavailable, NotConfigured):",
    ),
    "an unknown outcome is forgotten once its bank answers": usecase(
        "payments/opening", '"opening": OPEN if present.opening is ASKING else present.opening,', '"opening": OPEN,'
    ),
}

REFUNDS: dict[str, Slip] = {
    "each try of a refund is another operation at the bank": usecase(
        "refunds/progress",
        "operation=subject.refund.id,\n            reference",
        'operation=f"{subject.refund.id}-{subject.refund.version}-{subject.payment.version}",\n            reference',
    ),
    "a refund is not held against the balance": usecase(
        "refunds/money",
        "if not await may_take(unit, payment.account_id, payment.mode, value, overdraft=overdraft):",
        "if value.units < 0:",
    ),
    "money that came back from a payer is nobody's": usecase(
        "refunds/steps",
        "        payment = give_back(ports, unit, payment, refund, reversed_=True)",
        "        payment.id.strip()",
    ),
    "refunds may exceed the received amount": domain(
        "refunds/refunds",
        "if refund.status in _COUNTED)",
        "if refund.status in _COUNTED and refund.status is _S.COMPLETED)",
    ),
    "a refund that is under way can be cancelled": usecase(
        "refunds/refunds",
        "    if refund.status is not RefundStatus.PENDING:\n        raise _not_pending(refund)\n    await CARRY_OUT",
        "    if refund.status is not RefundStatus.PENDING:\n        return refund\n    await CARRY_OUT",
    ),
    "money that a bank sent back is not booked": usecase(
        "refunds/steps", "        paid(ports, unit, refund)\n", "        refund.id.strip()\n"
    ),
    "a refund that failed stays taken out of its payment": usecase(
        "refunds/money", "refund_taken=payment.refund_taken - refund.amount)", "refund_taken=payment.refund_taken)"
    ),
    "money that comes back after settlement waits for no settlement": usecase(
        "refunds/money",
        "        if payment.settlement_id is not None:\n            unit[Correction].add(",
        "        if payment.settlement_id is None:\n            unit[Correction].add(",
    ),
    "a completed refund is not polled for a reversal": usecase(
        "refunds/progress", "{_S.PROCESSING: Want.SEND, _S.COMPLETED: Want.POLL}", "{_S.PROCESSING: Want.SEND}"
    ),
    "a refund cannot come back before we saw it go": usecase(
        "refunds/progress",
        "(_S.PROCESSING, AtBank.REVERSED): (_T.PAID, _T.CAME_BACK)",
        "(_S.PROCESSING, AtBank.REVERSED): (_T.CAME_BACK,)",
    ),
    "a refund's event has the number of the one before": domain(
        "refunds/refunds", "sequence = refund.sequence + (status in TOLD)", "sequence = refund.sequence"
    ),
}

SETTLEMENT: dict[str, Slip] = {
    "a settlement takes what was paid today": usecase(
        "settlement/run", "paid_at=Below(cutoff)", "paid_at=Below(run.batch.started_at)"
    ),
    "a payment at midnight belongs to the day before": usecase(
        "settlement/run", "paid_at=Below(cutoff)", "paid_at=Below(cutoff + timedelta(microseconds=1))"
    ),
    "a settlement pays what refunds took": usecase(
        "settlement/chunks", "        left = paid - payment.refund_taken\n", "        left = paid\n"
    ),
    "a credit is rounded up": domain(
        "settlement/settlement",
        "credit=Usdt(units * (of - part) // (rate * of)),",
        "credit=Usdt(-(-units * (of - part) // (rate * of))),",
    ),
    "a statement's sums miss what refunds took": usecase(
        "settlement/chunks",
        '        "amount": sum(each.amount.kopecks for each in settled),',
        '        "amount": sum(line.amount.kopecks for each in settled for line in each.lines[:1]),',
    ),
    "a settled payment has no event of its own": usecase(
        "settlement/chunks",
        "        await follow(ports, unit, payment, after, account=account, shop=run.shops[payment.shop_id])\n",
        "",
    ),
    "a payout that no node sees counts as failed": usecase(
        "signed_transfers/engine",
        "if seen.state is TransferState.FAILED:",
        "if seen.state in (TransferState.FAILED, TransferState.UNSEEN):",
    ),
    "a completed payout stays in the reserve": usecase(
        "settlement/withdrawal_progress",
        "        book_payout(ports, unit, last, EntryKind.PAYOUT_SENT, BalanceType.RESERVED, BalanceType.PAID_OUT)",
        "        last.id.strip()",
    ),
    "a payout reserves nothing": usecase(
        "settlement/withdrawals",
        "        book_payout(ports, unit, withdrawal, EntryKind.PAYOUT_RESERVED, BalanceType.AVAILABLE, "
        "BalanceType.RESERVED)\n"
        "        await announce",
        "        await announce",
    ),
    "a failed payout gives nothing back": usecase(
        "settlement/withdrawal_progress", "    if last.status in GIVEN_BACK:", "    if last.status is _S.CANCELLED:"
    ),
    "another signature replaces the first": usecase(
        "signed_transfers/engine",
        "return await row.store(ports, unit, present, signed) if _is_as_seen(row, present, seen) else present",
        "return await row.store(ports, unit, present, signed)",
    ),
    "a payout is broadcast before it is stored": usecase(
        "signed_transfers/engine",
        "        present = await _store(row, ports, seen, signed)\n",
        "        await broadcast(ports.senders.named(sending.sender), signed)\n"
        "        present = await _store(row, ports, seen, signed)\n",
    ),
    "a transfer in any block counts as final": usecase(
        "signed_transfers/engine",
        "    if seen.state is TransferState.FINAL:\n",
        "    if seen.state in (TransferState.FINAL, TransferState.IN_BLOCK):\n",
    ),
}

LEDGER: dict[str, Slip] = {
    "two units may take the same money at once": usecase(
        "ledger/ledger", "    else:\n        unit[LedgerAccount].save(row)\n    return True", "    return True"
    ),
    "only the last of a unit's entries counts": usecase(
        "ledger/ledger",
        "                row = msgspec.structs.replace(known, balance=known.balance + row.balance)\n",
        "                row = msgspec.structs.replace(known, balance=row.balance)\n",
    ),
    "sums count twice where a unit lost": at(
        "adapters/storage/memory/memory.py",
        "            for table, record_id, before in reversed(undo):\n                table.put(record_id, before)\n",
        "            for table, record_id, before in undo[:0]:\n                table.put(record_id, before)\n",
    ),
    "an entry that is listed as a movement is not marked": usecase(
        "ledger/listing",
        "            unit[JournalEntry].change(entry, place=place, **numbered)\n",
        "            unit[JournalEntry].change(entry, **numbered)\n",
    ),
    "a released reserve is not listed as a movement": domain(
        "movements",
        "            reserved += posting.amount\n",
        "            reserved += posting.amount if entry.kind is not EntryKind.PAYOUT_SENT else 0\n",
    ),
}
