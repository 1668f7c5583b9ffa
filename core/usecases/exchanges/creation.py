"""Creation of exchanges in both directions (docs/exchanges.md "Making one"; docs/concepts.md "What is refused
first").
"""

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Conflict, NotConfigured
from ....ports.jobs import Job
from ....ports.storage import Unit
from ...domain import ids
from ...domain.accounts.accounts import Caller, Mode
from ...domain.accounts.idempotency import IdempotencyKey
from ...domain.errors import Refusal
from ...domain.exchanges.exchanges import (
    ACTIVE_RULE,
    NETWORK,
    Direction,
    DirectionSwitch,
    Exchange,
    ExchangeStatus,
)
from ...domain.exchanges.money import ExchangeQuote, quote_rub, quote_usdt
from ...domain.exchanges.orders import (
    ExchangeCase,
    ExchangeOrder,
    ReadExchange,
    RubExchangeOrder,
    Step,
    judge_exchange,
    new_exchange,
)
from ...domain.money import Rub
from ..accounts.accounts import find_account
from ..common.account_time import in_test_time_of_account
from ..common.causes import caused_id
from ..common.encrypted import exchange_phone_aad, tag_exchange, true_settings
from ..common.idempotency import KEY_TAKEN, Lock, Made, once, yield_to_maker
from ..common.own_addresses import refuse_own_address
from ..common.units import retrying
from ..gateways.gateways import first_open
from ..gateways.members import known_members
from ..kyc.gate import find_client, present_client
from ..payments.receipts import takes_without
from ..payments.route_refusals import outside_limits
from ..settlement.rates import market_rate
from .opening import open_new
from .progress import POLL, progress
from .steps import WATCH_EXCHANGE

KIND = "exchange"


async def create_exchange(ports: Ports, caller: Caller, key: str | None, read_order: ReadExchange) -> Made[Exchange]:
    """Create an exchange of USDT to RUB, once per key. `read_order` parses the body, and is called only for a new key.

    Raises: Refusal, in the order of `orders.RULES`; IDEMPOTENCY_TERMINAL for the key of an exchange that is over;
    PROVIDER_UNAVAILABLE or PROVIDER_NOT_CONFIGURED without a deposit address. Then nothing was created, and the key is
    free.
    """

    async def make(lock: Lock) -> Exchange:
        case = await _judged(ports, caller, ExchangeCase(order=read_order(), account=caller.account, mode=caller.mode))
        made = await open_new(ports, await _written(ports, case, lock))
        if made is None:
            raise Refusal("PROVIDER_UNAVAILABLE", "No deposit address at the moment; try again", retry_after=30)
        return made

    async def recall(exchange_id: str) -> Exchange | None:
        exchange = await ports.storage.get(Exchange, exchange_id)
        if exchange is not None and exchange.is_final:
            raise Refusal("IDEMPOTENCY_TERMINAL", "The exchange of this Idempotency-Key is over; use a new one")
        if exchange is not None and exchange.status is ExchangeStatus.PENDING:
            # The first request is still running, or its process died. The watcher returns the same address to both.
            return await open_new(ports, exchange)
        return exchange

    return await once(ports, caller, key, KIND, make=make, recall=recall, id_rule="exchanges_id")


async def _judged(ports: Ports, caller: Caller, case: ExchangeCase) -> ExchangeCase:
    """Load what the rules of each step check, then judge that step; later records are not loaded for a refused order.
    Raises: Refusal.
    """
    switch = await ports.storage.get(DirectionSwitch, case.direction)
    pays_rub = case.direction is Direction.USDT_TO_RUB
    members = await known_members(ports, case.mode) if pays_rub else None
    account = msgspec.structs.replace(case.account, settings=true_settings(ports.vault, case.account))
    case = msgspec.structs.replace(case, account=account, is_on=switch is None or switch.is_on, members=members)
    judge_exchange(case, Step.ORDER)
    client = await present_client(ports, caller, case.order.client_phone)
    case = msgspec.structs.replace(case, client=client)
    judge_exchange(case, Step.CLIENT)
    return msgspec.structs.replace(case, quote=await _quote(ports, case))


async def _quote(ports: Ports, case: ExchangeCase) -> ExchangeQuote | None:
    """Return the quote for the client at the current rate; None without a rate."""
    try:
        known = await market_rate(ports, case.mode, fresh=True)
    except Refusal:
        return None
    markup = case.account.settings.exchange_markup_percent
    if case.direction is Direction.USDT_TO_RUB:
        return quote_usdt(case.amount_usdt, known.rate, markup)
    return quote_rub(case.amount_rub, known.rate, markup)


