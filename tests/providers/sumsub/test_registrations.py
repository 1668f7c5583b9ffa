"""Registrations of several calls: a call is lost or refused, its object exists already, or another process did it at
the same time (docs/providers/sumsub.md "How a check goes")."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from cambist.ports.faults import OutcomeUnknown, Refused, Unavailable
from cambist.ports.kyc import CheckStatus
from cambist.testing import ProviderAnswer, ProviderFault, ProviderRequest
from tests.providers.sumsub.kit import ADDRESS, OPERATION, SumsubHarness, ending, open_harness

S = CheckStatus


@pytest.fixture
async def harness() -> AsyncIterator[SumsubHarness]:
    async with open_harness() as opened:
        yield opened


FORM_CALLS = ("/applicants", "/websdkLink")
DOCUMENT_CALLS = ("/applicants", "/idDoc", "/idDoc", "/status/pending")
LOSSES = [
    (calls, lost, done)
    for calls in (FORM_CALLS, DOCUMENT_CALLS)
    for lost in range(len(calls))
    for done in (True, False)
]


@pytest.mark.parametrize(("calls", "lost", "done"), LOSSES, ids=lambda value: str(value))
async def test_whichever_answer_is_lost_a_repeat_goes_on_where_it_stopped(
    harness: SumsubHarness, calls: tuple[str, ...], lost: int, done: bool
) -> None:
    """One applicant, one image of each document, one review."""
    redirect = calls is FORM_CALLS
    held = [0]

    def matching(request: object) -> bool:
        if not getattr(request, "path", "").endswith(calls[lost]):
            return False
        held[0] += 1
        return held[0] == calls[: lost + 1].count(calls[lost])

    harness.fake.next(ProviderFault.LOST_AFTER if done else ProviderFault.LOST_BEFORE, matching=matching)
    request = harness.request(redirect=redirect)
    with pytest.raises(OutcomeUnknown):
        await harness.verifier.register(request)
    other = harness.made()
    found = await other.find_check(OPERATION)
    has_begun = done and not redirect and lost == 3
    assert (found is not None) is (has_begun or (redirect and lost == 1)), "else the rest would never be handed in"
    again = await other.register(request)
    assert again.status is (S.FORM if redirect else S.PROCESSING)
    [applicant] = harness.fake.world.applicants.values()
    assert sorted(image.kind for image in applicant.images) == ([] if redirect else ["PASSPORT", "SELFIE"])
    assert applicant.reviews == (0 if redirect else 1)


@pytest.mark.parametrize("call", ["/applicants", "/idDoc", "/status/pending"])
async def test_a_page_of_a_proxy_s_is_no_word_of_sumsub_s(harness: SumsubHarness, call: str) -> None:
    harness.fake.next(ProviderFault.HTML, matching=ending(call), done=False)
    with pytest.raises(OutcomeUnknown):
        await harness.verifier.register(harness.request())
    assert await harness.verifier.find_check(OPERATION) is None
    assert (await harness.verifier.register(harness.request())).status is S.PROCESSING


async def test_document_that_sumsub_rejects_is_refused_and_begins_nothing(harness: SumsubHarness) -> None:
    harness.files.content["selfie"] = b"no picture"
    with pytest.raises(Refused, match="1004 corrupted-file") as refused:
        await harness.verifier.register(harness.request())
    assert refused.value.reason == "incomplete"
    assert await harness.verifier.find_check(OPERATION) is None


async def test_a_proof_of_address_that_the_level_does_not_ask_for_is_left_out(harness: SumsubHarness) -> None:
    """Merchants' pages offer the document to every client, but the operator chooses the level."""
    begun = await harness.verifier.register(harness.request(documents=(ADDRESS, *harness.documents)))
    assert begun.status is S.PROCESSING
    assert [image.kind for image in harness.fake.world.named(OPERATION).images] == ["SELFIE", "PASSPORT"]


async def test_a_document_of_a_type_that_the_level_does_not_take_is_refused() -> None:
    async with open_harness(document="RESIDENCE_PERMIT") as harness:
        with pytest.raises(Refused):
            await harness.verifier.register(harness.request())


