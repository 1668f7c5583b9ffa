"""USDT paid out on TRON: the shipped contract, and behaviour of the network that a wallet must not misread
(docs/providers/chains.md "Paying out")."""

import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from itertools import count

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.adapters.clock import VirtualClock
from cambist.adapters.nodes.logs import LogSearch
from cambist.adapters.nodes.networks import CHAINS
from cambist.adapters.nodes.nodes import Nodes
from cambist.adapters.nodes.spelling import TRON
from cambist.adapters.payouts.signer import KeySigner, signer_of
from cambist.adapters.payouts.tron import protobuf, sent
from cambist.adapters.payouts.tron.api import CODES, Taken, TronApi
from cambist.adapters.payouts.tron.sender import _BANDWIDTH, LIFETIME, PROOF_AFTER, SUN, TronSender
from cambist.adapters.payouts.tron.sent import Sent, SentTransfers, Whole
from cambist.adapters.payouts.tron.transaction import Transfer, parted, read, signed, tx_id
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.frontends.app.compose import open_app
from cambist.frontends.conformance import payout_faults
from cambist.frontends.conformance import payouts as of_payouts
from cambist.frontends.conformance.harnesses import PayoutsHarness
from cambist.frontends.settings.plugins import PluginError
from cambist.frontends.settings.settings import Settings
from cambist.ports import NotConfigured, OutcomeUnknown, Refused, SignedTransfer, TransferState, Unavailable
from cambist.ports.chain import Network
from cambist.ports.notes import ProviderNote
from cambist.ports.operation_log import OperationLog
from cambist.testing import ProviderAnswer, ProviderFault, ProviderRequest
from tests.chains.tron_network import PACE, USDT, TronNetwork
from tests.contracts.storage_kit import START
from tests.tables import table

KEY = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
API_KEY = "an-api-key-that-must-not-show"
UNITS = 250 * 10**8
RICH = 10**6 * 10**6
TO = TRON.write(bytes(range(20)))


def is_broadcast(request: ProviderRequest) -> bool:
    return request.path == "/wallet/broadcasthex"


class TronHarness(PayoutsHarness):
    """A wallet on a network behind one node or several."""

    secrets = (KEY, API_KEY)
    wrong_addresses = (*PayoutsHarness.wrong_addresses, TRON.write(USDT), TRON.write(bytes(20)))
    kind = TronSender

    def __init__(self, *networks: TronNetwork) -> None:
        self.networks = networks
        self.network = networks[0]
        self.storage = MemoryStorage(self.network.clock)
        self.owner = KeySigner(KEY).payload
        for network in networks:
            network.usdt[self.owner] = RICH
            network.sun[self.owner] = 10_000 * SUN
        self.wallets: list[TronSender] = []
        self.sender = self.wallet = self.restarted()
        self.wrong_addresses = (*self.wrong_addresses, self.wallet.address)

    def restarted(self) -> TronSender:
        clock = self.network.clock
        nodes = Nodes(CHAINS[Network.TRON], [each.node for each in self.networks], clock)
        apis = [TronApi(place, each.api, clock) for place, each in enumerate(self.networks, 1)]
        whole = OperationLog("tron-payouts", Whole, self.storage, clock)
        read_back = SentTransfers(
            nodes, apis, self.owner, whole, OperationLog("tron-payouts", Sent, self.storage, clock)
        )
        self.wallets.append(self.kind("tron", nodes, apis, KeySigner(KEY), read_back, clock, fee_limit=60 * SUN))
        return self.wallets[-1]

    async def forget(self) -> None:
        async with self.storage.unit() as unit:
            for note in await unit[ProviderNote].find(provider="tron-payouts"):
                unit[ProviderNote].remove(note)
            await unit.commit()

    async def make_final(self, signed: SignedTransfer) -> None:
        await self.network.pass_time(25 * PACE)

    async def outlive(self, signed: SignedTransfer) -> None:
        assert signed.expires_at is not None
        left = signed.expires_at + PROOF_AFTER - self.network.clock.now()
        self.network.mine()
        await self.network.pass_time(left.total_seconds() + 25 * PACE)

    async def moved(self) -> int:
        await self.network.pass_time(PACE)
        return (RICH - self.network.usdt[self.owner]) * 100

    async def paid(self, address: str) -> int:
        return self.network.usdt[TRON.read(address)] * 100

    async def lose_next_answer(self, *, done: bool) -> None:
        fault = ProviderFault.LOST_AFTER if done else ProviderFault.LOST_BEFORE
        self.network.next(fault, matching=is_broadcast)

    async def be_away(self) -> None:
        self.network.be_away()
        await self.network.clock.advance(10)

    async def close(self) -> None:
        for wallet in self.wallets:
            await wallet.close()


