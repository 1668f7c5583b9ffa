"""Sumsub's behaviour beyond the contract of every verifier (docs/providers/sumsub.md)."""

import hmac
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from cambist.adapters.clock import VirtualClock
from cambist.adapters.kyc.sumsub.verifier import FORM_TIME
from cambist.adapters.kyc.sumsub.wire import Complaint, Result, Review, status_of
from cambist.adapters.storage.memory.memory import MemoryStorage
from cambist.ports.faults import Fault, NotConfigured, Refused, Unavailable
from cambist.ports.kyc import CheckStatus, DocumentState, NoAnswer
from cambist.ports.notes import ProviderNote
from cambist.ports.notifications import InboundNotification
from cambist.testing import ProviderAnswer, ProviderFault
from tests.providers.sumsub.fake import NOTIFICATION_SECRET, SHA256, FakeSumsub
from tests.providers.sumsub.kit import ADDRESS, OPERATION, SumsubHarness, ending, open_harness
from tests.tables import table

S, D = CheckStatus, DocumentState


@pytest.fixture
async def harness() -> AsyncIterator[SumsubHarness]:
    async with open_harness() as opened:
        yield opened


def review(status: str, answer: str | None = None, reject: str | None = None) -> Review:
    result = None if answer is None else Result(review_answer=answer, review_reject_type=reject)
    return Review(review_status=status, review_result=result)


@table(
    ("said", "flow", "approved", "means"),
    [
        (review("init"), "form", False, S.FORM),
        (review("awaitingUser"), "documents", False, S.FORM),
        (review("pending"), "form", False, S.PROCESSING),
        (review("prechecked"), "documents", False, S.PROCESSING),
        (review("queued"), "documents", False, S.PROCESSING),
        (review("onHold", "RED", "RETRY"), "form", False, S.PROCESSING),
        (review("awaitingService"), "form", False, S.PROCESSING),
        (review("a status of next year"), "form", False, S.PROCESSING),
        (review("completed"), "form", False, S.PROCESSING),
        (review("completed", "YELLOW"), "form", False, S.PROCESSING),
        (review("completed", "GREEN"), "form", False, S.VERIFIED),
        (review("completed", "GREEN"), "documents", True, S.VERIFIED),
        (review("completed", "RED", "RETRY"), "form", False, S.FORM),
        (review("completed", "RED", "RETRY"), "documents", False, S.FAILED),
        (review("completed", "RED", "RETRY"), "form", True, S.FAILED),
        (review("completed", "RED", "FINAL"), "form", False, S.FAILED),
        (review("completed", "RED", None), "form", False, S.FAILED),
    ],
)
def test_review_results_map_to_statuses(said: Review, flow: str, approved: bool, means: CheckStatus) -> None:
    assert status_of(said, flow, approved) is means


def test_error_text_omits_personal_data() -> None:
    assert str(Complaint(error_code=1003, error_name="empty-file", correlation_id="req-1")) == ("1003 empty-file req-1")
    assert str(Complaint(error_name="Ivan Petrov", correlation_id="+79001234567")) == "no code"


async def test_documents_are_sent_by_type_and_country_and_then_reviewed() -> None:
    async with open_harness(level="with address & more", country="KAZ", document="ID_CARD") as harness:
        begun = await harness.verifier.register(harness.request(documents=(*harness.documents, ADDRESS)))
        applicant = harness.fake.world.named(OPERATION)
        assert begun.status is S.PROCESSING
        assert begun.reference == applicant.id
        assert sorted((image.kind, image.country) for image in applicant.images) == [
            ("ID_CARD", "KAZ"),
            ("SELFIE", "KAZ"),
            ("UTILITY_BILL", "KAZ"),
        ]
        assert applicant.status == "pending"
        assert applicant.told == {"externalUserId": OPERATION, "phone": harness.phone}
        harness.fake.decide(OPERATION, "GREEN")
        done = await harness.verifier.check_state(begun.reference)
        assert (done.status, done.level, done.passport, done.address) == (S.VERIFIED, 2, D.PASSED, D.PASSED)


