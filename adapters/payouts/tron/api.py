"""TRON's own HTTP interface, for calls that JSON-RPC does not have: broadcasting a transaction, and its cost."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from ....ports.clock import Clock
from ....ports.faults import Fault, NotConfigured, OutcomeUnknown, Unavailable
from ...nodes.nodes import VOICES, joined, tried
from ...nodes.spelling import TRON
from ...provider_http import ProviderHttp

T = TypeVar("T")

_KEY = "TRON-PRO-API-KEY"
_LIMIT = 8.0
_BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.FORBIDDEN)
_REST = 30.0
"""Seconds for which TronGrid refuses a key after too many requests."""
_WORDS = 120


class Taken(Enum):
    """Meaning of a node's code for a transaction (docs/providers/chains.md "On TRON")."""

    YES = "yes"
    NO = "no"
    EXPIRED = "expired"
    LATER = "later"
    """It was certainly not taken: the node is busy, or our wallet has too little."""


CODES: Mapping[str, Taken] = {
    "SUCCESS": Taken.YES,
    "DUP_TRANSACTION_ERROR": Taken.YES,
    "TRANSACTION_EXPIRATION_ERROR": Taken.EXPIRED,
    "SIGERROR": Taken.NO,
    "TOO_BIG_TRANSACTION_ERROR": Taken.NO,
    "TAPOS_ERROR": Taken.NO,
    "CONTRACT_VALIDATE_ERROR": Taken.LATER,
    "CONTRACT_EXE_ERROR": Taken.LATER,
    "BANDWITH_ERROR": Taken.LATER,
    "SERVER_BUSY": Taken.LATER,
    "NO_CONNECTION": Taken.LATER,
    "NOT_ENOUGH_EFFECTIVE_CONNECTION": Taken.LATER,
    "BLOCK_UNSOLIDIFIED": Taken.LATER,
}
"""Any other code has an unknown meaning. `BANDWITH` is TRON's spelling."""


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """Resources that an account may use for free. A node leaves out zeros."""

    energy_limit: int = msgspec.field(default=0, name="EnergyLimit")
    energy_used: int = msgspec.field(default=0, name="EnergyUsed")
    net_limit: int = msgspec.field(default=0, name="NetLimit")
    net_used: int = msgspec.field(default=0, name="NetUsed")
    free_net_limit: int = msgspec.field(default=0, name="freeNetLimit")
    free_net_used: int = msgspec.field(default=0, name="freeNetUsed")

    @property
    def energy(self) -> int:
        return max(0, self.energy_limit - self.energy_used)

    @property
    def bandwidth(self) -> int:
        return max(0, self.net_limit - self.net_used, self.free_net_limit - self.free_net_used)


class _Ret(msgspec.Struct, frozen=True):
    ret: str = ""


class _Tried(msgspec.Struct, frozen=True):
    ret: list[_Ret] = []


class _Said(msgspec.Struct, frozen=True):
    result: bool = False
    code: str = ""


class _Trial(msgspec.Struct, frozen=True):
    result: _Said = _Said()
    energy_used: int = 0
    transaction: _Tried = _Tried()


class _Parameter(msgspec.Struct, frozen=True):
    key: str
    value: int = 0


class _Parameters(msgspec.Struct, frozen=True):
    parameters: list[_Parameter] = msgspec.field(default_factory=list, name="chainParameter")


class _Info(msgspec.Struct, frozen=True):
    id: str | None = None


class _Known(msgspec.Struct, frozen=True):
    raw_data_hex: str = ""
    signature: list[str] = []


class _Limited(msgspec.Struct, frozen=True):
    error: str | None = msgspec.field(default=None, name="Error")