class PromptHarness(TronHarness):
    """Its network makes a block upon each broadcast."""

    def __init__(self, network: TronNetwork) -> None:
        class Prompt(TronSender):
            async def broadcast(self, signed: SignedTransfer) -> None:
                try:
                    await super().broadcast(signed)
                finally:
                    await network.pass_time(PACE)

        self.kind = Prompt
        super().__init__(network)


@pytest.fixture
async def harness() -> AsyncIterator[TronHarness]:
    async with TronNetwork(VirtualClock(START), API_KEY) as network:
        made = TronHarness(network)
        yield made
        await made.close()


class TestTheContract:
    @pytest.fixture
    def payouts_harness(self, harness: TronHarness) -> PayoutsHarness:
        return harness

    class TestSigning(of_payouts.TestSigning): ...

    class TestBroadcast(of_payouts.TestBroadcast): ...

    class TestEnds(of_payouts.TestEnds): ...

    class TestMemory(of_payouts.TestMemory):
        """The suite reads transfers in blocks, so each broadcast makes a block."""

        @pytest.fixture
        async def payouts_harness(self) -> AsyncIterator[PayoutsHarness]:
            async with TronNetwork(VirtualClock(START), API_KEY) as network:
                harness = PromptHarness(network)
                yield harness
                await harness.close()

    class TestFailures(payout_faults.TestFailures): ...


def transfer(**changes: object) -> Transfer:
    """Return the transfer from the page on triggersmartcontract in TRON's documentation, which publishes its id."""
    published = Transfer(
        owner=bytes.fromhex("dd791d6b49e190062d650e6a23c575510d35f2f9"),
        token=bytes.fromhex("eca9bc828a3005b9a3b909f2cc5c2a54794de05f"),
        recipient=bytes.fromhex("088a2bfcb1c7271029fd69a66859d55560895884"),
        amount=100,
        fee_limit=100_000_000,
        block=bytes(6) + bytes.fromhex("28c3ce6d340282788569"),
        expiration=1777447227000,
        timestamp=1777447168009,
    )
    return msgspec.structs.replace(published, **changes)