async def test_form_knows_the_person_and_a_fixable_refusal_leads_back_to_it(
    harness: SumsubHarness,
) -> None:
    begun = await harness.verifier.register(harness.request(redirect=True))
    assert begun.form_url == "https://in.sumsub.com/websdk/p/sbx_00000001"
    assert harness.fake.world.named(OPERATION).told == {
        "externalUserId": OPERATION,
        "phone": harness.phone,
        "email": harness.email,
    }
    harness.fake.fill_in(OPERATION)
    assert (await harness.verifier.check_state(begun.reference)).status is S.PROCESSING
    harness.fake.decide(OPERATION, "RED", "RETRY", ("IDENTITY",))
    again = await harness.verifier.check_state(begun.reference)
    assert (again.status, again.form_url) == (S.FORM, begun.form_url)
    harness.fake.fill_in(OPERATION)
    harness.fake.decide(OPERATION, "RED", "FINAL", ("SELFIE",))
    done = await harness.verifier.check_state(begun.reference)
    assert (done.status, done.form_url, done.passport, done.level) == (S.FAILED, None, D.PASSED, 0)


@pytest.mark.parametrize("reject", ["RETRY", "FINAL"])
async def test_approved_person_who_is_refused_later_fails(harness: SumsubHarness, reject: str) -> None:
    """Monitoring may turn GREEN into RED: even where Sumsub would let the person try again, nobody vouches now."""
    begun = await harness.verifier.register(harness.request(redirect=True))
    harness.fake.fill_in(OPERATION)
    harness.fake.decide(OPERATION, "GREEN")
    assert (await harness.verifier.check_state(begun.reference)).status is S.VERIFIED
    harness.fake.decide(OPERATION, "RED", reject, ("IDENTITY",))
    turned = await harness.made().check_state(begun.reference)
    assert (turned.status, turned.level, turned.passport) == (S.FAILED, 0, D.FAILED)


async def test_form_address_is_renewed_before_it_expires_and_not_at_every_poll(harness: SumsubHarness) -> None:
    begun = await harness.verifier.register(harness.request(redirect=True))
    for _ in range(3):
        assert (await harness.verifier.check_state(begun.reference)).form_url == begun.form_url
    assert harness.count("POST", "/websdkLink") == 1
    await harness.virtual.advance(FORM_TIME.total_seconds() / 2)
    renewed = await harness.verifier.check_state(begun.reference)
    assert renewed.form_url not in (None, begun.form_url)
    assert renewed.reference == begun.reference


async def test_legal_entities_need_a_level_of_their_own() -> None:
    async with open_harness() as harness:
        with pytest.raises(Refused):
            await harness.verifier.register(harness.request(redirect=True, user_type="legal_entity"))
        assert harness.fake.world.applicants == {}
    async with open_harness(company_level="basic-kyb-level") as harness:
        begun = await harness.verifier.register(harness.request(redirect=True, user_type="legal_entity"))
        assert begun.status is S.FORM
        assert harness.fake.world.named(OPERATION).level.kind == "company"


async def test_a_level_that_is_not_there_is_our_mistake_and_the_doctor_finds_it() -> None:
    async with open_harness(level="no-such-level") as harness:
        with pytest.raises(NotConfigured):
            await harness.verifier.register(harness.request())
        with pytest.raises(NotConfigured, match="no-such-level"):
            await harness.verifier.check()
    async with open_harness() as harness:
        await harness.verifier.check()


@pytest.mark.parametrize("other", [{"token": "sbx:another"}, {"secret": "another"}])
async def test_a_pair_that_is_not_taken_is_not_configured(harness: SumsubHarness, other: dict[str, str]) -> None:
    wrong = harness.made(**other)
    for call in (wrong.register(harness.request()), wrong.find_check(OPERATION), wrong.check()):
        with pytest.raises(NotConfigured, match="clock"):
            await call


async def test_clock_a_minute_off_is_reported_as_such(harness: SumsubHarness) -> None:
    behind = harness.clock.now() - timedelta(seconds=62)
    slow = VirtualClock(behind)
    fake = FakeSumsub(harness.clock.now)
    async with fake:
        with pytest.raises(NotConfigured, match="clock"):
            await SumsubHarness(fake, slow).verifier.check()


