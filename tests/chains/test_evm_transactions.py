"""EVM transactions, byte by byte: published vectors, and bytes that are no transaction of ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.payouts.evm import rlp
from cambist.adapters.payouts.evm.transaction import Fees, Transaction, Transfer, read, read_transfer, tx_hash
from cambist.adapters.payouts.signer import KeySigner
from tests.tables import table

EIP_155 = (
    "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe5375"
    "67866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"
)
"""The example of EIP-155 itself."""
WEB3 = (
    "f86a8086d55698372431831e848094f0109fc8df283027b6285cc889f5aa624eac1f55843b9aca008025a009ebb6ca057a0535d6186462bc0b46"
    "5b561c94a295bdb0621fc19208ab149a9ca0440ffd775ce91a833ab410777204d5341a6f9fa91216a6f3ee2c051fea6a0428"
)
"""From the documentation of Python's web3."""
AAAA = bytes.fromhex("000000000000000000000000000000000000aaaa")
BESU_KEY = "8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63"
BESU = (
    (
        *(819, 43203529, 35552, 75853, 121212),
        "02f870821e8e8203338301284d8301d97c828ae094000000000000000000000000000000000000aaaa8402933bc980c080a0d067f2167008"
        "c59219652f91cbf8788dbca5f771f6e91e2b7657e85b78b472e0a01d305af9fe81fdba43f0dfcd400ed24dcace0a7e30d4e85701dcaaf484"
        "cd079e",
    ),
    (
        *(353, 61901619, 32593, 38850, 136295),
        "02f86f821e8e8201618297c283021467827f5194000000000000000000000000000000000000aaaa8403b08b3380c001a004205678f13fc1"
        "d7b10feea6513dfa76e24418b6e08097d95c6f93a3b64e536da01d45ad61bfece43862de2cce7d2575a8c1d08c26c87f3cb5f26d7b0be54a"
        "91b2",
    ),
    (
        *(119, 65456115, 62341, 24721, 107729),
        "02f86d821e8e778260918301a4d182f38594000000000000000000000000000000000000aaaa8403e6c7f380c001a0e38e239770801eb995"
        "498c821e55ac9c19ae09184bb27b34be105e02fe3b7615a067c64ca6bd6d9107e85fd581ab2e70a14b637eb36505bb40861ef9d6e800cab6",
    ),
)
"""EIP-1559: nonce, value, gas, tip and most, of the vectors of Besu that ethereumjs publishes, too."""


async def raw_of(made: Transaction, key: str) -> bytes:
    return made.signed(await KeySigner(key).sign(made.digest))


async def test_the_example_of_eip_155() -> None:
    made = Transaction(chain_id=1, nonce=9, fees=Fees(20 * 10**9), gas=21000, to=bytes.fromhex("35" * 20), value=10**18)
    assert made.digest.hex() == "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53"
    assert (await raw_of(made, "46" * 32)).hex() == EIP_155
    assert read(bytes.fromhex(EIP_155)).made == made
    assert read(bytes.fromhex(EIP_155)).by == KeySigner("46" * 32).payload


async def test_the_example_of_web3() -> None:
    made = Transaction(
        chain_id=1,
        nonce=0,
        fees=Fees(234567897654321),
        gas=2000000,
        to=bytes.fromhex("f0109fc8df283027b6285cc889f5aa624eac1f55"),
        value=10**9,
    )
    raw = await raw_of(made, "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318")
    assert raw.hex() == WEB3
    assert tx_hash(raw) == "d8f64a42b57be0d565f385378db2f6bf324ce14a594afc05de90436e9ce01f60"


@table(("nonce", "value", "gas", "tip", "most", "published"), BESU)
async def test_the_vectors_of_eip_1559(nonce: int, value: int, gas: int, tip: int, most: int, published: str) -> None:
    made = Transaction(chain_id=7822, nonce=nonce, fees=Fees(most, tip), gas=gas, to=AAAA, value=value)
    raw = await raw_of(made, BESU_KEY)
    assert raw.hex() == published
    assert read(raw).made == made
    assert read(raw).by == KeySigner(BESU_KEY).payload


ITEMS = st.recursive(st.binary(max_size=70), lambda inner: st.lists(inner, max_size=4), max_leaves=8)


def depth(item: object) -> int:
    return 1 + max(map(depth, item), default=0) if isinstance(item, list) else 1


@given(ITEMS.filter(lambda item: depth(item) <= 4))
def test_rlp_is_read_as_it_is_written(item: rlp.Item) -> None:
    assert rlp.decoded(rlp.encoded(item)) == item


@table(
    ("item", "published"),
    [
        (b"dog", "83646f67"),
        ([b"cat", b"dog"], "c88363617483646f67"),
        (b"", "80"),
        ([], "c0"),
        (b"\x0f", "0f"),
        (b"\x04\x00", "820400"),
        ([[], [[]], [[], [[]]]], "c7c0c1c0c3c0c1c0"),
        (
            b"Lorem ipsum dolor sit amet, consectetur adipisicing elit",
            "b8384c6f72656d20697073756d20646f6c6f722073697420616d65742c20636f6e7365637465747572206164697069736963696e6720"
            "656c6974",
        ),
    ],
)
def test_rlp_of_ethereum_s_page(item: rlp.Item, published: str) -> None:
    assert rlp.encoded(item).hex() == published
    assert rlp.decoded(bytes.fromhex(published)) == item


@given(st.binary(max_size=300))
def test_malformed_transaction_is_a_value_error(raw: bytes) -> None:
    for reading in (read, read_transfer, rlp.decoded):
        try:
            said = reading(raw)
        except ValueError:
            continue
        assert said is not None
        assert reading is not read


@table(
    "wrong",
    [
        bytes.fromhex(EIP_155) + b"\0",
        bytes.fromhex(EIP_155)[:-1],
        bytes.fromhex("8100"),
        bytes.fromhex("b801") + b"\x80",
        b"\xc1" * 20,
        b"\x02" + rlp.encoded([b""] * 12),
        b"\x02" + rlp.encoded([b"\0"] * 12),
    ],
)
def test_another_spelling_is_not_read(wrong: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of several reasons
        read(wrong)


@given(st.binary(min_size=20, max_size=20), st.integers(0, 2**200), st.text(max_size=40))
def test_a_transfer_says_whose_it_is(recipient: bytes, amount: int, operation: str) -> None:
    made = Transfer(recipient=recipient, amount=amount, operation=operation)
    assert read_transfer(made.data) == made
