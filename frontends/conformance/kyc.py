"""Contract of a KYC verifier (ports/kyc.py). Your conftest.py provides a fixture `kyc_harness`, a KycHarness."""

import asyncio

import msgspec
import pytest

from ...ports.faults import Fault, OutcomeUnknown, Refused, Unavailable
from ...ports.kyc import Check, CheckRequest, CheckStatus, KycVerifier, NoAnswer, Purpose
from .expectations import must_answer, must_raise
from .harnesses import AskedCheck, KycHarness, check_hidden, check_name
from .hearing import NotificationRules, Told, told
from .operation_ids import check_id
from .problem import Ask, CancelRules, Reading, ReadRules, TwoProcessRules, Work, WriteRules

OPERATION = check_id(1)
OTHER = check_id(2)

_TWICE = "one operation must be one check: a person would be checked, and paid for, twice"
_FOUND = "a check that was begun must be found by its operation"


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
    assert found is not None, _FOUND
    return await verifier.check_state(found.reference)


def _got(asked: AskedCheck, request: CheckRequest) -> None:
    """Assert that the verifier got what the request says. UNSET fields are not in its records."""
    rules = {
        "phone": (request.phone, "the verifier must get the person's phone number"),
        "purposes": (tuple(sorted(each.purpose for each in request.documents)), "each document as what it is"),
        "email": (request.email, "the verifier must get the person's e-mail address"),
        "user_type": (request.user_type, "the verifier must get the type of the person"),
    }
    for field, (wanted, rule) in rules.items():
        found = getattr(asked, field)
        assert found is msgspec.UNSET or found == wanted, f"{rule}: {field} is {found!r} instead of {wanted!r}"


class TestChecks:
    """One operation starts one check, whatever fails on the way, and the verifier reports the check's state."""

    async def test_a_check_can_be_found_by_its_operation_and_by_its_reference(self, kyc_harness: KycHarness) -> None:
        verifier = kyc_harness.verifier
        begun = await verifier.register(either(kyc_harness))
        assert begun.reference, "a check must have a reference"
        found = await verifier.find_check(OPERATION)
        assert found is not None, _FOUND
        assert found.reference == begun.reference, "a check must keep its reference"
        with must_answer("a check that was begun must be readable by its reference"):
            present = await verifier.check_state(begun.reference)
        assert present.reference == begun.reference, "a check must keep its reference"

    async def test_a_repeat_is_the_same_check(self, kyc_harness: KycHarness) -> None:
        begun = await kyc_harness.verifier.register(either(kyc_harness))
        again = await kyc_harness.verifier.register(either(kyc_harness))
        assert again.reference == begun.reference, _TWICE

    async def test_repeats_at_once_are_one_check(self, kyc_harness: KycHarness) -> None:
        request = either(kyc_harness)
        checks = await asyncio.gather(*(kyc_harness.verifier.register(request) for _ in range(5)))
        assert len({check.reference for check in checks}) == 1, _TWICE

    async def test_two_operations_are_two_checks(self, kyc_harness: KycHarness) -> None:
        """The rule also holds for one person: a second check after a refusal is a separate check."""
        first = await kyc_harness.verifier.register(either(kyc_harness))
        second = await kyc_harness.verifier.register(either(kyc_harness, OTHER))
        assert first.reference != second.reference, "two operations must be two checks, also of one person"
        for operation, begun in ((OPERATION, first), (OTHER, second)):
            found = await kyc_harness.verifier.find_check(operation)
            assert found is not None, _FOUND
            assert found.reference == begun.reference, "an operation must find its own check, not another of the person"

    async def test_an_operation_that_never_came_is_not_found(self, kyc_harness: KycHarness) -> None:
        with must_answer("an operation that the verifier never saw must be found as None, without a fault"):
            found = await kyc_harness.verifier.find_check(check_id(99))
        assert found is None, "an operation that the verifier never saw must not be found"

    async def test_a_reference_of_no_check_is_refused(self, kyc_harness: KycHarness) -> None:
        with must_raise("a reference of no check must be Refused", Refused):
            await kyc_harness.verifier.check_state("no-such-reference")

    async def test_verifier_gets_the_person_of_the_request(self, kyc_harness: KycHarness) -> None:
        request = either(kyc_harness)
        await kyc_harness.verifier.register(request)
        _got(await kyc_harness.asked(OPERATION), request)

    async def test_verifier_gets_the_form_s_email_and_user_type(self, kyc_harness: KycHarness) -> None:
        request = by_form(kyc_harness)
        await kyc_harness.verifier.register(request)
        _got(await kyc_harness.asked(OPERATION), request)

    async def test_check_by_documents_needs_no_form(self, kyc_harness: KycHarness) -> None:
        begun = await kyc_harness.verifier.register(by_documents(kyc_harness))
        assert begun.status is not CheckStatus.FORM, "a check by documents must not wait for a form"
        assert begun.form_url is None, "a check by documents must have no form"

    async def test_form_address_does_not_reveal_the_person(self, kyc_harness: KycHarness) -> None:
        begun = await kyc_harness.verifier.register(by_form(kyc_harness))
        assert begun.status is CheckStatus.FORM, "a check by form must be in FORM until the person filled it in"
        assert begun.form_url is not None, "a check in FORM says where the form is"
        assert begun.form_url.startswith("https://"), "the form is filled in over TLS only"
        for hidden in (kyc_harness.phone.lstrip("+"), kyc_harness.email):
            assert hidden not in begun.form_url, "the address of the form has a person's data"

    async def test_form_can_be_opened_again_while_it_is_not_filled_in(self, kyc_harness: KycHarness) -> None:
        """A person may close the window. The URL may differ at each read."""
        await kyc_harness.verifier.register(by_form(kyc_harness))
        present = await state(kyc_harness.verifier)
        assert present.status is CheckStatus.FORM, "a check by form must be in FORM until the person filled it in"
        assert present.form_url is not None, "a check in FORM must say at each read where the form is"

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
        with must_raise("a request that lacks something must be Refused", Refused, reason="incomplete"):
            await harness.verifier.register(request)
        assert await harness.verifier.find_check(OPERATION) is None, "it was refused and begun all the same"


