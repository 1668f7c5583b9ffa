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
from cambist.ports.notices import InboundNotice
from cambist.testing import ProviderAnswer, ProviderFault
from tests.providers.sumsub.fake import NOTICE_SECRET, SHA256, FakeSumsub
from tests.providers.sumsub.kit import ADDRESS, OPERATION, SumsubBench, ending, open_bench
from tests.tables import table

S, D = CheckStatus, DocumentState


@pytest.fixture
async def bench() -> AsyncIterator[SumsubBench]:
    async with open_bench() as opened:
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
def test_what_a_review_means(said: Review, flow: str, approved: bool, means: CheckStatus) -> None:
    assert status_of(said, flow, approved) is means


def test_of_a_complaint_only_what_is_no_person_s_is_told() -> None:
    assert str(Complaint(error_code=1003, error_name="empty-file", correlation_id="req-1")) == ("1003 empty-file req-1")
    assert str(Complaint(error_name="Ivan Petrov", correlation_id="+79001234567")) == "no code"


async def test_documents_are_sent_by_type_and_country_and_then_reviewed() -> None:
    async with open_bench(level="with address & more", country="KAZ", document="ID_CARD") as bench:
        begun = await bench.verifier.register(bench.request(documents=(*bench.documents, ADDRESS)))
        applicant = bench.fake.world.named(OPERATION)
        assert begun.status is S.PROCESSING
        assert begun.reference == applicant.id
        assert sorted((image.kind, image.country) for image in applicant.images) == [
            ("ID_CARD", "KAZ"),
            ("SELFIE", "KAZ"),
            ("UTILITY_BILL", "KAZ"),
        ]
        assert applicant.status == "pending"
        assert applicant.told == {"externalUserId": OPERATION, "phone": bench.phone}
        bench.fake.decide(OPERATION, "GREEN")
        done = await bench.verifier.check_state(begun.reference)
        assert (done.status, done.level, done.passport, done.address) == (S.VERIFIED, 2, D.PASSED, D.PASSED)


async def test_the_form_s_person_is_told_and_a_refusal_that_may_be_mended_leads_back_to_it(bench: SumsubBench) -> None:
    begun = await bench.verifier.register(bench.request(redirect=True))
    assert begun.form_url == "https://in.sumsub.com/websdk/p/sbx_00000001"
    assert bench.fake.world.named(OPERATION).told == {
        "externalUserId": OPERATION,
        "phone": bench.phone,
        "email": bench.email,
    }
    bench.fake.fill_in(OPERATION)
    assert (await bench.verifier.check_state(begun.reference)).status is S.PROCESSING
    bench.fake.decide(OPERATION, "RED", "RETRY", ("IDENTITY",))
    again = await bench.verifier.check_state(begun.reference)
    assert (again.status, again.form_url) == (S.FORM, begun.form_url)
    bench.fake.fill_in(OPERATION)
    bench.fake.decide(OPERATION, "RED", "FINAL", ("SELFIE",))
    done = await bench.verifier.check_state(begun.reference)
    assert (done.status, done.form_url, done.passport, done.level) == (S.FAILED, None, D.PASSED, 0)


@pytest.mark.parametrize("reject", ["RETRY", "FINAL"])
async def test_who_was_approved_and_is_refused_later_failed(bench: SumsubBench, reject: str) -> None:
    """Monitoring may turn GREEN into RED: even where Sumsub would let the person try again, nobody vouches now."""
    begun = await bench.verifier.register(bench.request(redirect=True))
    bench.fake.fill_in(OPERATION)
    bench.fake.decide(OPERATION, "GREEN")
    assert (await bench.verifier.check_state(begun.reference)).status is S.VERIFIED
    bench.fake.decide(OPERATION, "RED", reject, ("IDENTITY",))
    turned = await bench.made().check_state(begun.reference)
    assert (turned.status, turned.level, turned.passport) == (S.FAILED, 0, D.FAILED)


async def test_form_address_is_renewed_before_it_expires_and_not_at_every_poll(bench: SumsubBench) -> None:
    begun = await bench.verifier.register(bench.request(redirect=True))
    for _ in range(3):
        assert (await bench.verifier.check_state(begun.reference)).form_url == begun.form_url
    assert bench.asked("POST", "/websdkLink") == 1
    await bench.virtual.advance(FORM_TIME.total_seconds() / 2)
    renewed = await bench.verifier.check_state(begun.reference)
    assert renewed.form_url not in (None, begun.form_url)
    assert renewed.reference == begun.reference


async def test_legal_entities_need_a_level_of_their_own() -> None:
    async with open_bench() as bench:
        with pytest.raises(Refused):
            await bench.verifier.register(bench.request(redirect=True, user_type="legal_entity"))
        assert bench.fake.world.applicants == {}
    async with open_bench(company_level="basic-kyb-level") as bench:
        begun = await bench.verifier.register(bench.request(redirect=True, user_type="legal_entity"))
        assert begun.status is S.FORM
        assert bench.fake.world.named(OPERATION).level.kind == "company"


