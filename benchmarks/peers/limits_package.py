"""The `limits` package as a peer, in its own environment. That environment's Python runs this file, which prints the
nanoseconds of one decision: two fixed windows are incremented, and both are read for the headers."""

import subprocess
from pathlib import Path

REQUIREMENTS = ("limits==5.8.0",)
DECISIONS = 20_000


def nanoseconds_per_decision() -> float:
    """Measure in the peer's environment. Raises: NotToBeHad."""
    from benchmarks.peers.environments import NotToBeHad, environment

    python = environment("limits", REQUIREMENTS)
    try:
        answer = subprocess.run([python, Path(__file__)], check=True, capture_output=True, text=True, timeout=120)
    except subprocess.SubprocessError as fault:
        raise NotToBeHad("the limits package does not run here") from fault
    return float(answer.stdout)


def _measure() -> float:
    from statistics import median
    from time import perf_counter_ns

    from limits import RateLimitItemPerMinute  # type: ignore[import-not-found]
    from limits.storage import MemoryStorage  # type: ignore[import-not-found]
    from limits.strategies import FixedWindowRateLimiter  # type: ignore[import-not-found]

    per_ip, per_key = RateLimitItemPerMinute(10**9), RateLimitItemPerMinute(10**9)
    limiter = FixedWindowRateLimiter(MemoryStorage())
    took = []
    for _ in range(5):
        names = [(f"10.0.{number % 250}.1", f"svc_test_{number % 1000:032d}") for number in range(DECISIONS)]
        begun = perf_counter_ns()
        for ip, key in names:
            limiter.hit(per_ip, ip)
            limiter.hit(per_key, key)
            limiter.get_window_stats(per_key, key)
        took.append((perf_counter_ns() - begun) / DECISIONS)
    return median(took)


if __name__ == "__main__":
    print(_measure())
