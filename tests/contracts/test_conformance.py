"""Our own adapters keep the contracts that we ship for adapters of others (frontends/conformance). Rates and storages:
test_rates.py, test_storage_*.py."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cambist.adapters.clock import SystemClock, VirtualClock
from cambist.adapters.notifier.http import HttpNotifier
from cambist.frontends.conformance import chain as of_chains
from cambist.frontends.conformance import charges as of_charges
from cambist.frontends.conformance import deposits as of_deposits
from cambist.frontends.conformance import files as of_files
from cambist.frontends.conformance import kyc as of_verifiers
from cambist.frontends.conformance import mandates as of_mandates
from cambist.frontends.conformance import notifier as of_notifiers
from cambist.frontends.conformance import payout_faults
from cambist.frontends.conformance import payouts as of_payouts
from cambist.frontends.conformance import remittances as of_remittances
from cambist.frontends.conformance import reporting as of_lists
from cambist.frontends.conformance.bank import bank as of_banks
from cambist.frontends.conformance.bank_harness import BankHarness
from cambist.frontends.conformance.harnesses import (
    ChainHarness,
    DepositsHarness,
    FilesHarness,
    KycHarness,
    NotifierHarness,
    PayoutsHarness,
)
from cambist.ports.bank import BankCapabilities
from cambist.ports.receipts import ReceiptNeed
from tests.contracts.harnesses import (
    LocalFilesHarness,
    PostedHarness,
    S3Harness,
    SearchingHarness,
    SearchingVerifierHarness,
    SimulatedChainHarness,
    SimulatedDepositsHarness,
    SimulatedHarness,
    SimulatedPayoutsHarness,
    VerifierHarness,
)
from tests.fake_s3 import FakeS3
from tests.receivers import Receiver


class TestSimulatedBank:
    @pytest.fixture
    def bank_harness(self) -> BankHarness:
        return SimulatedHarness()

    class TestRequests(of_banks.TestRequests): ...

    class TestInvoices(of_banks.TestInvoices): ...

    class TestPayments(of_banks.TestPayments): ...

    class TestRefunds(of_banks.TestRefunds): ...

    class TestReceipts(of_banks.TestReceipts): ...

    class TestTwoOfOneName(of_banks.TestTwoOfOneName): ...

    class TestExtremes(of_banks.TestExtremes): ...

    class TestOfItself(of_banks.TestWhatItSays): ...

    class TestBinding(of_mandates.TestBinding): ...

    class TestConfirmation(of_mandates.TestConfirmation): ...

    class TestRevoke(of_mandates.TestRevoke): ...

    class TestTwoBind(of_mandates.TestTwoBind): ...

    class TestTwoCharge(of_charges.TestTwoCharge): ...

    class TestTwoRemit(of_remittances.TestTwoRemit): ...

    class TestTwoRefund(of_banks.TestTwoRefund): ...

    class TestOfMandates(of_mandates.TestWhatItSays): ...

    class TestCharges(of_charges.TestCharges): ...

    class TestMandatesThatAreOver(of_charges.TestMandatesThatAreOver): ...

    class TestOfCharges(of_charges.TestWhatItSays): ...

    class TestRemittances(of_remittances.TestRemittances): ...

    class TestFailures(of_remittances.TestFailures): ...

    class TestOfRemittances(of_remittances.TestWhatItSays): ...

    class TestReporting(of_lists.TestReporting): ...


class TestBankThatSearches:
    @pytest.fixture
    def bank_harness(self) -> BankHarness:
        return SearchingHarness()

    class TestInvoices(of_banks.TestInvoices): ...

    class TestPayments(of_banks.TestPayments): ...

    class TestRefunds(of_banks.TestRefunds): ...

    class TestBinding(of_mandates.TestBinding): ...

    class TestCharges(of_charges.TestCharges): ...

    class TestRemittances(of_remittances.TestRemittances): ...


class TestBankThatClosesInvoices:
    @pytest.fixture
    def bank_harness(self) -> BankHarness:
        return SimulatedHarness(BankCapabilities(simulated=True, cancels_invoices=True))

    class TestOfItself(of_banks.TestWhatItSays): ...

    class TestClosing(of_banks.TestClosing): ...


class TestBankThatRequiresReceipts:
    """Every suite brings them."""

    @pytest.fixture
    def bank_harness(self) -> BankHarness:
        can = BankCapabilities(simulated=True, receipts=ReceiptNeed.REQUIRED, mandates=True, mandate_charges=True)
        return SimulatedHarness(can)

    class TestReceipts(of_banks.TestReceipts): ...

    class TestConfirmation(of_mandates.TestConfirmation): ...


class TestBankThatCanLess:
    """A bank with fewer capabilities declares the missing ones, and refuses their calls."""

    @pytest.fixture(
        params=[
            BankCapabilities(simulated=True, refunds=False),
            BankCapabilities(simulated=True, mandates=True),
        ],
        ids=["invoices only", "mandates without charges"],
    )
    def bank_harness(self, request: pytest.FixtureRequest) -> BankHarness:
        return SimulatedHarness(request.param)

    class TestOfItself(of_banks.TestWhatItSays): ...

    class TestOfMandates(of_mandates.TestWhatItSays): ...

    class TestOfCharges(of_charges.TestWhatItSays): ...

    class TestOfRemittances(of_remittances.TestWhatItSays): ...


class TestSimulatedVerifier:
    @pytest.fixture
    def kyc_harness(self) -> KycHarness:
        return VerifierHarness()

    class TestChecks(of_verifiers.TestChecks): ...

    class TestVerdicts(of_verifiers.TestVerdicts): ...

    class TestFailures(of_verifiers.TestFailures): ...

    class TestOfItself(of_verifiers.TestWhatItSays): ...


class TestVerifierThatSearches:
    @pytest.fixture
    def kyc_harness(self) -> KycHarness:
        return SearchingVerifierHarness()

    class TestChecks(of_verifiers.TestChecks): ...

    class TestFailures(of_verifiers.TestFailures): ...


class TestLocalFiles:
    @pytest.fixture
    def files_harness(self, tmp_path: Path) -> FilesHarness:
        return LocalFilesHarness(tmp_path / "uploads")

    class TestFiles(of_files.TestFiles): ...

    class TestAddresses(of_files.TestAddresses): ...

    class TestFailures(of_files.TestFailures): ...


@pytest.mark.parametrize("files_harness", [False, True], ids=["s3", "s3 of single use"], indirect=True)
class TestS3Files:
    @pytest.fixture
    async def files_harness(self, request: pytest.FixtureRequest) -> AsyncIterator[FilesHarness]:
        clock = VirtualClock()
        async with FakeS3(clock) as bucket:
            harness = S3Harness(bucket, clock, single_use=request.param)
            yield harness
            await harness.store.close()

    class TestFiles(of_files.TestFiles): ...

    class TestAddresses(of_files.TestAddresses): ...

    class TestFailures(of_files.TestFailures): ...


class TestSimulatedChain:
    @pytest.fixture
    def chain_harness(self) -> ChainHarness:
        return SimulatedChainHarness()

    class TestSightings(of_chains.TestSightings): ...

    class TestFailures(of_chains.TestFailures): ...


class TestSimulatedDeposits:
    @pytest.fixture
    def deposits_harness(self) -> DepositsHarness:
        return SimulatedDepositsHarness()

    class TestAddresses(of_deposits.TestAddresses): ...

    class TestDeposits(of_deposits.TestDeposits): ...

    class TestFailures(of_deposits.TestFailures): ...


class TestSimulatedWallet:
    @pytest.fixture
    def payouts_harness(self) -> PayoutsHarness:
        return SimulatedPayoutsHarness()

    class TestSigning(of_payouts.TestSigning): ...

    class TestBroadcast(of_payouts.TestBroadcast): ...

    class TestEnds(of_payouts.TestEnds): ...

    class TestMemory(of_payouts.TestMemory): ...

    class TestTwoPayOut(payout_faults.TestTwoPayOut): ...

    class TestFailures(payout_faults.TestFailures): ...


class TestHttpNotifier(of_notifiers.TestNotifier):
    @pytest.fixture
    async def notifier_harness(self) -> AsyncIterator[NotifierHarness]:
        async with Receiver() as receiver:
            harness = PostedHarness(receiver, HttpNotifier(SystemClock(), loopback=True))
            yield harness
            await harness.notifier.close()
