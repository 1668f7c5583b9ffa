"""Progress of an exchange: poll for the client's money, then send the payout, until it ends; and poll some hours longer
for late money (docs/exchanges.md "How it ends", "Rules").

The job, the bank's notification and the sandbox all advance the exchange in the same way. Each step reads the current
state and is one unit, so concurrent runs and crashes are harmless.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from ....ports.bank import InvoiceState, InvoiceStatus
from ....ports.bundle import Ports
from ....ports.faults import NO_ANSWER, NotConfigured, NotSupported
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain.exchanges.exchanges import AWAITING, Exchange, ExchangeStatus, operation_exchange
from ...domain.exchanges.funds import Incoming, deposit_source
from ..common.schedule import next_ask, reschedule
from ..common.simulated import is_advanced_over, is_advanced_over_on_chain
from ..common.units import retrying
from ..gateways.closing import close_invoice
from ..gateways.watch import at_bank
from .opening import give_up, open_address, open_invoice
from .payout import Paying, begin_payout, pay_out, receive
from .sending import begin_sending, send_usdt
from .steps import RACES, WATCH_EXCHANGE, enter_funds, read_exchange

POLL = timedelta(seconds=10)
"""Poll interval while an exchange awaits its money."""
LATE_FOR = timedelta(hours=6)
"""Period after `expires_at` in which the exchange is polled for late money."""

_LATE_POLLS = ((timedelta(hours=1), timedelta(minutes=5)), (LATE_FOR, timedelta(hours=1)))
"""Poll intervals after expiry, as pairs (until this long after `expires_at`, interval)."""
_UNHEARD, _UNHEARD_FOR = timedelta(minutes=10), timedelta(days=1)
"""Retry interval when the last of these polls gets no answer, and the period after `expires_at` in which it is
retried.
"""
_AWAY = timedelta(minutes=1)
"""Retry interval when a watcher gives no answer at the deadline; an exchange expires only after a successful poll."""

_S = ExchangeStatus

log = logging.getLogger("cambist.exchanges")


async def watch_exchange(ports: Ports, job: Job) -> None:
    """Follow an exchange (a job)."""
    before = await _stored(ports, job.argument)
    paying = None if before is None else await progress(ports, before, job.attempts)
    has_moved = before is not None and paying is not None and paying.exchange.version != before.version
    await _come_back(ports, job, paying, has_moved=has_moved)


async def on_exchange_notification(ports: Ports, operation: str) -> None:
    """Handle a bank's notification about an operation of an exchange. It is only a hint, so poll the bank; sending is
    left to the watch.
    """
    exchange = await _stored(ports, operation_exchange(operation) or "")
    if exchange is None:
        return
    exchange_id = exchange.id
    exchange = await _tried(exchange, "its money cannot be looked at", lambda each: poll_funds(ports, each))
    await _tried(exchange, "its payout cannot be looked at", lambda each: receive(ports, each))
    await retrying(ports.storage, lambda unit: WATCH_EXCHANGE.hurry(unit, exchange_id, ports.clock.now()))


async def _stored(ports: Ports, exchange_id: str) -> Exchange | None:
    return await ports.storage.get(Exchange, exchange_id)


async def progress(ports: Ports, exchange: Exchange, attempts: int = 1) -> Paying | None:
    """Advance an exchange as far as possible now. Return its new state, or None when it was taken back. `attempts`
    counts the runs since its last move.
    """
    present: Exchange | None = exchange
    if exchange.status is _S.PENDING:
        present = await _open(ports, exchange)
    if present is None:
        return None
    if _hold_is_over(present, ports.clock.now()):
        present = await _tried(present, "its transfer cannot begin", lambda each: _end_hold(ports, each))
    elif present.is_final:
        return await _poll_for_late(ports, present)
    else:
        present = await _tried(present, "its money cannot be looked at", lambda each: poll_funds(ports, each))
    if present.status is _S.USDT_RECEIVED:
        present = await _tried(present, "its payout cannot begin", lambda each: begin_payout(ports, each))
    try:
        if present.status is _S.RUB_SENDING:
            return await pay_out(ports, present)
        if present.status is _S.USDT_SENDING:
            return await send_usdt(ports, present, attempts)
        return Paying(present)
    except (NotConfigured, NotSupported) as fault:
        # The payout may have been sent, so it must not go another way. It waits until its bank or wallet is configured
        # again.
        log.error("exchange %s: its payout cannot go on: %s", present.id, fault)  # noqa: TRY400 - no slip of the program
        return Paying(present)


async def _poll_for_late(ports: Ports, exchange: Exchange) -> Paying:
    try:
        return Paying(await poll_funds(ports, exchange))
    except NO_ANSWER as fault:
        log.warning("exchange %s: it cannot be looked for late money: %s", exchange.id, fault)
        return Paying(exchange, is_received=False)


def _hold_is_over(exchange: Exchange, now: datetime) -> bool:
    is_held = exchange.status is _S.RUB_RECEIVED
    return is_held and exchange.hold_until is not None and now >= exchange.hold_until


async def _end_hold(ports: Ports, exchange: Exchange) -> Exchange:
    """Begin to send, unless the RUB were taken back during the hold, which exists for that case. A bank that does not
    answer therefore blocks the sending. Raises: faults of a bank's reads; NotConfigured.
    """
    return await begin_sending(ports, await poll_funds(ports, exchange))


async def _tried(exchange: Exchange, problem: str, step: Callable[[Exchange], Awaitable[Exchange]]) -> Exchange:
    try:
        return await step(exchange)
    except NO_ANSWER as fault:
        log.warning("exchange %s: %s: %s", exchange.id, problem, fault)
        return exchange


async def _open(ports: Ports, exchange: Exchange) -> Exchange | None:
    """Continue an exchange whose creating process died, or end it when its time is over."""
    if ports.clock.now() >= exchange.expires_at:
        return await give_up(ports, exchange.id)
    try:
        return await (open_address if exchange.takes_usdt else open_invoice)(ports, exchange)
    except NO_ANSWER as fault:
        log.warning("exchange %s: it cannot be opened: %s", exchange.id, fault)
        return exchange


async def poll_funds(ports: Ports, exchange: Exchange) -> Exchange:
    """Poll for the exchange's money, and apply the answer. Raises: Unavailable, NotConfigured, which leave the exchange
    unchanged.
    """
    if exchange.invoice_reference is None:
        return await take_funds(ports, exchange, await seen_funds(ports, exchange))
    state = await _invoice_state(ports, exchange)
    after = await take_funds(ports, exchange, _came(state))
    if after.is_final and state.status is InvoiceStatus.OPEN:
        await close_invoice(ports, after, exchange.invoice_reference)
    return after


async def _invoice_state(ports: Ports, exchange: Exchange) -> InvoiceState:
    async with at_bank(ports, exchange) as bank:
        return await bank.invoice_state(exchange.invoice_reference or "")


def _came(state: InvoiceState) -> Sequence[Incoming]:
    return [
        Incoming(source=each.id, amount=each.amount_kopecks, at=each.at, is_taken_back=each.taken_back)
        for each in state.transfers
    ]


async def seen_funds(ports: Ports, exchange: Exchange) -> Sequence[Incoming]:
    """Return the transfers seen so far at an exchange's address or for its invoice, final or not.

    Raises: Unavailable, NotConfigured; faults of a bank's reads.
    """
    if exchange.invoice_reference is not None:
        return _came(await _invoice_state(ports, exchange))
    if exchange.crypto_deposit_address is None:
        return ()
    watcher = ports.deposits.named(exchange.watcher or "")
    return [
        Incoming(
            source=deposit_source(deposit.tx_hash, deposit.index),
            amount=deposit.units,
            at=deposit.at,
            is_final=deposit.is_final,
        )
        for deposit in await watcher.deposits(exchange.crypto_deposit_address)
    ]


async def take_funds(ports: Ports, exchange: Exchange, seen: Sequence[Incoming]) -> Exchange:
    """Apply the transfers seen, and return the exchange as saved."""
    if not _can_be_paid_in(exchange):
        return exchange

    async def work(unit: Unit) -> Exchange:
        return await enter_funds(ports, unit, await read_exchange(unit, exchange.id), seen)

    return await retrying(ports.storage, work, again_on=RACES)


def _can_be_paid_in(exchange: Exchange) -> bool:
    return exchange.crypto_deposit_address is not None or exchange.invoice_reference is not None


async def _come_back(ports: Ports, job: Job, paying: Paying | None, *, has_moved: bool) -> None:
    async def next_due(unit: Unit) -> datetime | None:
        standing, now = await unit[Exchange].get(job.argument), ports.clock.now()
        if paying is None:
            return None
        if standing is not None and standing.version != paying.exchange.version:
            # A notification or the sandbox moved it in the meantime, so our view is outdated.
            return now
        asked = 0 if has_moved else job.attempts
        return next_status_poll(paying, asked, now, advanced=_is_advanced_over(ports, paying.exchange))

    await reschedule(ports, job, next_due, anew=has_moved)


def _is_advanced_over(ports: Ports, exchange: Exchange) -> bool:
    if exchange.takes_usdt:
        return is_advanced_over_on_chain(ports, exchange.watcher)
    return is_advanced_over(ports, exchange.bank)


def next_status_poll(paying: Paying, asked: int, now: datetime, *, advanced: bool) -> datetime | None:
    """Return when to poll the exchange next, after `asked` polls since its last move; None once it is over. With
    `advanced` it is polled only at its deadlines.
    """
    exchange = paying.exchange
    if exchange.is_final:
        late = _late_poll(exchange, now, advanced=advanced)
        if late is None and not paying.is_received and now < exchange.expires_at + _UNHEARD_FOR:
            return now + _UNHEARD
        # RUB that were taken back while the USDT were being sent can only be judged now.
        anew = not asked and exchange.invoice_reference is not None
        return now + POLL if late is None and anew else late
    if exchange.status is _S.PENDING or exchange.status in AWAITING:
        wait = exchange.expires_at - now if advanced and exchange.status is not _S.PENDING else POLL
        return min(now + wait, exchange.expires_at) if now < exchange.expires_at else now + _AWAY
    if exchange.status is _S.RUB_RECEIVED and exchange.hold_until is not None and now < exchange.hold_until:
        return exchange.hold_until
    return next_ask(paying.check_after, asked, now)


def _late_poll(exchange: Exchange, now: datetime, *, advanced: bool) -> datetime | None:
    if not _can_be_paid_in(exchange):
        return None
    last = exchange.expires_at + LATE_FOR
    if advanced:
        return last if now < last else None
    passed = now - exchange.expires_at
    return next((now + pause for until, pause in _LATE_POLLS if passed < until), None)
