"""Edits of the installation's row, made without the vault's keys, let no copy send money (SECURITY.md)."""

from collections.abc import Mapping

import pytest

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.installation import Because
from cambist.core.usecases.common.quarantine import hold, holds_back, is_held, read_hold
from cambist.core.usecases.installation.resume import resume
from tests.apps import TestApp
from tests.attacks.kit import OWN, Attacker
from tests.attacks.test_money_rows import differing

LIFTED = "held_since = NULL, held_because = NULL, as_of = NULL"
EDITS: Mapping[str, str] = {
    "the hold": LIFTED,
    "the hold and its tag": f"{LIFTED}, hold_tag = NULL",
    "the hold, with a tag of his own": f"{LIFTED}, hold_tag = :own",
    "as of when": "as_of = held_since + 1",
    "what it may lack": "lacks_since = held_since + 1",
}


@pytest.mark.parametrize("case", EDITS)
async def test_altered_hold_counts_as_held(attacked: TestApp, attacker: Attacker, case: str) -> None:
    await hold(attacked.ports, Because.COPIED)
    assert await differing(attacked) == []
    own = {"own": OWN.tag(b"[null,null,null,null]", "installations.hold:installation")}
    await attacker.run(f"UPDATE installations SET {EDITS[case]}", *([own] if ":own" in EDITS[case] else []))
    found = await read_hold(attacked.ports)
    assert found is not None
    assert (found.held_because, found.as_of) == (Because.ALTERED, None)
    assert await is_held(attacked.ports, Mode.LIVE)
    async with attacked.ports.storage.unit() as unit:
        assert await holds_back(attacked.ports, unit, Mode.LIVE)
    assert await differing(attacked) == [("installation", "installations.held_since")]
    assert "held" in (await attacked.http.get("/health")).json()["degraded"]

    await resume(attacked.ports)
    assert await read_hold(attacked.ports) is None
    assert await differing(attacked) == []