async def test_beyond_its_limits_nothing_is_done_and_it_says_for_how_long(harness: SumsubHarness) -> None:
    harness.fake.most["GET"] = 3
    for _ in range(3):
        await harness.verifier.find_check(OPERATION)
    with pytest.raises(Unavailable) as busy:
        await harness.verifier.find_check(OPERATION)
    assert busy.value.retry_after == 5.0
    assert not isinstance(busy.value, NoAnswer)
    await harness.verifier.register(harness.request(redirect=True))  # writes are counted apart
    await harness.virtual.advance(5.0)
    await harness.verifier.find_check(OPERATION)


async def test_a_restored_database_finds_its_checks_again(harness: SumsubHarness) -> None:
    """The notes are gone with the time since the copy: Sumsub knows the operation of every applicant."""
    begun = await harness.verifier.register(harness.request(redirect=True))
    forgetful = harness.made(storage=MemoryStorage(harness.clock))
    state = await forgetful.check_state(begun.reference)
    assert (state.status, state.reference) == (S.FORM, begun.reference)
    harness.fake.decide(OPERATION, "GREEN")
    found = await harness.made(storage=MemoryStorage(harness.clock)).find_check(OPERATION)
    assert found is not None
    assert found.status is S.VERIFIED


async def test_an_applicant_that_was_taken_away_before_it_was_decided_failed(harness: SumsubHarness) -> None:
    """So the client may register again, instead of waiting for ever."""
    begun = await harness.verifier.register(harness.request())
    harness.fake.world.named(OPERATION).deleted = True
    assert (await harness.verifier.check_state(begun.reference)).status is S.FAILED
    found = await harness.verifier.find_check(OPERATION)
    assert found is not None
    assert found.status is S.FAILED


async def test_deletion_of_an_approved_applicant_changes_nothing(harness: SumsubHarness) -> None:
    begun = await harness.verifier.register(harness.request())
    harness.fake.decide(OPERATION, "GREEN")
    await harness.verifier.check_state(begun.reference)
    harness.fake.world.named(OPERATION).deleted = True
    with pytest.raises(Refused):
        await harness.verifier.check_state(begun.reference)


async def test_no_broken_answer_to_a_look_says_anything(harness: SumsubHarness) -> None:
    begun = await harness.verifier.register(harness.request())
    harness.fake.decide(OPERATION, "RED", "FINAL")
    for fault in ProviderFault:
        harness.fake.next(fault, always=True)
        with pytest.raises((NoAnswer, NotConfigured, Unavailable)):
            await harness.verifier.check_state(begun.reference)
        harness.fake.recover()
    assert (await harness.verifier.check_state(begun.reference)).status is S.FAILED


@pytest.mark.parametrize("status", [401, 403])
async def test_denial_by_a_proxy_is_no_wrong_token(harness: SumsubHarness, status: int) -> None:
    begun = await harness.verifier.register(harness.request())
    harness.fake.next(ProviderAnswer(status=status, body=b"<html>Access denied</html>"))
    with pytest.raises(Unavailable):
        await harness.verifier.check_state(begun.reference)
    harness.fake.next(ProviderFault.UNAUTHORIZED)
    with pytest.raises(NotConfigured):
        await harness.verifier.check_state(begun.reference)


async def test_personal_data_is_neither_stored_nor_shown(harness: SumsubHarness) -> None:
    begun = await harness.verifier.register(harness.request(redirect=True))
    told: list[str] = [repr(harness.verifier), repr(harness.http)]
    for problem in (ProviderFault.SERVER_ERROR, ProviderFault.BROKEN_JSON):
        harness.fake.next(problem, always=True)
        with pytest.raises(Fault) as raised:
            await harness.verifier.check_state(begun.reference)
        told += [str(raised.value), repr(raised.value)]
        harness.fake.recover()
    async with harness.storage.unit() as unit:
        told += [str(note.body) for note in await unit[ProviderNote].find(provider="sumsub")]
    for hidden in (harness.phone.lstrip("+"), harness.email, *harness.secrets):
        assert not any(hidden in text for text in told)


