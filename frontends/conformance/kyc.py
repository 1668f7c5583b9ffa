"""Contract of a KYC verifier (ports/kyc.py). Your conftest.py provides a fixture `kyc_harness`, a KycHarness."""

import asyncio

import msgspec
import pytest

from ...ports.faults import Fault, OutcomeUnknown, Refused, Unavailable
from ...ports.kyc import Check, CheckRequest, CheckStatus, KycVerifier, NoAnswer, Purpose
from .harnesses import KycHarness, check_hidden, check_name
from .hearing import NotificationRules, Told, told
from .operation_ids import check_id
from .problem import CancelRules, Reading, ReadRules, TwoProcessRules, Work, WriteRules

OPERATION = check_id(1)
OTHER = check_id(2)


def by_documents(harness: KycHarness, operation: str = OPERATION) -> CheckRequest:
    """Return a request with a selfie and a document. Skips if the verifier takes no documents."""
    if not harness.takes_documents:
        pytest.skip("the verifier takes no documents")
    return CheckRequest(operation=operation, phone=harness.phone, redirect=False, documents=harness.documents)


def by_form(harness: KycHarness, operation: str = OPERATION) -> CheckRequest:
    """Return a request with the verifier's form. Skips if the verifier has no forms."""
    if not harness.takes_forms:
        pytest.skip("the verifier has no forms")
    return CheckRequest(
        operation=operation, phone=harness.phone, redirect=True, email=harness.email, user_type=harness.user_type
    )


def either(harness: KycHarness, operation: str = OPERATION) -> CheckRequest:
    """Return a request by documents if the verifier takes them, otherwise by form."""
    return by_documents(harness, operation) if harness.takes_documents else by_form(harness, operation)


async def state(verifier: KycVerifier, operation: str = OPERATION) -> Check:
    found = await verifier.find_check(operation)
    assert found is not None, "a check that was begun cannot be found by its operation"
    return await verifier.check_state(found.reference)


class TestChecks:
    """One operation starts one check, whatever fails on the way, and the verifier reports the check's state."""

    async def test_a_check_can_be_found_by_its_operation_and_by_its_reference(self, kyc_harness: KycHarness) -> None:
        verifier = kyc_harness.verifier
        begun = await verifier.register(either(kyc_harness))
        assert begun.reference, "the check has no reference"
        found = await verifier.find_check(OPERATION)
        assert found is not None, "a check that was begun cannot be found by its operation"
        assert found.reference == begun.reference
        assert (await verifier.check_state(begun.reference)).reference == begun.reference

    async def test_a_repeat_is_the_same_check(self, kyc_harness: KycHarness) -> None:
        begun = await kyc_harness.verifier.register(either(kyc_harness))
        again = await kyc_harness.verifier.register(either(kyc_harness))
        assert again.reference == begun.reference, "a person would be checked, and paid for, twice"

    async def test_repeats_at_once_are_one_check(self, kyc_harness: KycHarness) -> None:
        request = either(kyc_harness)
        checks = await asyncio.gather(*(kyc_harness.verifier.register(request) for _ in range(5)))
        assert len({check.reference for check in checks}) == 1, "a person would be checked, and paid for, twice"

    async def test_two_operations_are_two_checks(self, kyc_harness: KycHarness) -> None:
        """The rule also holds for one person: a second check after a refusal is a separate check."""
        first = await kyc_harness.verifier.register(either(kyc_harness))
        second = await kyc_harness.verifier.register(either(kyc_harness, OTHER))
        assert first.reference != second.reference

    async def test_an_operation_that_never_came_is_not_found(self, kyc_harness: KycHarness) -> None:
        assert await kyc_harness.verifier.find_check(check_id(99)) is None

    async def test_a_reference_of_no_check_is_refused(self, kyc_harness: KycHarness) -> None:
        with pytest.raises(Refused):
            await kyc_harness.verifier.check_state("no-such-reference")

    async def test_check_by_documents_needs_no_form(self, kyc_harness: KycHarness) -> None:
        begun = await kyc_harness.verifier.register(by_documents(kyc_harness))
        assert begun.status is not CheckStatus.FORM
        assert begun.form_url is None

    async def test_form_address_does_not_reveal_the_person(self, kyc_harness: KycHarness) -> None:
        begun = await kyc_harness.verifier.register(by_form(kyc_harness))
        assert begun.status is CheckStatus.FORM
        assert begun.form_url is not None, "a check in FORM says where the form is"
        assert begun.form_url.startswith("https://"), "the form is filled in over TLS only"
        for hidden in (kyc_harness.phone.lstrip("+"), kyc_harness.email):
            assert hidden not in begun.form_url, "the address of the form has a person's data"

    @pytest.mark.parametrize("lacking", ["all documents", "the selfie", "the document"])
    async def test_without_a_document_it_is_refused_and_begins_nothing(
        self, kyc_harness: KycHarness, lacking: str
    ) -> None:
        request = by_documents(kyc_harness)
        left = {"all documents": None, "the selfie": Purpose.DOCUMENT, "the document": Purpose.SELFIE}[lacking]
        kept = tuple(document for document in request.documents if document.purpose is left)
        await self._incomplete(kyc_harness, msgspec.structs.replace(request, documents=kept))

    @pytest.mark.parametrize("lacking", ["email", "user_type"])
    async def test_without_what_the_form_needs_it_is_refused_and_begins_nothing(
        self, kyc_harness: KycHarness, lacking: str
    ) -> None:
        await self._incomplete(kyc_harness, msgspec.structs.replace(by_form(kyc_harness), **{lacking: None}))

    async def _incomplete(self, harness: KycHarness, request: CheckRequest) -> None:
        with pytest.raises(Refused) as refused:
            await harness.verifier.register(request)
        assert refused.value.reason == "incomplete"
        assert await harness.verifier.find_check(OPERATION) is None, "it was refused and begun all the same"