async def test_one_photo_for_both_documents_is_not_enough(harness: SumsubHarness) -> None:
    """Sumsub takes the second for the first, sent again; so does the adapter, and then a step is missing."""
    harness.files.content["document"] = harness.files.content["selfie"]
    with pytest.raises(Refused) as refused:
        await harness.verifier.register(harness.request())
    assert refused.value.reason == "incomplete"


async def test_an_image_that_is_there_and_not_listed_yet_counts_as_handed_in(harness: SumsubHarness) -> None:
    harness.fake.next(ProviderFault.LOST_AFTER, matching=ending("/idDoc"))
    with pytest.raises(OutcomeUnknown):
        await harness.verifier.register(harness.request())
    harness.fake.next(
        ProviderAnswer.of_json({"IDENTITY": None, "SELFIE": None}), matching=ending("/requiredIdDocsStatus")
    )
    assert (await harness.verifier.register(harness.request())).status is S.PROCESSING
    assert len(harness.fake.world.named(OPERATION).images) == 2


async def test_a_file_that_is_gone_is_refused(harness: SumsubHarness) -> None:
    del harness.files.content["document"]
    with pytest.raises(Refused) as refused:
        await harness.verifier.register(harness.request())
    assert refused.value.reason == "incomplete"


async def test_second_of_two_simultaneous_registrations_is_not_refused(harness: SumsubHarness) -> None:
    """The first registration was reviewed in the meantime, so Sumsub accepts no more images for it."""
    held = harness.fake.hold_next(matching=ending("/idDoc"), done=False)
    second = harness.made()
    slow = asyncio.create_task(harness.verifier.register(harness.request()))
    await held.arrived()
    fast = await second.register(harness.request())
    await held.release()
    assert await slow == fast
    assert fast.status is S.PROCESSING


async def test_an_applicant_that_is_there_and_not_found_yet_is_asked_for_again(harness: SumsubHarness) -> None:
    """409 by its external id, and a search that has not seen it: nothing is known, and nothing new begins."""
    harness.fake.next(ProviderFault.LOST_AFTER, matching=ending("/applicants"))
    with pytest.raises(OutcomeUnknown):
        await harness.verifier.register(harness.request())
    harness.fake.next(ProviderAnswer.of_json({"code": 404}, 404), matching=ending("/one"))
    with pytest.raises(OutcomeUnknown, match="not found yet"):
        await harness.verifier.register(harness.request())
    assert (await harness.verifier.register(harness.request())).status is S.PROCESSING
    assert len(harness.fake.world.applicants) == 1


async def test_a_limit_before_the_applicant_is_made_began_nothing_for_certain(harness: SumsubHarness) -> None:
    harness.fake.next(ProviderFault.BUSY, matching=ending("/applicants"), retry_after=7)
    with pytest.raises(Unavailable) as busy:
        await harness.verifier.register(harness.request())
    assert busy.value.retry_after == 7
    assert harness.fake.world.applicants == {}


@pytest.mark.parametrize("call", ["/idDoc", "/status/pending"])
async def test_deletion_of_an_applicant_fails_the_upload_under_way(harness: SumsubHarness, call: str) -> None:
    """Somebody deletes the applicant in the cabinet. The repeated call finds it gone, so the client registers anew."""

    def gone(request: ProviderRequest) -> bool:
        if not request.path.endswith(call):
            return False
        harness.fake.world.named(OPERATION).deleted = True
        return True

    harness.fake.next(ProviderFault.LOST_BEFORE, matching=gone)
    with pytest.raises(OutcomeUnknown):
        await harness.verifier.register(harness.request())
    assert (await harness.verifier.register(harness.request())).status is S.FAILED
    found = await harness.verifier.find_check(OPERATION)
    assert found is not None
    assert found.status is S.FAILED


async def test_a_limit_in_the_middle_of_a_registration_is_repeated_from_there(harness: SumsubHarness) -> None:
    harness.fake.next(ProviderFault.BUSY, matching=ending("/idDoc"), retry_after=7)
    with pytest.raises(OutcomeUnknown):
        await harness.verifier.register(harness.request())
    assert (await harness.verifier.register(harness.request())).status is S.PROCESSING
    assert len(harness.fake.world.named(OPERATION).images) == 2
