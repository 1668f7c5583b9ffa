"""Mutants: small wrong changes of the code, each of which a test must notice (`nox -s mutants`).

They change comparisons of moments: `<` for `<=` is a microsecond, and one payment in the wrong day's settlement. Each
runs in a copy of the tree against the boundary tests alone, so that no other test notices it by chance. A mutant that
survives is a gap in the tests. `python -m tests.mutants SUBSTRING…` runs the mutants whose file or code contains the
substring.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOTICED_BY = ("tests/domain/test_boundaries.py", "tests/usecases/jobs/test_boundaries.py")
_LEFT_OUT = (".git", ".venv", ".nox", "__pycache__", "*_cache", "node_modules", "cambist-data", "*.db")


@dataclass(frozen=True)
class Mutant:
    """`right`, which is in `file` once, becomes `wrong`."""

    file: str
    right: str
    wrong: str

    @property
    def name(self) -> str:
        return f"{self.file}: {self.right} -> {self.wrong}"

    def applied(self, root: Path) -> str:
        """The file's text with it. Raises: ValueError where the code is another one by now."""
        text = (root / self.file).read_text("utf-8")
        if text.count(self.right) != 1:
            raise ValueError(
                f"{self.file} has {self.right!r} {text.count(self.right)} times: bring tests/mutants.py up"
            )
        return text.replace(self.right, self.wrong)


def _domain(room: str, right: str, wrong: str) -> Mutant:
    return Mutant(f"core/domain/{room}.py", right, wrong)


def _usecase(room: str, right: str, wrong: str) -> Mutant:
    return Mutant(f"core/usecases/{room}.py", right, wrong)