class TestBytes:
    """The wallet builds the same bytes that the network would have built."""

    def test_a_transaction_has_the_published_id(self) -> None:
        assert tx_id(transfer().raw).hex() == "8c621a0dc9bd4d405b20d0a43143955b9f546f98bbfde1aec295a65b0f925629"

    async def test_a_key_makes_the_published_signature(self) -> None:
        """The key is 1: coincurve and tronpy give the same signature."""
        signer, digest = KeySigner("0x" + "1".rjust(64, "0")), tx_id(transfer().raw)
        assert TRON.write(signer.payload) == "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC"
        signature = await signer.sign(digest)
        assert signature.hex() == (
            "e90fecc97c4cc3fb1ea471ddea5d423dcf3593cb47354b3c9a82c85fb78d66ee"
            "123971f29bb8bd12c1eb7d0b66219b4884e4f5bf4fbc969e0fac62f25457704d01"
        )
        assert signer_of(signature, digest) == signer_of(signature[:-1] + b"\x1c", digest) == signer.payload

    @given(
        st.builds(
            transfer,
            owner=st.binary(min_size=20, max_size=20),
            recipient=st.binary(min_size=20, max_size=20),
            amount=st.integers(1, 2**64),
            fee_limit=st.integers(1, 15 * 10**9),
            block=st.binary(min_size=10, max_size=10).map(lambda part: bytes(6) + part),
            expiration=st.integers(1, 2**60),
            timestamp=st.integers(1, 2**60),
            operation=st.text(max_size=40),
        )
    )
    def test_built_transfer_reads_back_the_same(self, made: Transfer) -> None:
        assert read(made.raw) == made
        assert parted(signed(made.raw, bytes(range(65)))) == (made.raw, bytes(range(65)))

    @given(st.binary(max_size=400))
    def test_malformed_transfer_is_a_value_error(self, raw: bytes) -> None:
        for reading in (read, parted, protobuf.decoded):
            try:
                reading(raw)
            except ValueError:
                continue
            assert reading is protobuf.decoded or reading(raw)

    @table(
        "extra",
        [
            {10: b"a memo"},
            {12: b"script"},
            {9: b"auth"},
        ],
        ids=str,
    )
    def test_a_transaction_that_says_more_is_not_read(self, extra: dict[int, bytes]) -> None:
        more = protobuf.encoded({**protobuf.decoded(transfer().raw), **extra})
        with pytest.raises(ValueError, match="as we build it"):
            read(more)

    @table("key", ["", "hunter2", "0" * 64, "f" * 64, "0x12"])
    def test_invalid_key_is_refused_without_being_quoted(self, key: str) -> None:
        with pytest.raises(NotConfigured) as caught:
            KeySigner(key)
        assert "hunter2" not in str(caught.value)


class TestMeans:
    """The network keeps the fee of a failed transfer, so the wallet signs none that could fail."""

    async def _lacks(self, harness: TronHarness, match: str) -> None:
        with pytest.raises(Unavailable, match=match):
            await harness.sender.sign("wd_1", TO, UNITS)

    async def test_usdt(self, harness: TronHarness) -> None:
        harness.network.usdt[harness.owner] = 249_999_999
        await self._lacks(harness, r"lacks USDT: it has 250\.00")

    async def test_trx_for_energy(self, harness: TronHarness) -> None:
        harness.network.sun[harness.owner] = 12 * SUN
        await self._lacks(harness, r"it has 12\.0 TRX, and a transfer needs 16\.0")

    async def test_bandwidth_for_the_longest_operation(self, harness: TronHarness) -> None:
        before = harness.network.sun[harness.owner] = 16_100_000
        await harness.sender.broadcast(await harness.sender.sign("wd_" + "1" * 37, TO, UNITS))
        harness.network.energy[harness.owner] = 10**6
        harness.network.mine()
        burned = (before - harness.network.sun[harness.owner]) // 1000
        assert 345 < burned <= _BANDWIDTH

    async def test_staked_energy_counts(self, harness: TronHarness) -> None:
        harness.network.sun[harness.owner] = SUN
        harness.network.energy[harness.owner] = 160_000
        assert (await harness.sender.sign("wd_1", TO, UNITS)).blob

    async def test_a_recipient_whom_the_contract_refuses(self, harness: TronHarness) -> None:
        harness.network.blacklisted.add(bytes(range(20)))
        await self._lacks(harness, "would not do")

    async def test_a_price_above_the_limit(self, harness: TronHarness) -> None:
        dear = harness.restarted()
        dear._fee_limit = SUN
        with pytest.raises(Unavailable, match=r"15\.6 TRX, above the limit"):
            await dear.sign("wd_1", TO, UNITS)

    @pytest.mark.parametrize(("limit", "is_signed"), [(13_716_000, False), (15_635_999, False), (15_636_000, True)])
    async def test_a_limit_without_room_for_a_rise_of_the_price(
        self, harness: TronHarness, limit: int, *, is_signed: bool
    ) -> None:
        """An estimate of 95 % of the limit may end without energy: the fee is burned, and nothing is moved."""
        tight = harness.restarted()
        tight._fee_limit = limit
        harness.network.energy[harness.owner] = 10**6
        if is_signed:
            await tight.sign("wd_1", TO, UNITS)
        else:
            with pytest.raises(Unavailable, match="above the limit"):
                await tight.sign("wd_1", TO, UNITS)

    async def test_check_reports_an_empty_wallet(self, harness: TronHarness) -> None:
        await harness.wallet.check()
        harness.network.sun[harness.owner] = 0
        with pytest.raises(Unavailable, match="neither energy nor TRX"):
            await harness.wallet.check()


