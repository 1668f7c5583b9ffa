"""When an exchange is polled (docs/exchanges.md "Rules"): often while its money is awaited, at its deadline for
certain, by the backoff while it is paid out, and for some hours after its end."""

from datetime import timedelta
from typing import Any

from cambist.core.domain.exchanges.exchanges import ExchangeStatus as S
from cambist.core.usecases.exchanges.payout import Paying
from cambist.core.usecases.exchanges.progress import next_status_poll
from tests.domain.exchange_kit import END, exchange
from tests.tables import table

HOUR, DAY = 3600, 86400
TO_USDT: dict[str, Any] = {"crypto_deposit_address": "T1"}
TO_RUB: dict[str, Any] = {"invoice_reference": "i1"}
NOWHERE: dict[str, Any] = {}
HELD: dict[str, Any] = {**TO_RUB, "hold_until": END + timedelta(seconds=50)}

Look = tuple[dict[str, Any], float, dict[str, Any], float | None]
AWAITED: list[Look] = [
    (TO_USDT, -100, {}, -90),
    (TO_USDT, -100, {"advanced": True}, 0),
    (TO_USDT, -5, {}, 0),
    (TO_USDT, 0, {}, 60),
    (TO_USDT, 0, {"advanced": True}, 60),
]
OVER: list[Look] = [
    (TO_USDT, -100, {}, 200),
    (TO_USDT, HOUR - 1, {}, HOUR - 1 + 300),
    (TO_USDT, HOUR, {}, 2 * HOUR),
    (TO_USDT, 6 * HOUR - 1, {}, 7 * HOUR - 1),
    (TO_USDT, 6 * HOUR, {}, None),
    (TO_RUB, 0, {"asked": 0}, 300),
    (NOWHERE, 0, {}, None),
]

POLLS: list[tuple[S, dict[str, Any], float, dict[str, Any], float | None]] = [
    # Status; then in seconds from the deadline: the present moment, and the next poll.
    (S.PENDING, NOWHERE, -100, {}, -90),
    (S.PENDING, NOWHERE, -100, {"advanced": True}, -90),
    (S.PENDING, NOWHERE, -5, {}, 0),
    (S.PENDING, NOWHERE, 0, {}, 60),
    *((status, *row) for status in (S.AWAITING_USDT, S.AWAITING_RUB, S.PARTIAL) for row in AWAITED),
    (S.RUB_RECEIVED, HELD, 49, {}, 50),
    (S.RUB_RECEIVED, HELD, 50, {}, 60),
    (S.RUB_RECEIVED, HELD, 50, {"asked": 2}, 80),
    (S.USDT_RECEIVED, TO_USDT, -100, {}, -90),
    (S.RUB_SENDING, TO_USDT, 0, {"asked": 2}, 30),
    (S.RUB_SENDING, TO_USDT, 0, {"asked": 2, "check_after": 5.0}, 5),
    (S.USDT_SENDING, TO_RUB, 0, {"asked": 9}, 6 * HOUR),
    *((status, *row) for status in (S.COMPLETED, S.FAILED, S.EXPIRED, S.CANCELLED) for row in OVER),
    # The last of these polls, when no provider answers it, is repeated for a day.
    (S.EXPIRED, TO_USDT, 6 * HOUR, {"is_received": False}, 6 * HOUR + 600),
    (S.EXPIRED, TO_USDT, DAY - 1, {"is_received": False}, DAY - 1 + 600),
    (S.EXPIRED, TO_USDT, DAY, {"is_received": False}, None),
    (S.EXPIRED, TO_USDT, HOUR, {"is_received": False}, 2 * HOUR),
    # RUB that were taken back while the USDT were sent: decided at the poll after the end.
    (S.COMPLETED, TO_RUB, 6 * HOUR, {"asked": 0}, 6 * HOUR + 10),
    (S.COMPLETED, TO_RUB, 6 * HOUR, {"asked": 1}, None),
    (S.COMPLETED, TO_USDT, 6 * HOUR, {"asked": 0}, None),
    # Where a sandbox's clock is advanced over it: at the last moment alone.
    (S.EXPIRED, TO_USDT, 0, {"advanced": True}, 6 * HOUR),
    (S.EXPIRED, TO_USDT, 6 * HOUR - 1, {"advanced": True}, 6 * HOUR),
    (S.EXPIRED, TO_USDT, 6 * HOUR, {"advanced": True}, None),
]


@table(("status", "fields", "now", "run", "due"), POLLS)
def test_exchange_is_polled_again(
    status: S, fields: dict[str, Any], now: float, run: dict[str, Any], due: float | None
) -> None:
    paying = Paying(
        exchange(status, **fields),
        check_after=run.get("check_after"),
        is_received=run.get("is_received", True),
    )
    at = next_status_poll(
        paying, run.get("asked", 1), END + timedelta(seconds=now), advanced=run.get("advanced", False)
    )
    assert at == (None if due is None else END + timedelta(seconds=due))