class TestVerdicts:
    """The verdict of a check stays the same however often it is read."""

    async def test_verified_person_has_a_level_and_no_form(self, kyc_harness: KycHarness) -> None:
        await kyc_harness.verifier.register(either(kyc_harness))
        await kyc_harness.verify(OPERATION)
        done = await state(kyc_harness.verifier)
        assert done.status is CheckStatus.VERIFIED
        assert done.level in (1, 2), "1: the person was verified, 2: the address as well"
        assert done.form_url is None
        assert await state(kyc_harness.verifier) == done
        assert await kyc_harness.verifier.register(either(kyc_harness)) == done, "a repeat tells how it stands"

    async def test_failed_person_has_no_level_and_no_number(self, kyc_harness: KycHarness) -> None:
        await kyc_harness.verifier.register(either(kyc_harness))
        await kyc_harness.fail(OPERATION)
        done = await state(kyc_harness.verifier)
        assert (done.status, done.level, done.account_number) == (CheckStatus.FAILED, 0, None)

    async def test_outcome_of_one_check_does_not_change_another(self, kyc_harness: KycHarness) -> None:
        await kyc_harness.verifier.register(either(kyc_harness))
        await kyc_harness.verifier.register(either(kyc_harness, OTHER))
        await kyc_harness.verify(OPERATION)
        assert (await state(kyc_harness.verifier, OTHER)).status is not CheckStatus.VERIFIED


