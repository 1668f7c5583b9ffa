"""A wallet's answer for an operation before anything is signed: a transfer that it sent is adopted, a mismatch waits
for an operator, and without an answer nothing is signed (docs/settlement.md "Payouts")."""

import msgspec
import pytest

from cambist.core.usecases.signed_transfers.row import stored
from cambist.core.usecases.signed_transfers.wallet import broadcast, sign
from cambist.ports.chain import Network
from cambist.ports.faults import Fault, OutcomeUnknown, Refused, Unavailable
from cambist.ports.payouts import SenderCapabilities, SentTransfer, SignedTransfer, TransferState
from tests.payout_kit import OTHER_WALLET, WALLET
from tests.tables import table

EVM, OTHER_EVM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
SENT = SignedTransfer(operation="out_1", tx_hash="sent", blob=b"", expires_at=None)


class Wallet:
    """A wallet that knows one transfer, or raises on a query, and counts its calls."""

    name = "wallet"
    capabilities = SenderCapabilities(network=Network.TRON, decimals=6)

    def __init__(self, known: SentTransfer | Fault | None) -> None:
        self._known = known
        self.signed = 0
        self.sent = 0

    async def find(self, operation: str) -> SentTransfer | None:
        if isinstance(self._known, Fault):
            raise self._known
        return self._known

    async def sign(self, operation: str, address: str, units: int) -> SignedTransfer:
        self.signed += 1
        return msgspec.structs.replace(SENT, operation=operation, tx_hash="anew")

    async def broadcast(self, signed: SignedTransfer) -> None:
        self.sent += 1

    async def state(self, signed: SignedTransfer) -> TransferState:
        raise AssertionError("nobody needs to look")


async def test_wallet_that_sent_nothing_signs() -> None:
    wallet = Wallet(None)
    assert (await sign(wallet, "tron", "out_1", WALLET, 100)).tx_hash == "anew"


@table("fault", [Refused("no", reason="not_found"), OutcomeUnknown("cut"), Unavailable("away")], ids=str)
async def test_wallet_that_does_not_say_what_it_sent_signs_nothing(fault: Fault) -> None:
    """In whatever words: it might be paid twice."""
    wallet = Wallet(fault)
    with pytest.raises(Unavailable):
        await sign(wallet, "tron", "out_1", WALLET, 100)
    assert wallet.signed == 0


@table(
    ("network", "sent_to", "units", "owed_to", "is_same"),
    [
        ("tron", WALLET, 100, WALLET, True),
        ("tron", WALLET, 101, WALLET, False),
        ("tron", WALLET, 99, WALLET, False),
        ("tron", OTHER_WALLET, 100, WALLET, False),
        ("tron", WALLET.lower(), 100, WALLET, False),
        ("ethereum", EVM, 100, EVM, True),
        ("ethereum", EVM.lower(), 100, EVM, True),
        ("ethereum", OTHER_EVM, 100, EVM, False),
        ("ethereum", EVM, 101, EVM, False),
    ],
)
async def test_transfer_that_the_wallet_sent_is_adopted_if_it_matches(
    network: str, sent_to: str, units: int, owed_to: str, is_same: bool
) -> None:
    """Otherwise it waits for an operator, and nothing is signed. Upper and lower case of hex digits is only a
    checksum."""
    wallet = Wallet(SentTransfer(signed=SENT, address=sent_to, units=units))
    if is_same:
        assert await sign(wallet, network, "out_1", owed_to, 100) == SENT
    else:
        with pytest.raises(Unavailable, match="something else"):
            await sign(wallet, network, "out_1", owed_to, 100)
    assert wallet.signed == 0


@table("blob", [b"", b"signed"])
async def test_transfer_without_a_signed_copy_is_not_sent_again(blob: bytes) -> None:
    """Nor is it said that the network took it."""
    wallet = Wallet(None)
    assert await broadcast(wallet, msgspec.structs.replace(SENT, blob=blob)) is bool(blob)
    assert wallet.sent == bool(blob)


class Half(msgspec.Struct, frozen=True):
    """A row that lost a part of its fields."""

    tx_hash: str | None = "sent"
    blob: bytes | None = None
    signed_until: None = None


def test_a_transfer_that_is_not_whole_is_never_taken_for_one() -> None:
    with pytest.raises(LookupError):
        stored("out_1", Half())
    assert stored("out_1", Half(tx_hash=None)) is None


@table("address", ["TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb"])
async def test_an_address_to_which_nobody_has_the_key_is_never_signed_for(address: str) -> None:
    wallet = Wallet(None)
    with pytest.raises(Refused) as refused:
        await sign(wallet, "tron", "out_1", address, 100)
    assert (refused.value.reason, wallet.signed) == ("address", 0)
