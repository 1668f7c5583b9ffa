"""The examples in docs/client.md run unchanged."""

import re
from pathlib import Path
from typing import Any

import pytest

from cambist.frontends.testing import Sandbox

DOCUMENT = Path(__file__).parents[2] / "docs/client.md"


def test_the_documents_examples_run(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    connect, *blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert "os.environ" in connect
    names: dict[str, Any] = {"client": sandbox.client}
    for block in blocks:
        exec(block, names)
    seen: set[str] = set()
    sandbox.deliver_to(lambda headers, body: int(names["receive"](headers, body, [sandbox.webhook_secret], seen)))
    sandbox.pay(names["payment"].id)
    assert [each.status for each in sandbox.deliveries] == [200]
    said = capsys.readouterr().out
    assert "AMOUNT_BELOW_MINIMUM 400" in said
    assert f"paid: {names['payment'].id}" in said