async def test_a_level_that_is_not_there_is_our_mistake_and_the_doctor_finds_it() -> None:
    async with open_bench(level="no-such-level") as bench:
        with pytest.raises(NotConfigured):
            await bench.verifier.register(bench.request())
        with pytest.raises(NotConfigured, match="no-such-level"):
            await bench.verifier.check()
    async with open_bench() as bench:
        await bench.verifier.check()


@pytest.mark.parametrize("other", [{"token": "sbx:another"}, {"secret": "another"}])
async def test_a_pair_that_is_not_taken_is_not_configured(bench: SumsubBench, other: dict[str, str]) -> None:
    wrong = bench.made(**other)
    for call in (wrong.register(bench.request()), wrong.find_check(OPERATION), wrong.check()):
        with pytest.raises(NotConfigured, match="clock"):
            await call


async def test_a_clock_that_is_a_minute_wrong_is_told_as_such(bench: SumsubBench) -> None:
    behind = bench.clock.now() - timedelta(seconds=62)
    slow = VirtualClock(behind)
    fake = FakeSumsub(bench.clock.now)
    async with fake:
        with pytest.raises(NotConfigured, match="clock"):
            await SumsubBench(fake, slow).verifier.check()


async def test_beyond_its_limits_nothing_is_done_and_it_says_for_how_long(bench: SumsubBench) -> None:
    bench.fake.most["GET"] = 3
    for _ in range(3):
        await bench.verifier.find_check(OPERATION)
    with pytest.raises(Unavailable) as busy:
        await bench.verifier.find_check(OPERATION)
    assert busy.value.retry_after == 5.0
    assert not isinstance(busy.value, NoAnswer)
    await bench.verifier.register(bench.request(redirect=True))  # writes are counted apart
    await bench.virtual.advance(5.0)
    await bench.verifier.find_check(OPERATION)


async def test_a_restored_database_finds_its_checks_again(bench: SumsubBench) -> None:
    """The notes are gone with the time since the copy: Sumsub knows the operation of every applicant."""
    begun = await bench.verifier.register(bench.request(redirect=True))
    forgetful = bench.made(storage=MemoryStorage(bench.clock))
    state = await forgetful.check_state(begun.reference)
    assert (state.status, state.reference) == (S.FORM, begun.reference)
    bench.fake.decide(OPERATION, "GREEN")
    found = await bench.made(storage=MemoryStorage(bench.clock)).find_check(OPERATION)
    assert found is not None
    assert found.status is S.VERIFIED


async def test_an_applicant_that_was_taken_away_before_it_was_decided_failed(bench: SumsubBench) -> None:
    """So the client may register anew, instead of waiting for ever."""
    begun = await bench.verifier.register(bench.request())
    bench.fake.world.named(OPERATION).deleted = True
    assert (await bench.verifier.check_state(begun.reference)).status is S.FAILED
    found = await bench.verifier.find_check(OPERATION)
    assert found is not None
    assert found.status is S.FAILED


async def test_deletion_of_an_approved_applicant_changes_nothing(bench: SumsubBench) -> None:
    begun = await bench.verifier.register(bench.request())
    bench.fake.decide(OPERATION, "GREEN")
    await bench.verifier.check_state(begun.reference)
    bench.fake.world.named(OPERATION).deleted = True
    with pytest.raises(Refused):
        await bench.verifier.check_state(begun.reference)


async def test_no_broken_answer_to_a_look_says_anything(bench: SumsubBench) -> None:
    begun = await bench.verifier.register(bench.request())
    bench.fake.decide(OPERATION, "RED", "FINAL")
    for fault in ProviderFault:
        bench.fake.next(fault, always=True)
        with pytest.raises((NoAnswer, NotConfigured, Unavailable)):
            await bench.verifier.check_state(begun.reference)
        bench.fake.recover()
    assert (await bench.verifier.check_state(begun.reference)).status is S.FAILED


@pytest.mark.parametrize("status", [401, 403])
async def test_denial_by_a_proxy_is_no_wrong_token(bench: SumsubBench, status: int) -> None:
    begun = await bench.verifier.register(bench.request())
    bench.fake.next(ProviderAnswer(status=status, body=b"<html>Access denied</html>"))
    with pytest.raises(Unavailable):
        await bench.verifier.check_state(begun.reference)
    bench.fake.next(ProviderFault.UNAUTHORIZED)
    with pytest.raises(NotConfigured):
        await bench.verifier.check_state(begun.reference)


