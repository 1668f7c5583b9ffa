"""A harness that does not implement a hook skips the test, and the skip names the method to override."""

from datetime import timedelta
from typing import Any

import pytest

from cambist.frontends.conformance import harnesses
from cambist.ports.chain import Network, TransactionState
from tests.tables import table

_HOOKS: tuple[tuple[type[Any], str, tuple[Any, ...]], ...] = (
    *((harnesses.KycHarness, name, ("kyc_1",)) for name in ("verify", "fail", "withdraw", "asked", "notification")),
    *((harnesses.KycHarness, name, ()) for name in ("another", "be_silent")),
    *((harnesses.RegisterHarness, name, ("rcp_1",)) for name in ("write", "asked", "notification")),
    (harnesses.RegisterHarness, "reject", ("rcp_1", "")),
    (harnesses.RegisterHarness, "another", ()),
    (harnesses.ChainHarness, "show", (Network.TRON, "f" * 64, TransactionState.FINAL)),
    (harnesses.ChainHarness, "parties", (Network.TRON, "f" * 64)),
    (harnesses.DepositsHarness, "restarted", ()),
    (harnesses.DepositsHarness, "send", ("T", 1)),
    (harnesses.DepositsHarness, "spend", ("T", 1)),
    *((harnesses.DepositsHarness, name, ("T", "f" * 64)) for name in ("drop", "make_final")),
    *((harnesses.PayoutsHarness, name, ()) for name in ("restarted", "forget", "moved")),
    *((harnesses.PayoutsHarness, name, (None,)) for name in ("make_final", "outlive", "revert", "take_back", "paid")),
    *((harnesses.NotifierHarness, name, ()) for name in ("received", "received_headers", "redirect")),
    *((harnesses.NotifierHarness, name, ()) for name in ("be_away", "be_silent")),
    *((harnesses.NotifierHarness, name, (1,)) for name in ("answer", "ask_for_pause")),
    *((harnesses.RatesHarness, name, ("92",)) for name in ("say", "say_garbage")),
    *((harnesses.RatesHarness, name, ()) for name in ("be_silent", "refuse_key")),
    (harnesses.RatesHarness, "say_old", ("92", timedelta(hours=1))),
)


@table(("harness", "name", "given"), _HOOKS, ids=[f"{row[0].__name__}.{row[1]}" for row in _HOOKS])
async def test_skip_of_a_hook_names_the_method_to_override(
    harness: type[Any], name: str, given: tuple[Any, ...]
) -> None:
    with pytest.raises(pytest.skip.Exception, match=f"override .*`{name}`"):
        await getattr(harness(), name)(*given)
