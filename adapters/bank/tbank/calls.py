"""One call of T-Bank's API: signed, sent, and decoded into a result or a fault."""

import json
from collections.abc import Mapping
from typing import Any

from ....ports.clock import Clock
from ....ports.faults import Fault, NotConfigured, OutcomeUnknown, Unavailable
from ...provider_http import Answer, ProviderHttp
from .errors import HOUR, NOT_FOUND, fault_of
from .receipts import ReceiptFormat
from .references import Reference
from .terminals import Terminal, Terminals
from .tokens import token
from .wire import OrderPayment, Said

_SECONDS = 15.0
"""Timeout of one exchange. T-Bank contacts the payment system while we wait."""


class Calls:
    """Calls of T-Bank with any of the terminals."""

    def __init__(self, base_url: str, terminals: Terminals, clock: Clock, receipts: ReceiptFormat) -> None:
        self.terminals = terminals
        self.receipts = receipts
        """Format of the receipts of these terminals."""
        headers = {"Content-Type": "application/json"}
        self.http = ProviderHttp("tbank", base_url, limit=_SECONDS, headers=headers, clock=clock)

    async def say(self, terminal: Terminal, method: str, fields: Mapping[str, Any], *, writes: bool) -> Said:
        """Return T-Bank's answer, including refusals.

        Raises: Unavailable, also for 429 and for a proxy's 401 or 403; NotConfigured for T-Bank's own 401 or 403;
        OutcomeUnknown for a write without a readable answer.
        """
        signed = {"TerminalKey": terminal.key, **fields}
        signed["Token"] = token(signed, terminal.password)
        body = json.dumps(signed, ensure_ascii=False).encode("utf-8", "replace")
        path = method if method.startswith("/") else f"/v2/{method}"
        answer = await self.http.call("POST", path, writes=writes, body=body)
        if answer.status in (401, 403):
            if not _is_own(answer):
                raise Unavailable(f"tbank: {answer.status} without an answer of T-Bank's: a proxy's answer")
            raise self._not_taken(terminal, "it does not take the terminal and its password")
        if answer.status == 429:
            raise Unavailable("tbank: too many requests", retry_after=answer.retry_after())
        if answer.status != 200:
            raise answer.unreadable(f"tbank: answered {answer.status}")
        return answer.decoded(Said)

    async def do(self, terminal: Terminal, method: str, fields: Mapping[str, Any], *, writes: bool) -> Said:
        """Call `say` and require a successful answer. Raises: the same as `say`; also Refused."""
        said = await self.say(terminal, method, fields, writes=writes)
        if not said.is_done:
            raise self.fault(terminal, said, writes=writes)
        return said

    def fault(self, terminal: Terminal, said: Said, *, writes: bool) -> Fault:
        """Convert an answer that is not `is_done` to a fault. A merchant's own terminal with bad credentials must not
        disable T-Bank for other merchants."""
        fault = fault_of(said, writes=writes)
        return self._not_taken(terminal, str(fault)) if isinstance(fault, NotConfigured) else fault

    def _not_taken(self, terminal: Terminal, why: str) -> Fault:
        named = f"terminal {terminal.key}: {why}"
        if self.terminals.is_own(terminal):
            return NotConfigured(named)
        return Unavailable(named, retry_after=HOUR)

    async def order(self, terminal: Terminal, order_id: str) -> list[OrderPayment]:
        """Return all payments of an order; an empty list if T-Bank does not know the order. Raises: Unavailable,
        NotConfigured, Refused."""
        said = await self.say(terminal, "CheckOrder", {"OrderId": order_id}, writes=False)
        if said.is_done:
            return said.payments
        if said.code in NOT_FOUND:
            return []
        raise self.fault(terminal, said, writes=False)

    async def state(self, reference: Reference) -> Said:
        """Read a payment with its status by GetState. Raises: Refused `not_found`; Unavailable; NotConfigured."""
        terminal = self.terminals.of_key(reference.terminal)
        said = await self.do(terminal, "GetState", {"PaymentId": reference.payment_id}, writes=False)
        if said.status is None:
            raise Unavailable("tbank: a state without its status")
        return said

    async def close(self) -> None:
        """Close all connections."""
        await self.http.close()


def _is_own(answer: Answer) -> bool:
    """Report whether T-Bank itself wrote the answer."""
    try:
        answer.decoded(Said)
    except (OutcomeUnknown, Unavailable):
        return False
    return True
