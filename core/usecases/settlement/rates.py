"""The RUB/USDT rate: fetched, checked, stored, and shown (docs/settlement.md "The rate")."""

import logging
from datetime import datetime
from decimal import Decimal

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import NotConfigured, Unavailable
from ....ports.storage import Unit
from ...domain.accounts.accounts import Caller, Mode
from ...domain.accounts.shops import Shop
from ...domain.errors import Refusal, shape_error
from ...domain.ids import canonical_uuid
from ...domain.settlement.rates import KnownRate, Quote, believed, is_held, judge, may_serve, merchant_rate
from ..common.units import unit_of_work

RETRY_AFTER = 30
"""In seconds."""

_FIRST = "known_rates_id"
"""Unique rule of the storage whose Conflict means that another process wrote a mode's first rate."""

log = logging.getLogger("cambist.rates")


class MerchantRates(msgspec.Struct, frozen=True, kw_only=True):
    """Both rates at full precision, in RUB for 1 USDT."""

    market: Decimal
    merchant: Decimal
    updated_at: datetime


async def market_rate(ports: Ports, mode: Mode, *, fresh: bool = False) -> KnownRate:
    """Return the market rate of a mode.

    With `fresh` the rate was fetched at most 30 s ago, for a settlement. Otherwise, when no source gives a plausible
    rate, it may be the last plausible one, up to an age of 5 minutes.
    Raises: Refusal RATE_UNAVAILABLE; Unavailable when the storage is.
    """
    known = await ports.storage.get(KnownRate, _rate_id(ports, mode))
    if not is_held(known, ports.clock.now()):
        known = await _believe(ports, mode, await _ask(ports, mode, known))
    now = ports.clock.now()
    if known is not None and (is_held(known, now) or (not fresh and may_serve(known, now))):
        return known
    raise Refusal("RATE_UNAVAILABLE", "No rate at the moment; try again", retry_after=RETRY_AFTER)


def _rate_id(ports: Ports, mode: Mode) -> str:
    """Return the id of the stored rate. All accounts of a mode share one. An account whose clock was moved has its own,
    because the time of its rate would be in the others' future."""
    test_clock = ports.clock.test_clock
    return mode.value if test_clock is None or not test_clock.offset else f"{mode.value}:{test_clock.id}"


async def _ask(ports: Ports, mode: Mode, known: KnownRate | None) -> list[Quote]:
    """Query the sources in order until a rate is plausible. No unit is open meanwhile."""
    heard: list[Quote] = []
    for source in ports.rates.of_mode(mode.value):
        try:
            quote = await source.quote()
        except (Unavailable, NotConfigured) as fault:
            log.warning("no rate from %s: %s", source.name, fault)
            continue
        heard.append(Quote(rate=quote.rate, at=quote.at, source=quote.source))
        if judge(known, heard, ports.clock.now(), more=True).quote is not None:
            break
    return heard


@unit_of_work(again_on=(_FIRST,))
async def _believe(ports: Ports, unit: Unit, mode: Mode, heard: list[Quote]) -> KnownRate | None:
    """Store and return the mode's rate after these quotes. If another process has just written one, return that."""
    known = await unit[KnownRate].get(_rate_id(ports, mode))
    now = ports.clock.now()
    if known is not None and is_held(known, now):
        return known
    judged = judge(known, heard, now, more=False)
    if judged.quote is not None:
        fresh = believed(_rate_id(ports, mode), judged.quote, now)
        if known is None:
            return unit[KnownRate].add(fresh)
        return unit[KnownRate].save(msgspec.structs.replace(fresh, version=known.version))
    if known is None or judged.candidate == known.candidate:
        return known
    log.warning("a jump of the %s rate is not believed yet", mode.value)
    return unit[KnownRate].save(msgspec.structs.replace(known, candidate=judged.candidate))


async def merchant_rates(ports: Ports, caller: Caller, shop_id: str | None) -> MerchantRates:
    """Return the rates for calculators, for the given shop or the default one. They are informational, because a
    settlement fetches its own rate.

    Raises: Refusal VALIDATION_ERROR, SHOP_NOT_FOUND, SHOP_MARKUP_NOT_SET, RATE_UNAVAILABLE.
    """
    wanted = caller.account.default_shop_id if shop_id is None else canonical_uuid(shop_id)
    if wanted is None:
        raise shape_error("shop_id", "must be a UUID")
    shop = await ports.storage.get(Shop, wanted)
    if shop is None or shop.account_id != caller.account_id:
        raise Refusal("SHOP_NOT_FOUND", "The account has no shop of this shop_id")
    if shop.markup is None:
        raise Refusal("SHOP_MARKUP_NOT_SET", "The shop's markup is not set")
    known = await market_rate(ports, caller.mode)
    return MerchantRates(market=known.value, merchant=merchant_rate(known.value, shop.markup), updated_at=known.at)