async def test_only_notifications_of_checks_name_one(harness: SumsubHarness) -> None:
    await harness.verifier.register(harness.request())
    told = (
        *("Pending", "Reviewed", "WorkflowCompleted", "WorkflowFailed", "OnHold", "AwaitingUser", "Reset"),
        *("Activated", "Deactivated", "Deleted", "PersonalDataDeleted"),
    )
    rows = [*((f"applicant{each}", True) for each in told), ("applicantCreated", False), ("videoIdentStatus", False)]
    for kind, is_told in rows:
        heard = await harness.verifier.receive(harness.fake.notification(OPERATION, kind))
        assert [notification.operation for notification in heard.notifications] == ([OPERATION] if is_told else []), (
            kind
        )
        assert heard.status == 200, kind


async def test_unknown_notification_is_accepted_and_means_nothing(harness: SumsubHarness) -> None:
    """It bears the digest, so a repeat of it would be the same."""
    for body in (b"", b"[]", b"\xff", b'{"type": 7}', b'{"type": "applicantReviewed"}', b"[" * 100_000):
        digest = hmac.new(NOTIFICATION_SECRET.encode(), body, "sha256").hexdigest()
        headers = {"x-payload-digest": digest, "x-payload-digest-alg": SHA256}
        heard = await harness.verifier.receive(
            InboundNotification(headers=headers, body=body, query={}, address="203.0.113.7")
        )
        assert (heard.status, list(heard.notifications)) == (200, []), body[:20]


async def test_a_reset_in_the_cabinet_leads_the_person_to_a_form(harness: SumsubHarness) -> None:
    """This holds even if the documents came from a merchant's page: Sumsub now wants others, from the person."""
    begun = await harness.verifier.register(harness.request())
    applicant = harness.fake.world.named(OPERATION)
    applicant.status, applicant.result, applicant.images = "init", None, []
    again = await harness.verifier.check_state(begun.reference)
    assert (again.status, again.reference) == (S.FORM, begun.reference)
    assert again.form_url is not None
    harness.fake.fill_in(OPERATION)
    harness.fake.decide(OPERATION, "GREEN")
    assert (await harness.verifier.check_state(begun.reference)).status is S.VERIFIED


async def test_approved_person_stays_so_through_a_new_review(harness: SumsubHarness) -> None:
    """Monitoring, or a person at Sumsub, reviews again: until the decision, GREEN remains."""
    begun = await harness.verifier.register(harness.request())
    harness.fake.decide(OPERATION, "GREEN")
    assert (await harness.verifier.check_state(begun.reference)).status is S.VERIFIED
    applicant = harness.fake.world.named(OPERATION)
    for status in ("pending", "queued", "onHold"):
        applicant.status = status
        assert (await harness.verifier.check_state(begun.reference)).status is S.PROCESSING, status


async def test_deleted_and_restored_applicant_counts_as_decided(harness: SumsubHarness) -> None:
    begun = await harness.verifier.register(harness.request())
    applicant = harness.fake.world.named(OPERATION)
    applicant.deleted = True
    assert (await harness.verifier.check_state(begun.reference)).status is S.FAILED
    applicant.deleted = False
    harness.fake.decide(OPERATION, "GREEN")
    assert (await harness.verifier.check_state(begun.reference)).status is S.VERIFIED


async def test_incomplete_steps_vouch_for_no_address(harness: SumsubHarness) -> None:
    begun = await harness.verifier.register(harness.request())
    harness.fake.decide(OPERATION, "GREEN")
    half: list[dict[str, Any]] = [{}, {"IDENTITY": None}, {"PROOF_OF_RESIDENCE": {"reviewResult": {}}}]
    for said in half:
        harness.fake.next(ProviderAnswer.of_json(said), matching=ending("/requiredIdDocsStatus"))
        state = await harness.verifier.check_state(begun.reference)
        assert (state.status, state.level, state.address) == (S.VERIFIED, 1, None), said


async def test_only_the_sandbox_can_be_simulated() -> None:
    async with open_harness(token="prd:token.of-tests") as harness:
        assert not harness.made(token="prd:token.of-tests").is_sandbox
        assert harness.verifier.is_sandbox