class TestWhatANodeAnswers:
    @pytest.mark.parametrize("code", [*CODES, "OTHER_ERROR", "NEW_ERROR"])
    async def test_each_code_has_its_end(self, harness: TronHarness, code: str) -> None:
        made = await harness.sender.sign("wd_1", TO, UNITS)
        harness.network.code = code
        match CODES.get(code):
            case Taken.YES:
                await harness.sender.broadcast(made)
            case Taken.LATER:
                with pytest.raises(Unavailable):
                    await harness.sender.broadcast(made)
            case Taken.EXPIRED | Taken.NO as end:
                with pytest.raises(Refused) as refused:
                    await harness.sender.broadcast(made)
                assert refused.value.reason == ("expired" if end is Taken.EXPIRED else "invalid")
            case None:
                with pytest.raises(OutcomeUnknown):
                    await harness.sender.broadcast(made)

    async def test_a_limiter_that_answers_200_took_nothing(self, harness: TronHarness) -> None:
        made = await harness.sender.sign("wd_1", TO, UNITS)
        said = b'{"Error":"class java.lang.IllegalAccessException : lack of computing resources"}'
        harness.network.next(ProviderAnswer(body=said), matching=is_broadcast, done=False)
        with pytest.raises(Unavailable):
            await harness.sender.broadcast(made)

    @pytest.mark.parametrize(
        ("fault", "end"),
        [
            (ProviderFault.SERVER_ERROR, OutcomeUnknown),
            (ProviderFault.HTML, OutcomeUnknown),
            (ProviderFault.CUT_IN_BODY, OutcomeUnknown),
            (ProviderFault.BUSY, Unavailable),
            (ProviderFault.FORBIDDEN, Unavailable),
            (ProviderFault.UNAUTHORIZED, NotConfigured),
        ],
    )
    async def test_a_fault_of_the_wire(self, harness: TronHarness, fault: ProviderFault, end: type[Exception]) -> None:
        made = await harness.sender.sign("wd_1", TO, UNITS)
        harness.network.next(fault, matching=is_broadcast)
        with pytest.raises(end):
            await harness.sender.broadcast(made)