@in_test_time_of_account
async def create_rub_usdt(
    ports: Ports, account_id: str, mode: Mode, *, amount_rub: str, client_phone: str, address: str
) -> Exchange:
    """Create an exchange of RUB to USDT on a merchant's request; operators only (docs/exchanges.md "RUB to USDT"). It
    stays `pending` until the bank gives a certain answer about its invoice; the watch repeats the request.

    Raises: Refusal ACCOUNT_NOT_FOUND, and in the order of `orders.RUB_RULES`; PROVIDER_NOT_CONFIGURED;
    PROVIDER_UNAVAILABLE while all banks are out of service.
    """
    await refuse_own_address(ports, address, "client_wallet")
    async with ports.storage.unit() as unit:
        account = await find_account(unit, account_id)
    order = RubExchangeOrder(amount_rub=amount_rub, client_phone=client_phone, client_wallet=address)
    caller = Caller(account=account, mode=mode, key_id="")
    return await begin_exchange(ports, caller, order)


async def begin_exchange(
    ports: Ports, caller: Caller, order: ExchangeOrder | RubExchangeOrder, *, opens: bool = True
) -> Exchange:
    """Create an exchange without a key. With `opens` False it stays pending until the first run of the watch, as after
    a crash. Raises: as `create_rub_usdt`.
    """
    case = await _judged(ports, caller, ExchangeCase(order=order, account=caller.account, mode=caller.mode))
    exchange = await _written(ports, case, None)
    opened = await progress(ports, exchange) if opens else None
    return exchange if opened is None else opened.exchange


async def _provided(ports: Ports, case: ExchangeCase, amount: Rub) -> dict[str, str]:
    """Choose the bank or the watcher that receives the client's money. It is stored before the provider is called.
    Raises: Refusal.
    """
    if case.direction is Direction.RUB_TO_USDT:
        try:
            ports.senders.on(case.mode, NETWORK)
        except NotConfigured:
            raise Refusal("PROVIDER_NOT_CONFIGURED", "No wallet sends USDT on TRON at present") from None
        routes = [bank for bank in ports.banks.of_mode(case.mode) if takes_without(bank, None)]
        if not routes:
            raise Refusal("PROVIDER_NOT_CONFIGURED", "No bank takes RUB without a receipt at present")
        fitting = [bank for bank in routes if bank.capabilities.takes(amount.kopecks)]
        if not fitting:
            raise outside_limits(routes)
        bank = await first_open(ports, fitting, case.mode, case.account.id)
        if bank is None:
            raise Refusal("PROVIDER_UNAVAILABLE", "Every bank that takes RUB is out of service", retry_after=30)
        return {"bank": bank.name}
    try:
        return {"watcher": ports.deposits.of_mode(case.mode).name}
    except NotConfigured:
        raise Refusal("PROVIDER_NOT_CONFIGURED", "No deposit addresses are given out at present") from None


async def _written(ports: Ports, case: ExchangeCase, lock: Lock | None) -> Exchange:
    """Write the exchange, its idempotency key and its watch. Operators' exchanges have no `lock`. Raises: Refusal;
    Conflict of the key.
    """
    phone, account = case.order.client_phone, case.account
    key = None
    if lock is None:
        exchange_id = ids.prefixed(ids.EXCHANGE, ports.ids.uuid())
    else:
        exchange_id = caused_id(ports, case.mode, ids.EXCHANGE, lock.record_id)
        key = lock(exchange_id)
    digest = active_digest(ports, account.id, case.mode, phone)
    sealed = ports.vault.encrypt(phone.encode(), exchange_phone_aad(exchange_id))

    async def work(unit: Unit) -> Exchange:
        # Providers were called since the first check, and the client may have been blocked in the meantime. Judge
        # again.
        client = await find_client(ports, unit, account.id, case.mode, phone)
        active = await unit[Exchange].find(active_slot=digest, limit=1)
        present = msgspec.structs.replace(case, client=client, has_active=bool(active))
        try:
            judge_exchange(present, Step.CLIENT)
            judge_exchange(present, Step.QUOTE)
        except Refusal:
            if lock is not None:
                if any(each.key_id == lock.record_id for each in active):
                    raise Conflict(KEY_TAKEN) from None  # the exchange is this key's own, and may be gone again
                await yield_to_maker(unit, lock)
            raise
        now = ports.clock.now()
        key_id = None if key is None else key.id
        exchange = new_exchange(
            present, exchange_id=exchange_id, phone=sealed, phone_digest=digest, key_id=key_id, now=now
        )
        exchange = msgspec.structs.replace(exchange, **await _provided(ports, present, exchange.amount_rub))
        if key is not None:
            unit[IdempotencyKey].add(key)
        unit[Job].add(WATCH_EXCHANGE.first(exchange.id, now + POLL, now))
        return unit[Exchange].add(tag_exchange(ports.vault, exchange))

    # The client's other exchange, or one of this key, was written first. Reading again shows which.
    return await retrying(ports.storage, work, again_on=(ACTIVE_RULE,))


def active_digest(ports: Ports, account_id: str, mode: Mode, phone: str) -> bytes:
    """Return the digest under which the client's active exchange is found."""
    return ports.vault.fingerprint(f"exchange:{account_id}:{mode}:{phone}")