async def test_nothing_of_the_person_is_remembered_or_told(bench: SumsubBench) -> None:
    begun = await bench.verifier.register(bench.request(redirect=True))
    told: list[str] = [repr(bench.verifier), repr(bench.http)]
    for trouble in (ProviderFault.SERVER_ERROR, ProviderFault.BROKEN_JSON):
        bench.fake.next(trouble, always=True)
        with pytest.raises(Fault) as raised:
            await bench.verifier.check_state(begun.reference)
        told += [str(raised.value), repr(raised.value)]
        bench.fake.recover()
    async with bench.storage.unit() as unit:
        told += [str(note.body) for note in await unit[ProviderNote].find(provider="sumsub")]
    for hidden in (bench.phone.lstrip("+"), bench.email, *bench.secrets):
        assert not any(hidden in text for text in told)


async def test_only_notices_of_checks_name_one(bench: SumsubBench) -> None:
    await bench.verifier.register(bench.request())
    told = (
        *("Pending", "Reviewed", "WorkflowCompleted", "WorkflowFailed", "OnHold", "AwaitingUser", "Reset"),
        *("Activated", "Deactivated", "Deleted", "PersonalDataDeleted"),
    )
    rows = [*((f"applicant{each}", True) for each in told), ("applicantCreated", False), ("videoIdentStatus", False)]
    for kind, is_told in rows:
        heard = await bench.verifier.hear(bench.fake.notice(OPERATION, kind))
        assert [notice.operation for notice in heard.notices] == ([OPERATION] if is_told else []), kind
        assert heard.status == 200, kind


async def test_a_notice_without_a_word_that_we_know_is_taken_and_means_nothing(bench: SumsubBench) -> None:
    """It bears the digest, so a repeat of it would be the same."""
    for body in (b"", b"[]", b"\xff", b'{"type": 7}', b'{"type": "applicantReviewed"}', b"[" * 100_000):
        digest = hmac.new(NOTICE_SECRET.encode(), body, "sha256").hexdigest()
        headers = {"x-payload-digest": digest, "x-payload-digest-alg": SHA256}
        heard = await bench.verifier.hear(InboundNotice(headers=headers, body=body, query={}, address="203.0.113.7"))
        assert (heard.status, list(heard.notices)) == (200, []), body[:20]


async def test_a_reset_in_the_cabinet_leads_the_person_to_a_form(bench: SumsubBench) -> None:
    """This holds even if the documents came from a merchant's page: Sumsub now wants others, from the person."""
    begun = await bench.verifier.register(bench.request())
    applicant = bench.fake.world.named(OPERATION)
    applicant.status, applicant.result, applicant.images = "init", None, []
    again = await bench.verifier.check_state(begun.reference)
    assert (again.status, again.reference) == (S.FORM, begun.reference)
    assert again.form_url is not None
    bench.fake.fill_in(OPERATION)
    bench.fake.decide(OPERATION, "GREEN")
    assert (await bench.verifier.check_state(begun.reference)).status is S.VERIFIED


async def test_who_was_approved_stays_so_through_a_new_review(bench: SumsubBench) -> None:
    """A monitoring, or a person in the cabinet, looks again: until that is decided GREEN stands."""
    begun = await bench.verifier.register(bench.request())
    bench.fake.decide(OPERATION, "GREEN")
    assert (await bench.verifier.check_state(begun.reference)).status is S.VERIFIED
    applicant = bench.fake.world.named(OPERATION)
    for status in ("pending", "queued", "onHold"):
        applicant.status = status
        assert (await bench.verifier.check_state(begun.reference)).status is S.PROCESSING, status


async def test_one_that_is_taken_away_and_brought_back_counts_as_it_is_decided(bench: SumsubBench) -> None:
    begun = await bench.verifier.register(bench.request())
    applicant = bench.fake.world.named(OPERATION)
    applicant.deleted = True
    assert (await bench.verifier.check_state(begun.reference)).status is S.FAILED
    applicant.deleted = False
    bench.fake.decide(OPERATION, "GREEN")
    assert (await bench.verifier.check_state(begun.reference)).status is S.VERIFIED


async def test_steps_that_are_half_told_vouch_for_no_address(bench: SumsubBench) -> None:
    begun = await bench.verifier.register(bench.request())
    bench.fake.decide(OPERATION, "GREEN")
    half: list[dict[str, Any]] = [{}, {"IDENTITY": None}, {"PROOF_OF_RESIDENCE": {"reviewResult": {}}}]
    for said in half:
        bench.fake.next(ProviderAnswer.of_json(said), matching=ending("/requiredIdDocsStatus"))
        state = await bench.verifier.check_state(begun.reference)
        assert (state.status, state.level, state.address) == (S.VERIFIED, 1, None), said


async def test_only_the_sandbox_can_be_told_what_to_find() -> None:
    async with open_bench(token="prd:token.of-tests") as bench:
        assert not bench.made(token="prd:token.of-tests").is_sandbox
        assert bench.verifier.is_sandbox