class TestProof:
    """FAILED returns the money, so it needs a final block past the expiry, confirmed by all nodes that may know
    better."""

    async def test_the_end_alone_proves_nothing(self, harness: TronHarness) -> None:
        """The final block is a minute behind, and has to be five minutes past the end."""
        made = await harness.sender.sign("wd_1", TO, UNITS)
        for seconds in (LIFETIME.total_seconds() + 70, PROOF_AFTER.total_seconds() - 70):
            await harness.network.pass_time(seconds)
            assert await harness.sender.state(made) is TransferState.UNSEEN
        await harness.network.pass_time(200)
        assert await harness.sender.state(made) is TransferState.FAILED

    async def test_a_network_that_stands_still_proves_nothing(self, harness: TronHarness) -> None:
        """The next block's head may be before the end, and then it takes the transfer however late it comes."""
        made = await harness.sender.sign("wd_1", TO, UNITS)
        await harness.sender.broadcast(made)
        await harness.network.clock.advance(2 * LIFETIME.total_seconds())
        with pytest.raises(Unavailable, match="does not keep up"):
            await harness.sender.state(made)
        harness.network.mine(1)
        assert await harness.sender.state(made) is TransferState.IN_BLOCK

    async def test_a_transaction_that_one_interface_alone_knows_proves_nothing(self, harness: TronHarness) -> None:
        made = await harness.sender.sign("wd_1", TO, UNITS)
        await harness.sender.broadcast(made)
        harness.network.hides.add(made.tx_hash)
        await harness.outlive(made)
        with pytest.raises(Unavailable, match="nothing is proven"):
            await harness.sender.state(made)

    async def test_a_final_transfer_that_ran_out_of_energy_failed(self, harness: TronHarness) -> None:
        """Its fee is burned, and the USDT did not move: it may be signed again."""
        made = await harness.sender.sign("wd_1", TO, UNITS)
        await harness.sender.broadcast(made)
        harness.network.blacklisted.add(bytes(range(20)))
        harness.network.mine()
        await harness.network.clock.advance(PACE)
        assert await harness.sender.state(made) is TransferState.IN_BLOCK
        await harness.make_final(made)
        assert await harness.sender.state(made) is TransferState.FAILED
        assert harness.network.usdt[harness.owner] == RICH


