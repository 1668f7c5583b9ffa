"""Registrations at a Sumsub that loses, spoils and refuses every third answer, carried as the engine carries them
(docs/providers/sumsub.md "How its answers are read")."""

from random import Random

from cambist.ports.faults import NotConfigured, OutcomeUnknown, Unavailable
from cambist.ports.kyc import Check, CheckRequest, CheckStatus
from cambist.testing import ProviderFault, ProviderRequest
from tests.providers.sumsub.kit import OPERATION, SumsubHarness, open_harness
from tests.tables import table

FAULTS = [fault for fault in ProviderFault if fault not in (ProviderFault.ENDLESS, ProviderFault.HUGE)]
PATIENCE = 200


NOTHING_SAID = (Unavailable, NotConfigured)
"""Faults that may end a poll. A poll never ends in an unknown outcome or a refusal."""


async def carried(harness: SumsubHarness, request: CheckRequest) -> Check:
    """Query the operation, and send it if the verifier never saw it, until it exists."""
    verifier = harness.made()
    for _ in range(PATIENCE):
        await harness.virtual.advance(1.0)
        try:
            found = await verifier.find_check(request.operation)
            return found or await verifier.register(request)
        except (*NOTHING_SAID, OutcomeUnknown):
            continue
    raise AssertionError("it never came through")


async def looked(harness: SumsubHarness, reference: str) -> Check:
    for _ in range(PATIENCE):
        await harness.virtual.advance(1.0)
        try:
            return await harness.made().check_state(reference)
        except NOTHING_SAID:
            continue
    raise AssertionError("it was never told")


def spoil(harness: SumsubHarness, chance: Random) -> None:
    """Let every third call fail, until this is switched off."""

    def meets(fault: ProviderFault) -> None:
        def matching(_: ProviderRequest) -> bool:
            return chance.random() < 0.3 / len(FAULTS)

        harness.fake.next(fault, matching=matching, always=True)

    for fault in FAULTS:
        meets(fault)


@table("redirect", [True, False], ids=["form", "documents"])
async def test_each_ends_as_one_applicant_with_one_review_and_the_right_word(redirect: bool) -> None:
    async with open_harness() as harness:
        chance = Random(f"sumsub {redirect}")
        spoil(harness, chance)
        for number in range(6):
            operation = f"{OPERATION[:-1]}{number}"
            request = harness.request(redirect=redirect, operation=operation)
            begun = await carried(harness, request)
            assert begun.status is (CheckStatus.FORM if redirect else CheckStatus.PROCESSING)
            if redirect:
                harness.fake.fill_in(operation)
            answer = chance.choice(["GREEN", "RED"])
            harness.fake.decide(operation, answer, None if answer == "GREEN" else "FINAL")
            ended = await looked(harness, begun.reference)
            assert ended.status is (CheckStatus.VERIFIED if answer == "GREEN" else CheckStatus.FAILED)
            applicant = harness.fake.world.named(operation)
            assert applicant.reviews == 1
            assert sorted(image.kind for image in applicant.images) == ["PASSPORT", "SELFIE"]
        assert len(harness.fake.world.applicants) == 6
