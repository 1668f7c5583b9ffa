"""The simulated verifier, beyond the contract of every verifier (frontends/conformance/kyc.py)."""

import asyncio
from datetime import timedelta

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.kyc.simulator import SimulatedVerifier
from cambist.adapters.script import Ending, Twist, VerifierScript
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.ports.faults import NotConfigured, OutcomeUnknown, Refused, Unavailable
from cambist.ports.kyc import (
    CheckRequest,
    CheckStatus,
    Document,
    DocumentState,
    NoAnswer,
    Purpose,
    Verdict,
    VerifierSimulator,
)

DOCUMENTS = (
    Document(purpose=Purpose.SELFIE, key="a", content_type="image/jpeg"),
    Document(purpose=Purpose.DOCUMENT, key="b", content_type="image/png"),
)
ADDRESS = Document(purpose=Purpose.ADDRESS, key="c", content_type="application/pdf")


class Office:
    """A verifier and the clock that it lives by."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.storage = MemoryStorage(self.clock)
        self.script = VerifierScript()
        self.verifier = self.opened()

    def opened(self) -> SimulatedVerifier:
        return SimulatedVerifier("kyc", self.storage, self.clock, script=self.script)


@pytest.fixture
def office() -> Office:
    return Office()


def by_documents(operation: str = "kyc_1_1", documents: tuple[Document, ...] = DOCUMENTS) -> CheckRequest:
    return CheckRequest(operation=operation, phone="+79001234567", redirect=False, documents=documents)


def by_form(operation: str = "kyc_1_1") -> CheckRequest:
    return CheckRequest(
        operation=operation, phone="+79001234567", redirect=True, email="a@example.com", user_type="individual"
    )


async def test_check_verifies_itself_after_seconds_and_survives_a_restart(office: Office) -> None:
    begun = await office.verifier.register(by_documents())
    assert (begun.status, begun.account_number, begun.level) == (CheckStatus.PROCESSING, None, 0)
    assert begun.check_after == 5
    await office.clock.advance(5)
    done = await office.opened().check_state(begun.reference)
    assert (done.status, done.level, done.passport) == (CheckStatus.VERIFIED, 1, DocumentState.PASSED)
    assert done.account_number is not None
    assert done.check_after is None


async def test_a_proof_of_address_is_a_level_more(office: Office) -> None:
    begun = await office.verifier.register(by_documents(documents=(*DOCUMENTS, ADDRESS)))
    await office.clock.advance(5)
    done = await office.verifier.check_state(begun.reference)
    assert (done.level, done.address) == (2, DocumentState.PASSED)


async def test_a_form_is_given_and_then_filled_in(office: Office) -> None:
    begun = await office.verifier.register(by_form())
    assert begun.status is CheckStatus.FORM
    assert begun.form_url is not None
    assert "79001234567" not in begun.form_url
    await office.clock.advance(5)
    done = await office.verifier.check_state(begun.reference)
    assert (done.status, done.form_url) == (CheckStatus.VERIFIED, None)


@pytest.mark.parametrize(
    ("ending", "write", "read", "begun"),
    [
        (Ending.REFUSED, Refused, Refused, False),
        (Ending.UNAVAILABLE, Unavailable, Unavailable, False),
        (Ending.NOT_CONFIGURED, NotConfigured, NotConfigured, False),
        (Ending.UNKNOWN_DONE, OutcomeUnknown, NoAnswer, True),
        (Ending.UNKNOWN_NOT_DONE, OutcomeUnknown, NoAnswer, False),
    ],
)
async def test_every_end_of_a_call_can_be_brought_about(
    office: Office, ending: Ending, write: type[Exception], read: type[Exception], begun: bool
) -> None:
    office.script.register.append(Twist(ending=ending))
    with pytest.raises(write):
        await office.verifier.register(by_documents())
    assert (await office.verifier.find_check("kyc_1_1") is not None) is begun
    check = await office.verifier.register(by_documents())
    office.script.find.append(Twist(ending=ending))
    office.script.state.append(Twist(ending=ending))
    with pytest.raises(read):
        await office.verifier.find_check("kyc_1_1")
    with pytest.raises(read):
        await office.verifier.check_state(check.reference)


async def test_every_outcome_can_be_simulated(office: Office) -> None:
    assert isinstance(office.verifier, VerifierSimulator)
    begun = await office.verifier.register(by_documents())
    one = await office.verifier.simulate("kyc_1_1", Verdict(status=CheckStatus.FAILED, address=DocumentState.FAILED))
    assert [notification.operation for notification in one] == ["kyc_1_1"]
    failed = await office.verifier.check_state(begun.reference)
    assert (failed.status, failed.passport, failed.address) == (CheckStatus.FAILED, None, DocumentState.FAILED)
    two = await office.verifier.simulate("kyc_1_1", Verdict(status=CheckStatus.VERIFIED, doubled=True))
    assert len(two) == 2
    assert (await office.verifier.check_state(begun.reference)).status is CheckStatus.VERIFIED
    assert await office.verifier.simulate("kyc_1_1", Verdict(status=CheckStatus.PROCESSING, silent=True)) == ()
    await office.clock.advance(3600)
    assert (await office.verifier.check_state(begun.reference)).status is CheckStatus.PROCESSING
    late = office.clock.now() + timedelta(hours=1)
    await office.verifier.simulate("kyc_1_1", Verdict(status=CheckStatus.FAILED, decides_at=late))
    assert (await office.verifier.check_state(begun.reference)).status is CheckStatus.PROCESSING
    await office.clock.advance(3600)
    refused = await office.verifier.check_state(begun.reference)
    assert (refused.status, refused.passport) == (CheckStatus.FAILED, DocumentState.FAILED)


async def test_simulator_is_silent_for_the_scripted_time(office: Office) -> None:
    before = office.clock.monotonic()
    office.script.state.append(Twist(silence=7.0))
    begun = await office.verifier.register(by_documents())
    asked = asyncio.create_task(office.verifier.check_state(begun.reference))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not asked.done()
    await office.clock.advance(7)
    assert (await asked).status is CheckStatus.VERIFIED
    assert office.clock.monotonic() - before == 7