class TestVerdicts:
    """The verdict of a check stays the same however often it is read."""

    async def test_verified_person_has_a_level_and_no_form(self, kyc_harness: KycHarness) -> None:
        await kyc_harness.verifier.register(either(kyc_harness))
        await kyc_harness.verify(OPERATION)
        done = await state(kyc_harness.verifier)
        assert done.status is CheckStatus.VERIFIED, "a check that succeeded must be VERIFIED"
        assert done.level in (1, 2), "1: the person was verified, 2: the address as well"
        assert done.form_url is None, "a check that ended must have no form"
        assert await state(kyc_harness.verifier) == done, "a verdict must stay the same however often it is read"
        assert await kyc_harness.verifier.register(either(kyc_harness)) == done, "a repeat tells how it stands"

    async def test_failed_person_has_no_level_and_no_number(self, kyc_harness: KycHarness) -> None:
        await kyc_harness.verifier.register(either(kyc_harness))
        await kyc_harness.fail(OPERATION)
        done = await state(kyc_harness.verifier)
        assert done.status is CheckStatus.FAILED, "a check that failed must be FAILED"
        assert (done.level, done.account_number) == (0, None), "a check that failed must have no level and no number"
        again = await kyc_harness.verifier.register(either(kyc_harness))
        assert again.reference == done.reference, "a repeat after a failure must not begin another check"
        assert again.status is CheckStatus.FAILED, "a repeat must report the state of the check that it began"

    async def test_each_read_reports_the_present_state(self, kyc_harness: KycHarness) -> None:
        """The adapter caches no state."""
        await kyc_harness.verifier.register(either(kyc_harness))
        begun = await state(kyc_harness.verifier)
        assert begun.status is not CheckStatus.VERIFIED, "a check that is not decided must not be VERIFIED"
        assert begun.level == 0, "a check that is not decided must have no level"
        assert begun.check_after is None or begun.check_after >= 0, "`check_after` must be seconds from now"
        await kyc_harness.verify(OPERATION)
        assert (await state(kyc_harness.verifier)).status is CheckStatus.VERIFIED, (
            "a read must report the present state, and not an earlier one"
        )

    async def test_verdict_that_is_withdrawn_is_failed(self, kyc_harness: KycHarness) -> None:
        """The core then blocks the client."""
        await kyc_harness.verifier.register(either(kyc_harness))
        await kyc_harness.verify(OPERATION)
        assert (await state(kyc_harness.verifier)).status is CheckStatus.VERIFIED, (
            "a check that succeeded must be VERIFIED"
        )
        await kyc_harness.withdraw(OPERATION)
        withdrawn = await state(kyc_harness.verifier)
        assert withdrawn.status is CheckStatus.FAILED, "a verdict that the verifier withdrew must be FAILED"
        assert withdrawn.level == 0, "a verdict that the verifier withdrew must have no level"

    async def test_outcome_of_one_check_does_not_change_another(self, kyc_harness: KycHarness) -> None:
        await kyc_harness.verifier.register(either(kyc_harness))
        await kyc_harness.verifier.register(either(kyc_harness, OTHER))
        await kyc_harness.verify(OPERATION)
        assert (await state(kyc_harness.verifier, OTHER)).status is not CheckStatus.VERIFIED, (
            "the outcome of one check must not change another"
        )


