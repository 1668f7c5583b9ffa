"""Contract of adapters that receive provider notifications (ports/notices.py: Notices), for banks and verifiers."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from ...ports.faults import Forged
from ...ports.notices import Heard, InboundNotice, Notices
from .benches import check_hidden

_LONGEST = 65_536

NONSENSE = {
    "nothing": b"",
    "64 KB of one letter": b"x" * _LONGEST,
    "no UTF-8": b'{"id": "\xff\xfe"}',
    "JSON too deep to read": b"[" * 30_000 + b"]" * 30_000,
    "JSON of another kind": b"[null, 1e999, {}]",
    "NUL": b"\0" * 100,
}


class Told(msgspec.Struct, frozen=True):
    """A genuine notification, and the operation it is about."""

    adapter: Notices
    notice: InboundNotice
    operation: str
    forged: InboundNotice
    """The same notification changed to name another operation, with the original signature."""
    signed: bool
    secrets: Sequence[str]


async def told(adapter: Any, bench: Any, operation: str, other: str) -> Told:
    """Return a genuine notification about this operation. Skips the test if the adapter does not receive notifications
    or the bench does not simulate them."""
    if not isinstance(adapter, Notices):
        pytest.skip("the adapter hears no notices")
    notice = await bench.notice(operation)
    forged = bench.forge(notice, operation, other)
    return Told(adapter, notice, operation, forged, bench.signs_notices, bench.secrets)


class NoticeRules:
    """Anybody who knows the URL can post to it, so a notification is at most a hint, whatever bytes it contains."""

    async def test_a_genuine_notice_names_its_operation(self, noticed: Told) -> None:
        heard = await noticed.adapter.hear(noticed.notice)
        assert noticed.operation in [each.operation for each in heard.notices], "the operation by our own id"
        assert 200 <= heard.status < 300, "the provider would post it again"

    async def test_told_again_it_says_the_same(self, noticed: Told) -> None:
        first = await noticed.adapter.hear(noticed.notice)
        assert await noticed.adapter.hear(noticed.notice) == first

    async def test_one_about_something_else_with_the_same_signature_is_forged(self, noticed: Told) -> None:
        if not noticed.signed:
            pytest.skip("the provider signs nothing: its networks and the address's secret are all there is")
        with pytest.raises(Forged) as forged:
            await noticed.adapter.hear(noticed.forged)
        check_hidden(noticed.secrets, noticed.adapter, forged.value)

    async def test_one_without_its_signature_is_forged(self, noticed: Told) -> None:
        if not noticed.signed:
            pytest.skip("the provider signs nothing")
        with pytest.raises(Forged):
            await noticed.adapter.hear(msgspec.structs.replace(noticed.notice, headers={}, query={}, body=b"{}"))

    @pytest.mark.parametrize("nonsense", NONSENSE)
    @pytest.mark.parametrize("with_headers", [True, False])
    async def test_nonsense_is_forged_or_names_nothing(self, noticed: Told, nonsense: str, with_headers: bool) -> None:
        headers = noticed.notice.headers if with_headers else {}
        notice = msgspec.structs.replace(noticed.notice, headers=headers, body=NONSENSE[nonsense])
        try:
            heard = await noticed.adapter.hear(notice)
        except Forged as forged:
            check_hidden(noticed.secrets, noticed.adapter, forged)
        else:
            assert isinstance(heard, Heard)
            assert heard.notices == ()