class TestSeveralNodes:
    @pytest.fixture
    async def two(self) -> AsyncIterator[tuple[TronHarness, Sequence[TronNetwork]]]:
        """Two nodes of one network."""
        clock = VirtualClock(START)
        async with TronNetwork(clock) as one, TronNetwork(clock) as other:
            for shared in ("usdt", "sun", "blocks", "pool", "seen", "receipts", "signed"):
                setattr(other, shared, getattr(one, shared))
            harness = TronHarness(one, other)
            yield harness, (one, other)
            await harness.close()

    @pytest.mark.parametrize(
        "path",
        [
            "/wallet/broadcasthex",
            "/wallet/gettransactionbyid",
            "/wallet/getaccountresource",
            "/wallet/triggerconstantcontract",
            "/wallet/getchainparameters",
        ],
    )
    @pytest.mark.parametrize(
        "refusal",
        [
            ProviderFault.FORBIDDEN,
            ProviderFault.BUSY,
            ProviderFault.UNAUTHORIZED,
            ProviderFault.SERVER_ERROR,
            ProviderFault.HTML,
            ProviderAnswer.of_json({"Error": "no"}),
            ProviderAnswer.of_json([]),
        ],
        ids=repr,
    )
    async def test_second_interface_answers_if_the_first_refuses(
        self, two: tuple[TronHarness, Sequence[TronNetwork]], path: str, refusal: ProviderFault | ProviderAnswer
    ) -> None:
        harness, (one, _) = two
        one.next(refusal, matching=lambda request: request.path == path, always=True)
        made = await harness.sender.sign("wd_1", TO, UNITS)
        await harness.sender.broadcast(made)
        assert await harness.moved() == UNITS
        await harness.make_final(made)
        assert await harness.sender.state(made) is TransferState.FINAL
        await harness.forget()
        found = await harness.restarted().find("wd_1")
        assert found is not None
        assert found.signed == made

    async def test_one_interface_alone_proves_no_failure(self, two: tuple[TronHarness, Sequence[TronNetwork]]) -> None:
        harness, (one, _) = two
        made = await harness.sender.sign("wd_1", TO, UNITS)
        await harness.outlive(made)
        is_asked = ProviderFault.SERVER_ERROR, lambda request: request.path == "/wallet/gettransactioninfobyid"
        one.next(is_asked[0], matching=is_asked[1])
        with pytest.raises(Unavailable):
            await harness.sender.state(made)
        assert await harness.sender.state(made) is TransferState.FAILED

    async def test_an_invented_moment_of_one_node_proves_no_failure(
        self, two: tuple[TronHarness, Sequence[TronNetwork]]
    ) -> None:
        """A final block of tomorrow would call a transfer failed that may still come."""
        harness, (one, _) = two
        made = await harness.sender.sign("wd_1", TO, UNITS)
        await harness.network.clock.advance(PACE)
        harness.network.mine()
        view = await harness.wallet._nodes.view()
        number, (block, _, _) = view.final, harness.network.blocks[view.final]
        late = round((harness.network.clock.now() + 2 * LIFETIME).timestamp())
        said = {"number": hex(number), "hash": f"0x{block}", "timestamp": hex(late)}
        one.next(
            ProviderAnswer.of_json(
                {"jsonrpc": "2.0", "id": harness.wallet._nodes._nodes[0]._number + 1, "result": said}
            ),
            matching=lambda request: b"eth_getBlockByNumber" in request.body,
        )
        with pytest.raises(Unavailable, match="contradict"):
            await harness.sender.state(made)

    async def test_a_transaction_with_a_signature_that_is_none_of_ours_says_nothing(
        self, two: tuple[TronHarness, Sequence[TronNetwork]]
    ) -> None:
        """An interface could have a payout followed for ever that nobody signed."""
        harness, (one, other) = two
        made = await harness.sender.sign("wd_1", TO, UNITS)
        await harness.sender.broadcast(made)
        assert await harness.moved() == UNITS
        forged = dict(one.signed)
        forged[made.tx_hash] = type(forged[made.tx_hash]).FromString(forged[made.tx_hash].SerializeToString())
        forged[made.tx_hash].signature[0] = bytes(64) + b"\1"
        one.signed = forged
        assert await harness.restarted().find("wd_1") is not None
        other.signed = forged
        with pytest.raises(Unavailable, match="otherwise than it was signed"):
            await harness.restarted().find("wd_2")

    async def test_next_interface_takes_a_transfer_that_one_does_not_take(
        self, two: tuple[TronHarness, Sequence[TronNetwork]]
    ) -> None:
        harness, (one, _) = two
        made = await harness.sender.sign("wd_1", TO, UNITS)
        one.code = "SERVER_BUSY"
        await harness.sender.broadcast(made)
        assert await harness.moved() == UNITS

    async def test_a_lost_answer_is_settled_by_the_next_one(
        self, two: tuple[TronHarness, Sequence[TronNetwork]]
    ) -> None:
        """It says that it has the transaction already."""
        harness, (one, other) = two
        made = await harness.sender.sign("wd_1", TO, UNITS)
        one.next(ProviderFault.LOST_AFTER, matching=is_broadcast)
        await harness.sender.broadcast(made)
        assert await harness.moved() == UNITS
        assert any(map(is_broadcast, other.requests))

    async def test_a_no_beside_a_lost_answer_is_unknown(self, two: tuple[TronHarness, Sequence[TronNetwork]]) -> None:
        harness, (one, other) = two
        made = await harness.sender.sign("wd_1", TO, UNITS)
        one.next(ProviderFault.LOST_AFTER, matching=is_broadcast)
        other.code = "TAPOS_ERROR"
        with pytest.raises(OutcomeUnknown):
            await harness.sender.broadcast(made)


async def test_the_wallet_s_address_is_its_own(harness: TronHarness) -> None:
    assert await harness.wallet.owns(harness.wallet.address)
    for other in (TO, "", "x"):
        assert not await harness.wallet.owns(other)


async def test_a_signer_that_signs_something_else_sends_nothing(harness: TronHarness) -> None:
    class Broken(KeySigner):
        async def sign(self, digest: bytes) -> bytes:
            return await super().sign(bytes(reversed(digest)))

    harness.wallet._signer = Broken(KEY)
    with pytest.raises(Unavailable, match="signed for another address"):
        await harness.wallet.sign("wd_1", TO, UNITS)


