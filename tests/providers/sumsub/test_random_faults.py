"""Registrations at a Sumsub that loses, spoils and refuses every third answer, carried as the engine carries them
(docs/providers/sumsub.md "How its answers are read")."""

from random import Random

import pytest

from cambist.ports.faults import NotConfigured, OutcomeUnknown, Unavailable
from cambist.ports.kyc import Check, CheckRequest, CheckStatus
from cambist.testing import ProviderFault, ProviderRequest
from tests.providers.sumsub.kit import OPERATION, SumsubBench, open_bench

FAULTS = [fault for fault in ProviderFault if fault not in (ProviderFault.ENDLESS, ProviderFault.HUGE)]
PATIENCE = 200


NOTHING_SAID = (Unavailable, NotConfigured)
"""Faults that may end a poll. A poll never ends in an unknown outcome or a refusal."""


async def carried(bench: SumsubBench, request: CheckRequest) -> Check:
    """Asked for by its operation, and sent where the verifier never saw it, until it is there."""
    verifier = bench.made()
    for _ in range(PATIENCE):
        await bench.virtual.advance(1.0)
        try:
            found = await verifier.find_check(request.operation)
            return found or await verifier.register(request)
        except (*NOTHING_SAID, OutcomeUnknown):
            continue
    raise AssertionError("it never came through")


async def looked(bench: SumsubBench, reference: str) -> Check:
    for _ in range(PATIENCE):
        await bench.virtual.advance(1.0)
        try:
            return await bench.made().check_state(reference)
        except NOTHING_SAID:
            continue
    raise AssertionError("it was never told")


def spoil(bench: SumsubBench, chance: Random) -> None:
    """Every third call meets one of the faults, until somebody says otherwise."""

    def meets(fault: ProviderFault) -> None:
        def matching(_: ProviderRequest) -> bool:
            return chance.random() < 0.3 / len(FAULTS)

        bench.fake.next(fault, matching=matching, always=True)

    for fault in FAULTS:
        meets(fault)


@pytest.mark.parametrize("redirect", [True, False], ids=["form", "documents"])
async def test_each_ends_as_one_applicant_with_one_review_and_the_right_word(redirect: bool) -> None:
    async with open_bench() as bench:
        chance = Random(f"sumsub {redirect}")
        spoil(bench, chance)
        for number in range(6):
            operation = f"{OPERATION[:-1]}{number}"
            request = bench.request(redirect=redirect, operation=operation)
            begun = await carried(bench, request)
            assert begun.status is (CheckStatus.FORM if redirect else CheckStatus.PROCESSING)
            if redirect:
                bench.fake.fill_in(operation)
            answer = chance.choice(["GREEN", "RED"])
            bench.fake.decide(operation, answer, None if answer == "GREEN" else "FINAL")
            ended = await looked(bench, begun.reference)
            assert ended.status is (CheckStatus.VERIFIED if answer == "GREEN" else CheckStatus.FAILED)
            applicant = bench.fake.world.named(operation)
            assert applicant.reviews == 1
            assert sorted(image.kind for image in applicant.images) == ["PASSPORT", "SELFIE"]
        assert len(bench.fake.world.applicants) == 6
