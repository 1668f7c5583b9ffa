"""Bugs of authors of KYC verifiers: each fails the shipped suite, which names its rule."""

from contextlib import AsyncExitStack
from typing import Any

import msgspec

from cambist.adapters.kyc.simulator import SimulatedVerifier
from cambist.frontends.conformance import kyc
from cambist.ports.faults import OutcomeUnknown, Refused, Unavailable
from cambist.ports.kyc import Check, CheckRequest, CheckStatus, NoAnswer, Purpose
from tests.contracts.biting import Planted, check_bite, named
from tests.contracts.harnesses import VerifierHarness
from tests.tables import table


class SendsNoKey(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        calls = self.__dict__.setdefault("calls", [])
        calls.append(request.operation)
        again = "" if len(calls) == 1 else f"_{len(calls)}"
        return await super().register(msgspec.structs.replace(request, operation=request.operation + again))


class CallsLostAnswersRefused(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        try:
            return await super().register(request)
        except OutcomeUnknown as lost:
            raise Refused("timeout") from lost


class CallsLostAnswersUnavailable(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        try:
            return await super().register(request)
        except OutcomeUnknown as lost:
            raise Unavailable("timeout") from lost


class GuessesAfterLostAnswers(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        try:
            return await super().register(request)
        except OutcomeUnknown:
            return Check(reference=f"guessed-{request.operation}", status=CheckStatus.PROCESSING)


class CallsRefusedPeopleVerified(SimulatedVerifier):
    async def check_state(self, reference: str) -> Check:
        found = await super().check_state(reference)
        return msgspec.structs.replace(found, status=CheckStatus.VERIFIED) if found.level == 0 else found


class LeavesRefusedPeopleProcessing(SimulatedVerifier):
    async def check_state(self, reference: str) -> Check:
        found = await super().check_state(reference)
        is_failed = found.status is CheckStatus.FAILED
        return msgspec.structs.replace(found, status=CheckStatus.PROCESSING) if is_failed else found


class ReportsNoLevel(SimulatedVerifier):
    async def check_state(self, reference: str) -> Check:
        return msgspec.structs.replace(await super().check_state(reference), level=0)


class VerifiesBeforeTheVerdict(SimulatedVerifier):
    async def check_state(self, reference: str) -> Check:
        found = await super().check_state(reference)
        return msgspec.structs.replace(found, status=CheckStatus.VERIFIED, level=1)


class CachesStates(SimulatedVerifier):
    async def check_state(self, reference: str) -> Check:
        kept: dict[str, Check] = self.__dict__.setdefault("kept", {})
        if reference not in kept:
            kept[reference] = await super().check_state(reference)
        return kept[reference]


class CachesVerdicts(SimulatedVerifier):
    async def check_state(self, reference: str) -> Check:
        kept: dict[str, Check] = self.__dict__.setdefault("kept", {})
        found = kept.get(reference) or await super().check_state(reference)
        if found.status is CheckStatus.VERIFIED:
            kept[reference] = found
        return found


class FindsTheNewestOfThePerson(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        self.newest = request.operation
        return await super().register(request)

    async def find_check(self, operation: str) -> Check | None:
        found = await super().find_check(operation)
        return found if found is None else await super().find_check(self.newest)


class CutsIds(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        return await super().register(msgspec.structs.replace(request, operation=request.operation[:36]))


class BeginsAnewAfterFailures(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        begun = await super().register(request)
        if begun.status is not CheckStatus.FAILED:
            return begun
        return await super().register(msgspec.structs.replace(request, operation=f"{request.operation}_again"))


class SendsPhonesWithoutPlus(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        return await super().register(msgspec.structs.replace(request, phone=request.phone.lstrip("+")))


class SendsThePhoneOfTheFirstClient(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        return await super().register(msgspec.structs.replace(request, phone="+79999999999"))


class FilesSelfiesAsAddress(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        extra = tuple(msgspec.structs.replace(each, purpose=Purpose.ADDRESS) for each in request.documents[:1])
        return await super().register(msgspec.structs.replace(request, documents=(*request.documents, *extra)))


class SendsEveryoneAsACompany(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        return await super().register(msgspec.structs.replace(request, user_type="company"))


class BeginsIncompleteChecks(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        try:
            return await super().register(request)
        except Refused:
            return Check(reference="draft", status=CheckStatus.PROCESSING)


class RefusesWithoutAReason(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        try:
            return await super().register(request)
        except Refused as refused:
            raise Refused("no") from refused


class PutsThePhoneIntoTheForm(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        begun = await super().register(request)
        return msgspec.structs.replace(begun, form_url=f"https://kyc.example/form?phone={request.phone}")


class ForgetsTheForm(SimulatedVerifier):
    async def check_state(self, reference: str) -> Check:
        return msgspec.structs.replace(await super().check_state(reference), form_url=None)


class KeepsTheFormForEver(SimulatedVerifier):
    async def check_state(self, reference: str) -> Check:
        return msgspec.structs.replace(await super().check_state(reference), form_url="https://kyc.example/form/1")


class CallsSilenceAbsence(SimulatedVerifier):
    async def find_check(self, operation: str) -> Check | None:
        try:
            return await super().find_check(operation)
        except NoAnswer:
            return None


class CallsSilenceUnreachable(SimulatedVerifier):
    async def check_state(self, reference: str) -> Check:
        try:
            return await super().check_state(reference)
        except NoAnswer as silent:
            raise Unavailable("timeout") from silent


class CallsUnreachableSilent(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        try:
            return await super().register(request)
        except OutcomeUnknown:
            raise
        except Unavailable as away:
            raise NoAnswer("away") from away


class RefusesUnknownOperations(SimulatedVerifier):
    async def find_check(self, operation: str) -> Check | None:
        found = await super().find_check(operation)
        if found is None:
            raise Refused("404")
        return found


class ReportsUnknownReferencesAsFailed(SimulatedVerifier):
    async def check_state(self, reference: str) -> Check:
        try:
            return await super().check_state(reference)
        except Refused:
            return Check(reference=reference, status=CheckStatus.FAILED)


class ShowsThePersonInFaults(SimulatedVerifier):
    async def register(self, request: CheckRequest) -> Check:
        try:
            return await super().register(request)
        except Refused as refused:
            raise Refused(f"{request.phone} is incomplete", reason="incomplete") from refused


class ChangesItsName(SimulatedVerifier):
    @property
    def name(self) -> str:
        return f"{super().name}-{len(self.__dict__.setdefault('asked', []))}-{self.asked.append(1)}"  # type: ignore[attr-defined]  # of the dict


_ONE = "one operation must be one check"
_UNKNOWN = "whose answer is lost has an unknown outcome"
_SILENT = "got no answer must be NoAnswer"

BUGS = (
    Planted(SendsNoKey, kyc.TestChecks, "test_a_repeat_is_the_same_check", _ONE),
    Planted(SendsNoKey, kyc.TestChecks, "test_repeats_at_once", _ONE),
    Planted(CallsLostAnswersRefused, kyc.TestFailures, "test_a_lost_answer", _UNKNOWN, (True,)),
    Planted(CallsLostAnswersUnavailable, kyc.TestFailures, "test_a_lost_answer", _UNKNOWN, (True,)),
    Planted(GuessesAfterLostAnswers, kyc.TestFailures, "test_a_lost_answer", _UNKNOWN, (False,)),
    Planted(CallsRefusedPeopleVerified, kyc.TestVerdicts, "test_failed_person", "that failed must be FAILED"),
    Planted(LeavesRefusedPeopleProcessing, kyc.TestVerdicts, "test_failed_person", "that failed must be FAILED"),
    Planted(LeavesRefusedPeopleProcessing, kyc.TestVerdicts, "test_verdict_that_is", "withdrew must be FAILED"),
    Planted(ReportsNoLevel, kyc.TestVerdicts, "test_verified_person", "1: the person was verified"),
    Planted(VerifiesBeforeTheVerdict, kyc.TestVerdicts, "test_each_read", "not decided must not be VERIFIED"),
    Planted(VerifiesBeforeTheVerdict, kyc.TestVerdicts, "test_outcome_of_one", "must not change another"),
    Planted(CachesStates, kyc.TestVerdicts, "test_each_read", "must report the present state"),
    Planted(CachesVerdicts, kyc.TestVerdicts, "test_verdict_that_is", "withdrew must be FAILED"),
    Planted(FindsTheNewestOfThePerson, kyc.TestChecks, "test_two_operations", "must find its own check"),
    Planted(CutsIds, kyc.TestChecks, "test_a_check_can_be_found", "found by its operation"),
    Planted(BeginsAnewAfterFailures, kyc.TestVerdicts, "test_failed_person", "must not begin another check"),
    Planted(SendsPhonesWithoutPlus, kyc.TestChecks, "test_verifier_gets_the_person", "the person's phone number"),
    Planted(
        SendsThePhoneOfTheFirstClient, kyc.TestChecks, "test_verifier_gets_the_person", "the person's phone number"
    ),
    Planted(FilesSelfiesAsAddress, kyc.TestChecks, "test_verifier_gets_the_person", "each document as what it is"),
    Planted(SendsEveryoneAsACompany, kyc.TestChecks, "test_verifier_gets_the_form", "the type of the person"),
    Planted(BeginsIncompleteChecks, kyc.TestChecks, "test_without_a_doc", "must be Refused", ("the selfie",)),
    Planted(BeginsIncompleteChecks, kyc.TestChecks, "test_without_what", "must be Refused", ("email",)),
    Planted(RefusesWithoutAReason, kyc.TestChecks, "test_without_what", "'incomplete'", ("email",)),
    Planted(PutsThePhoneIntoTheForm, kyc.TestChecks, "test_form_address", "has a person's data"),
    Planted(ForgetsTheForm, kyc.TestChecks, "test_form_can_be_opened", "at each read where the form is"),
    Planted(KeepsTheFormForEver, kyc.TestVerdicts, "test_verified_person", "must have no form"),
    Planted(CallsSilenceAbsence, kyc.TestFailures, "test_a_read_without", _SILENT),
    Planted(CallsSilenceUnreachable, kyc.TestFailures, "test_a_read_without", _SILENT),
    Planted(CallsUnreachableSilent, kyc.TestFailures, "test_a_verifier_that_is_away", "NoAnswer is for a verifier"),
    Planted(RefusesUnknownOperations, kyc.TestChecks, "test_an_operation_that_never", "found as None"),
    Planted(ReportsUnknownReferencesAsFailed, kyc.TestChecks, "test_a_reference_of_no", "must be Refused"),
    Planted(ShowsThePersonInFaults, kyc.TestWhatItSays, "test_no_credential", "a person's data shows"),
    Planted(ChangesItsName, kyc.TestWhatItSays, "test_its_name", "the name changes"),
)


async def opened(_: AsyncExitStack, adapter: type[Any] | None) -> VerifierHarness:
    return VerifierHarness(adapter or SimulatedVerifier)


@table("bug", BUGS, ids=named)
async def test_verifier_with_a_planted_bug_fails_by_its_rule(bug: Planted) -> None:
    await check_bite(bug, opened)