class TestWhatWasSent:
    """It is read back from the chain, where each call contains its operation, so a restored database pays nobody
    twice."""

    @staticmethod
    async def sends(harness: TronHarness, *operations: str) -> None:
        for each in operations:
            await harness.wallet.broadcast(await harness.wallet.sign(each, TO, UNITS))
        await harness.network.pass_time(25 * PACE)

    @staticmethod
    def spans(harness: TronHarness) -> list[tuple[int, int]]:
        """Return the ranges of blocks that the node was queried for since."""
        asked = [json.loads(each.body) for each in harness.network.requests if each.path == "/jsonrpc"]
        searches = [each["params"][0] for each in asked if each["method"] == "eth_getLogs"]
        harness.network.requests.clear()
        return [(int(each["fromBlock"], 16), int(each["toBlock"], 16)) for each in searches]

    @staticmethod
    def short(harness: TronHarness, blocks: int) -> TronSender:
        """A wallet that asks about so few blocks at once."""
        wallet = harness.restarted()
        wallet._sent._search = LogSearch(wallet._nodes, span=blocks)
        return wallet

    async def test_a_long_way_that_is_cut_off_is_gone_on_with(self, harness: TronHarness) -> None:
        """A call ends after 20 s. The next call continues where it stopped and reads nothing twice."""
        await harness.wallet.find("wd_1")
        await self.sends(harness, "wd_1")
        harness.network.mine(60)
        begun = harness.network.final
        self.spans(harness)
        wallet = self.short(harness, 10)
        searches = count(1)

        def is_fourth(request: ProviderRequest) -> bool:
            return b"eth_getLogs" in request.body and next(searches) == 4

        harness.network.next(ProviderFault.BAD_GATEWAY, matching=is_fourth)
        with pytest.raises(Unavailable):
            await wallet.find("wd_1")
        *_, (last_read, _), (failed, _) = self.spans(harness)
        await harness.network.pass_time(60)
        assert await self.short(harness, 10).find("wd_1") is not None
        assert self.spans(harness)[0][0] == failed > last_read
        assert failed < begun

    async def test_a_listing_reads_back_what_was_sent_before_the_first_look(
        self, harness: TronHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The copy predates the first payout: a search for one operation reads only a day."""
        for name, blocks in (("DAY", 10), ("SPAN", 20)):
            monkeypatch.setattr(sent, name, blocks)
        since = harness.network.clock.now()
        await self.sends(harness, "wd_1", "wd_2")
        for _ in range(4):
            await harness.network.pass_time(30 * PACE)
        await harness.forget()
        wallet = harness.restarted()
        assert await wallet.find("wd_1") is None
        listed = await wallet.sent_since(since)
        assert sorted((each.signed.operation, each.units) for each in listed) == [("wd_1", UNITS), ("wd_2", UNITS)]
        assert await wallet.find("wd_1") is not None
        self.spans(harness)
        await harness.network.pass_time(PACE)
        assert len(await wallet.sent_since(since)) == 2
        [(first, last)] = self.spans(harness)
        assert last - first < 20, "what was read is not read again"

    async def test_list_has_transfers_that_may_have_been_sent_since(self, harness: TronHarness) -> None:
        await self.sends(harness, "wd_1")
        await harness.network.pass_time((LIFETIME * 2).total_seconds())
        between = harness.network.clock.now()
        await self.sends(harness, "wd_2")
        assert [each.signed.operation for each in await harness.wallet.sent_since(between)] == ["wd_2"]

    async def test_list_reads_back_a_month_at_most(self, harness: TronHarness, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, blocks in (("DAY", 10), ("FARTHEST", 30)):
            monkeypatch.setattr(sent, name, blocks)
        harness.network.mine(60)
        await harness.wallet.sent_since(START - timedelta(days=9000))
        final = harness.network.final
        assert min(first for first, _ in self.spans(harness)) == final - 30

    async def test_blocks_are_read_once(self, harness: TronHarness) -> None:
        await harness.wallet.broadcast(await harness.wallet.sign("wd_1", TO, UNITS))
        await harness.network.pass_time(25 * PACE)
        assert await harness.wallet.find("wd_1") is not None
        harness.network.requests.clear()
        await harness.network.pass_time(PACE)
        assert await harness.restarted().find("wd_1") is not None
        assert "/wallet/gettransactionbyid" not in {each.path for each in harness.network.requests}

    async def test_transfer_that_a_reorg_may_undo_is_not_recorded(self, harness: TronHarness) -> None:
        made = await harness.wallet.sign("wd_1", TO, UNITS)
        await harness.wallet.broadcast(made)
        await harness.network.pass_time(PACE)
        assert await harness.wallet.find("wd_1") is not None
        harness.network.hides.add(made.tx_hash)
        assert await harness.wallet.find("wd_1") is None

    async def test_foreign_transfer_belongs_to_no_operation(self, harness: TronHarness) -> None:
        """Its call says none: it is found by nobody, and listed for nobody."""
        block = bytes.fromhex(harness.network.blocks[-1][0])
        now = round(harness.network.clock.now().timestamp() * 1000)
        made = transfer(owner=harness.owner, token=USDT, block=block, expiration=now + 60_000, timestamp=now)
        raw = signed(made.raw, await KeySigner(KEY).sign(tx_id(made.raw)))
        await harness.wallet._apis[0].broadcast(raw)
        await harness.network.pass_time(25 * PACE)
        assert await harness.wallet.find("wd_1") is None
        assert await harness.wallet.sent_since(START) == []

    async def test_node_that_alters_a_transaction_is_not_believed(self, harness: TronHarness) -> None:
        made = await harness.wallet.sign("wd_1", TO, UNITS)
        await harness.wallet.broadcast(made)
        await harness.network.pass_time(PACE)
        harness.network.signed[made.tx_hash].raw_data.timestamp += 1
        with pytest.raises(Unavailable, match="otherwise than it was signed"):
            await harness.wallet.find("wd_1")


def test_lifetime_of_a_transfer_is_below_the_networks_limit() -> None:
    assert timedelta(hours=24) > LIFETIME


class TestSettings:
    """Settings as docs/providers/chains.md describes them."""

    async def check(self, network: TronNetwork, **more: object) -> None:
        given = {"tron_nodes": (network.node,), "tron_key": KEY, **more}
        settings = Settings(database_url="memory://", payouts="tron", providers=given)
        async with open_app(settings, clock=network.clock) as app:
            await app.ports.senders.of_mode("live").check()  # type: ignore[attr-defined]  # it is Checkable

    async def test_the_interfaces_are_those_of_the_nodes_unless_they_are_named(self, harness: TronHarness) -> None:
        await self.check(harness.network)
        assert "/wallet/getaccountresource" in {each.path for each in harness.network.requests}
        harness.network.requests.clear()
        with pytest.raises(Unavailable):
            await self.check(harness.network, tron_api=("http://127.0.0.1:1",))
        assert "/wallet/getaccountresource" not in {each.path for each in harness.network.requests}

    @table(
        ("given", "said"),
        [
            ({}, "set CAMBIST_TRON_NODES and CAMBIST_TRON_KEY"),
            ({"tron_nodes": ("https://node.example/rpc",), "tron_key": "1" * 64}, "set CAMBIST_TRON_API"),
            ({"tron_nodes": ("https://node.example/jsonrpc",)}, "set CAMBIST_TRON_KEY"),
        ],
    )
    async def test_missing_setting_is_named(self, given: dict[str, object], said: str) -> None:
        with pytest.raises(PluginError, match=said):
            async with open_app(Settings(database_url="memory://", payouts="tron", providers=given)):
                pass