MUTANTS = (
    _usecase("settlement/run", "paid_at=Below(cutoff)", "paid_at=Below(cutoff.replace(microsecond=1))"),
    _usecase("operators/settlement", "paid_at=Below(cutoff)", "paid_at=Below(cutoff.replace(microsecond=1))"),
    _domain("settlement/settlement", "at if at <= now", "at if at < now"),
    _domain("payer/window", "now < payment.closed_at + MINUTE", "now <= payment.closed_at + MINUTE"),
    _domain("payer/window", "now < payment.created_at + LATE_WINDOW", "now <= payment.created_at + LATE_WINDOW"),
    _domain("payer/window", "now >= payment.expires_at", "now > payment.expires_at"),
    _domain(
        "payments/reports",
        "payment.status in WAITING and now >= payment",
        "payment.status in WAITING and now > payment",
    ),
    _domain("payments/reports", "now > payment.created_at + LATE_WINDOW", "now >= payment.created_at + LATE_WINDOW"),
    _domain("payments/reports", "arrival.at <= max(", "arrival.at < max("),
    _domain("settlement/rates", "<= now - quote.at <=", "< now - quote.at <="),
    _domain("settlement/rates", "now - quote.at <= AGE_MAX", "now - quote.at < AGE_MAX"),
    _domain("settlement/rates", "-SKEW <= now - moment <", "-SKEW < now - moment <"),
    _domain("settlement/rates", "now - moment < limit", "now - moment <= limit"),
    _domain("settlement/rates", "now - candidate.since >= RIPE", "now - candidate.since > RIPE"),
    _domain("payments/proof_reminders", "paid_at + pause <= now", "paid_at + pause < now"),
    _domain("payer/binding_window", "now >= ends_at", "now > ends_at"),
    _domain(
        "payer/binding_window",
        "(_P.PENDING, _P.PROCESSING) and now < payment.expires_at",
        "(_P.PENDING, _P.PROCESSING) and now <= payment.expires_at",
    ),
    _domain("payer/binding_window", "now < closed_at + MINUTE", "now <= closed_at + MINUTE"),
    _domain(
        "subscriptions/moves",
        "ends_at = binding_ends_at(subscription)\n    if ends_at is None or now < ends_at",
        "ends_at = binding_ends_at(subscription)\n    if ends_at is None or now <= ends_at",
    ),
    _domain(
        "subscriptions/moves",
        "ends_at = pause_ends_at(subscription)\n    if ends_at is None or now < ends_at",
        "ends_at = pause_ends_at(subscription)\n    if ends_at is None or now <= ends_at",
    ),
    _domain("subscriptions/charge_reports", "now >= subscription.updated_at", "now > subscription.updated_at"),
    _domain(
        "subscriptions/charge_reports",
        "now < payment.created_at + SEND_LONGEST",
        "now <= payment.created_at + SEND_LONGEST",
    ),
    _domain("subscriptions/charge_reports", "now >= payment.created_at + SEND", "now > payment.created_at + SEND"),
    _domain("subscriptions/charge_decisions", "due_at is None or now < due_at", "due_at is None or now <= due_at"),
    _domain(
        "subscriptions/periods", "(day - origin) // _length(terms)", "(day - origin - timedelta(1)) // _length(terms)"
    ),
    _domain("subscriptions/periods", "_opening(terms, anchor, number) > day", "_opening(terms, anchor, number) >= day"),
    _domain("subscriptions/periods", "moment.astimezone(MOSCOW).date()", "moment.astimezone(UTC).date()"),
    _domain("subscriptions/periods", "day = now.astimezone(UTC).date()", "day = now.astimezone(MOSCOW).date()"),
    _domain("exchanges/funds", "for each in fresh if each.at < exchange", "for each in fresh if each.at <= exchange"),
    _domain("exchanges/funds", "< asked and now >= exchange", "< asked and now > exchange"),
    _domain("exchanges/funds", "now < exchange.expires_at + F", "now <= exchange.expires_at + F"),
    _domain("webhooks/signing", "timestamp < now - tolerance", "timestamp <= now - tolerance"),
    _domain("webhooks/signing", "timestamp > now + tolerance", "timestamp >= now + tolerance"),
    _domain("refunds/refunds", "now >= gives_up_at", "now > gives_up_at"),
    _domain("payments/proofs", "now - proof.status_at <= STUCK", "now - proof.status_at < STUCK"),
    _domain("webhooks/delivery", "delivery.give_up_at <= now", "delivery.give_up_at < now"),
    _domain("webhooks/delivery", "if moment > outcome.ended_at", "if moment >= outcome.ended_at"),
    _domain("webhooks/breaker", "breaker.last_success_at > began_at", "breaker.last_success_at >= began_at"),
    _domain("webhooks/breaker", "outcome.sent_at < breaker.reset_at", "outcome.sent_at <= breaker.reset_at"),
    _usecase("accounts/access", "key.ends_at <= ports", "key.ends_at < ports"),
    _usecase("webhooks/signing", "now < until", "now <= until"),
    _usecase("accounts/accounts", "until is not None and until > now", "until is not None and until >= now"),
    _usecase("kyc/links", "ports.clock.now() < link.expires_at", "ports.clock.now() <= link.expires_at"),
    _usecase("payments/payments", "ports.clock.now() < payment.expires_at", "ports.clock.now() <= payment.expires_at"),
    _usecase("exchanges/progress", "is not None and now >= exchange", "is not None and now > exchange"),
    _domain("webhooks/endpoint_state", "at >= probe_at", "at > probe_at"),
    _usecase("retention", "each.created_at < before", "each.created_at <= before"),
)
"""The mutants leave out changes that matter only when two moments are equal and have no visible effect (`>` for `>=` in
a maximum)."""


def survives(copy: Path, mutant: Mutant) -> bool:
    """Whether the tests pass with it."""
    right = (copy / mutant.file).read_text("utf-8")
    (copy / mutant.file).write_text(mutant.applied(copy), "utf-8")
    try:
        return _tests_pass(copy)
    finally:
        (copy / mutant.file).write_text(right, "utf-8")


def _tests_pass(copy: Path) -> bool:
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *NOTICED_BY]
    ended = subprocess.run(command, cwd=copy, env=environ, capture_output=True, check=False, timeout=300)
    if ended.returncode not in (0, 1):  # 1: a test failed; all else says nothing of the mutant
        raise RuntimeError(ended.stdout.decode() + ended.stderr.decode())
    return ended.returncode == 0


def main(wanted: list[str]) -> int:
    """Run the mutants and return the number of survivors."""
    chosen = [each for each in MUTANTS if not wanted or any(part in each.name for part in wanted)]
    began, survivors = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="cambist-mutants-") as folder:
        copy = Path(folder, "copy")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        if not _tests_pass(copy):
            raise RuntimeError("the tests of boundaries fail as it is")
        for mutant in chosen:
            alive = survives(copy, mutant)
            survivors += alive
            print("SURVIVES" if alive else "noticed ", mutant.name.replace("\n    ", " … "), flush=True)
    print(f"{len(chosen)} mutants, {survivors} survived, {time.monotonic() - began:.0f} s")
    return survivors


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