class TestFailures:
    """A call is refused, certainly not started, or unknown. Merchants can distinguish a silent verifier from an
    unreachable one."""

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_lost_answer_is_an_unknown_outcome_and_a_repeat_is_one_check(
        self, kyc_harness: KycHarness, done: bool
    ) -> None:
        request = either(kyc_harness)
        await kyc_harness.lose_next_answer(done=done)
        with pytest.raises(OutcomeUnknown):
            await kyc_harness.verifier.register(request)
        found = await kyc_harness.verifier.find_check(OPERATION)
        assert (found is not None) is done
        again = await kyc_harness.verifier.register(request)
        assert found is None or again.reference == found.reference, "a person would be checked, and paid for, twice"

    async def test_a_read_without_an_answer_is_no_answer(self, kyc_harness: KycHarness) -> None:
        """The API answers 502 while the verifier is silent (docs/kyc.md "Answers and errors")."""
        begun = await kyc_harness.verifier.register(either(kyc_harness))
        await kyc_harness.be_silent()
        with pytest.raises(NoAnswer):
            await kyc_harness.verifier.find_check(OPERATION)
        with pytest.raises(NoAnswer):
            await kyc_harness.verifier.check_state(begun.reference)

    async def test_a_verifier_that_is_away_was_certainly_not_asked(self, kyc_harness: KycHarness) -> None:
        """The API answers 503 while the verifier cannot be reached."""
        request = either(kyc_harness)
        await kyc_harness.be_away()
        for call in (
            kyc_harness.verifier.register(request),
            kyc_harness.verifier.find_check(OPERATION),
            kyc_harness.verifier.check_state("no-such-reference"),
        ):
            with pytest.raises(Unavailable) as unavailable:
                await call
            assert not isinstance(unavailable.value, NoAnswer), "NoAnswer is for a verifier that was reached"


class TestNotifications(NotificationRules):
    """A genuine notification from the verifier is accepted, but only as a hint to poll."""

    @pytest.fixture
    async def noticed(self, kyc_harness: KycHarness) -> Told:
        await kyc_harness.verifier.register(either(kyc_harness))
        return await told(kyc_harness.verifier, kyc_harness, OPERATION, OTHER)


class TestWhatItSays:
    """The verifier has a valid name, and neither its repr nor its faults leak data."""

    async def test_its_name_can_be_stored(self, kyc_harness: KycHarness) -> None:
        check_name(kyc_harness.verifier)

    async def test_no_credential_and_no_person_shows(self, kyc_harness: KycHarness) -> None:
        """Neither the repr nor a fault contains a credential or personal data."""
        told: list[Fault] = []
        wrong = msgspec.structs.replace(either(kyc_harness), documents=(), email=None)
        for call in (kyc_harness.verifier.check_state("no-such-reference"), kyc_harness.verifier.register(wrong)):
            with pytest.raises(Fault) as raised:
                await call
            told.append(raised.value)
        check_hidden((*kyc_harness.secrets, kyc_harness.phone, kyc_harness.email), kyc_harness.verifier, *told)


class _OfChecks:
    @pytest.fixture
    async def work(self, kyc_harness: KycHarness) -> Work:
        verifier, request = kyc_harness.verifier, either(kyc_harness)

        async def is_there() -> bool:
            return await verifier.find_check(OPERATION) is not None

        async def once() -> None:
            found = await verifier.find_check(OPERATION)
            assert found is not None
            assert (await verifier.register(request)).reference == found.reference

        return Work(
            harness=kyc_harness,
            adapter=verifier,
            write=lambda: verifier.register(request),
            is_there=is_there,
            once=once,
            beside=lambda: kyc_harness.another().register(request),
            hidden=(kyc_harness.phone, kyc_harness.email),
            in_one_call=kyc_harness.registers_in_one_call,
        )


class TestChecksAtFaults(_OfChecks, WriteRules, ReadRules):
    """Checks while the provider fails."""

    @pytest.fixture
    async def read(self, kyc_harness: KycHarness) -> Reading:
        verifier = kyc_harness.verifier
        begun = await verifier.register(either(kyc_harness))
        reads = (lambda: verifier.check_state(begun.reference), lambda: verifier.find_check(OTHER))
        return Reading(harness=kyc_harness, adapter=verifier, reads=reads)


class TestCancelledChecks(_OfChecks, CancelRules):
    """Checks when the caller cancels the call."""


class TestTwoCheck(_OfChecks, TwoProcessRules):
    """Two processes start one check."""
