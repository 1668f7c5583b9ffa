"""Slips over proofs of delivery, and over test clocks."""

from tests.simulation.mutants.slips import Slip, domain, usecase

PROOFS: dict[str, Slip] = {
    "one transfer proves several payments": usecase(
        "payments/proof_checks",
        "    if proof.claim is None:\n"
        "        return rejected(proof, RejectionReason.ALREADY_USED, ports.clock.now())\n",
        "",
    ),
    "a transaction in a block proves nothing": domain(
        "payments/proof_checks",
        "    if look.seen in (Seen.MISSING, Seen.IN_BLOCK):\n",
        "    if look.seen is Seen.MISSING:\n",
    ),
    "a chain that is away disproves": usecase(
        "payments/proof_checks",
        "        return without_answer(proof, ports.clock.now())\n",
        "        return rejected(proof, RejectionReason.INVALID, ports.clock.now())\n",
    ),
    "a confirmed proof is reminded of all the same": domain(
        "payments/proof_reminders",
        "payment.status in PROVABLE and (proof is None or proof.status is ProofStatus.REJECTED)",
        "payment.status in PROVABLE",
    ),
}

CLOCKS: dict[str, Slip] = {
    "live mode lives by the test clock": usecase(
        "common/account_time",
        "    if mode is not TEST:\n        return None\n    clock = account.clock\n",
        "    clock = account.clock\n",
    ),
    "an advance begins at its end": usecase(
        "sandbox/clock",
        "            clock = moved(clock, real, moment_of(job))\n",
        "            clock = moved(clock, real, clock.target or moment_of(job))\n",
    ),
    "jobs left after an advance are due as before": usecase(
        "sandbox/clock_dues",
        "            unit[Job].save(msgspec.structs.replace(job, due=job.moment - clock.ahead))\n",
        "            unit[Job].save(msgspec.structs.replace(job, due=job.due))\n",
    ),
    "the later of two advances at once replaces the first": usecase(
        "sandbox/clock",
        "        if clock.target is not None:\n            raise Refusal(",
        "        if not target:\n            raise Refusal(",
    ),
    "an advance whose process died is never resumed": usecase("sandbox/clock", "LEASE = 8.0\n", "LEASE = 86_400.0\n"),
}