class TronApi:
    """HTTP interface of one node."""

    def __init__(self, place: int, url: str, clock: Clock) -> None:
        """Read the URL, in which a key may stand before an `@`, without connecting. Raises: NotConfigured."""
        key, at, rest = url.partition("://")[2].rpartition("@")
        headers = {"Content-Type": "application/json", **({_KEY: key.rstrip(":")} if at else {})}
        self.name = f"tron api {place}"
        base = f"{url.partition('://')[0]}://{rest}"
        self._http = ProviderHttp(self.name, base, limit=_LIMIT, headers=headers, clock=clock)

    def __repr__(self) -> str:
        return f"<TronApi {self.name}>"

    async def broadcast(self, transaction: bytes) -> Taken:
        """Broadcast a transaction.

        Raises: OutcomeUnknown; Unavailable or NotConfigured if it was certainly not taken.
        """
        said = await self._post("/wallet/broadcasthex", {"transaction": transaction.hex()}, _Said, writes=True)
        if said.result:
            return Taken.YES
        if said.code not in CODES:
            raise OutcomeUnknown(f"{self.name}: {said.code[:_WORDS]!a} says nothing certain")
        if CODES[said.code] is Taken.LATER:
            raise Unavailable(f"{self.name} does not take the transaction now: {said.code}")
        return CODES[said.code]

    async def knows(self, tx_hash: str) -> bool:
        """Return whether the transaction is in any block of the node. Raises: Unavailable, NotConfigured."""
        info = await self._post("/wallet/gettransactioninfobyid", {"value": tx_hash}, _Info)
        return info.id is not None

    async def transaction(self, tx_hash: str) -> tuple[bytes, bytes]:
        """Return the signed bytes and the signature.

        Raises: Unavailable, also if the node lacks the transaction; NotConfigured.
        """
        known = await self._post("/wallet/gettransactionbyid", {"value": tx_hash}, _Known)
        try:
            raw, [signature] = bytes.fromhex(known.raw_data_hex), map(bytes.fromhex, known.signature)
        except ValueError:
            raise Unavailable(f"{self.name} lacks transaction {tx_hash}") from None
        return raw, signature

    async def resources(self, owner: bytes) -> Resources:
        """Return the account's resources. Raises: Unavailable, NotConfigured."""
        return await self._post("/wallet/getaccountresource", _visible(address=TRON.write(owner)), Resources)

    async def energy_of(self, owner: bytes, token: bytes, call: bytes) -> int:
        """Return the energy that the call would use now.

        Raises: Unavailable, also if the contract would not execute it; NotConfigured.
        """
        body = _visible(
            owner_address=TRON.write(owner), contract_address=TRON.write(token), data=call.hex(), call_value=0
        )
        trial = await self._post("/wallet/triggerconstantcontract", body, _Trial)
        # Only this field shows an execution that fails.
        if not trial.result.result or any(each.ret == "FAILED" for each in trial.transaction.ret):
            raise Unavailable(f"{self.name}: the contract of USDT would not do this transfer")
        return trial.energy_used

    async def energy_price(self) -> int:
        """Return the price of one energy in sun. Raises: Unavailable, NotConfigured."""
        found = await self._post("/wallet/getchainparameters", {}, _Parameters)
        price = next((each.value for each in found.parameters if each.key == "getEnergyFee"), 0)
        if price <= 0:
            raise Unavailable(f"{self.name}: no price of energy")
        return price

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def _post(self, path: str, body: Mapping[str, Any], shape: type[T], *, writes: bool = False) -> T:
        answer = await self._http.call("POST", path, writes=writes, body=msgspec.json.encode(body))
        if answer.status in _BUSY:
            raise Unavailable(f"{self.name} is asked too often", retry_after=answer.retry_after() or _REST)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            raise NotConfigured(f"{self.name}: the key in its address is not taken")
        if answer.status != HTTPStatus.OK:
            raise (OutcomeUnknown if writes else Unavailable)(f"{self.name}: status {answer.status}")
        # A node's own rate limiter answers with status 200.
        if answer.decoded(_Limited).error is not None:
            raise Unavailable(f"{self.name} has too much to do")
        return answer.decoded(shape)


async def handed_over(apis: Sequence[TronApi], transaction: bytes) -> Taken:
    """Submit a transaction to the first interface that takes it, trying one after another, because another may take
    what one refuses.

    Raises: OutcomeUnknown if one of them may have taken it; Unavailable, NotConfigured.
    """
    said: list[Taken] = []
    faults: list[Fault] = []
    for api in apis:
        try:
            taken = await api.broadcast(transaction)
        except (OutcomeUnknown, Unavailable, NotConfigured) as fault:
            faults.append(fault)
            continue
        if taken is Taken.YES:
            return taken
        said.append(taken)
    unknown = next((fault for fault in faults if isinstance(fault, OutcomeUnknown)), None)
    if unknown is not None:
        raise unknown
    if not said:
        raise faults[0]
    return Taken.EXPIRED if Taken.EXPIRED in said else Taken.NO


async def agreed_answers(apis: Sequence[TronApi], ask: Callable[[TronApi], Awaitable[T]]) -> list[T]:
    """Return all answers, from at least as many interfaces as nodes must agree. Raises: Unavailable, NotConfigured."""
    answers = await asyncio.gather(*(tried(ask(api)) for api in apis))
    said = [each for each in answers if not isinstance(each, Fault)]
    if len(said) < min(VOICES, len(apis)):
        raise joined([each for each in answers if isinstance(each, Fault)])
    return said


async def first_answer(apis: Sequence[TronApi], ask: Callable[[TronApi], Awaitable[T]]) -> T:
    """Return the first interface's answer, or that of the next one that answers. Raises: Unavailable, NotConfigured."""
    last: Fault = NotConfigured("no interface of a node of TRON is set")
    for api in apis:
        try:
            return await ask(api)
        except (Unavailable, NotConfigured) as fault:
            last = fault
    raise last


def _visible(**fields: Any) -> dict[str, Any]:
    """Return a request whose addresses are in base58."""
    return {**fields, "visible": True}