class TestFailures:
    """A call is refused, certainly not started, or unknown. Merchants can distinguish a silent verifier from an
    unreachable one."""

    @pytest.mark.parametrize("done", [True, False])
    async def test_a_lost_answer_is_an_unknown_outcome_and_a_repeat_is_one_check(
        self, kyc_harness: KycHarness, done: bool
    ) -> None:
        request = either(kyc_harness)
        await kyc_harness.lose_next_answer(done=done)
        with must_raise("a check whose answer is lost has an unknown outcome: it may have begun", OutcomeUnknown):
            await kyc_harness.verifier.register(request)
        found = await kyc_harness.verifier.find_check(OPERATION)
        assert (found is not None) is done, (
            "after a lost answer, the operation must be found exactly if the check began"
        )
        again = await kyc_harness.verifier.register(request)
        assert found is None or again.reference == found.reference, _TWICE

    async def test_a_read_without_an_answer_is_no_answer(self, kyc_harness: KycHarness) -> None:
        """The API answers 502 while the verifier is silent (docs/kyc.md "Answers and errors")."""
        begun = await kyc_harness.verifier.register(either(kyc_harness))
        await kyc_harness.be_silent()
        rule = "a read that reached the verifier and got no answer must be NoAnswer"
        with must_raise(rule, NoAnswer):
            await kyc_harness.verifier.find_check(OPERATION)
        with must_raise(rule, NoAnswer):
            await kyc_harness.verifier.check_state(begun.reference)

    async def test_a_verifier_that_is_away_was_certainly_not_asked(self, kyc_harness: KycHarness) -> None:
        """The API answers 503 while the verifier cannot be reached."""
        request = either(kyc_harness)
        await kyc_harness.be_away()
        calls: tuple[Ask, ...] = (
            lambda: kyc_harness.verifier.register(request),
            lambda: kyc_harness.verifier.find_check(OPERATION),
            lambda: kyc_harness.verifier.check_state("no-such-reference"),
        )
        for call in calls:
            with must_raise("a verifier that cannot be reached is Unavailable", Unavailable) as unavailable:
                await call()
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
        calls: tuple[Ask, ...] = (
            lambda: kyc_harness.verifier.check_state("no-such-reference"),
            lambda: kyc_harness.verifier.register(wrong),
        )
        for call in calls:
            with must_raise("a call that cannot succeed must raise a fault", Fault) as raised:
                await call()
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
            assert found is not None, _FOUND
            assert (await verifier.register(request)).reference == found.reference, _TWICE

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
