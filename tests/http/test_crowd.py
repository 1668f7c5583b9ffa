"""Limits on simultaneous connections (frontends/http/edge/crowd.py)."""

from ipaddress import ip_network

import pytest

from cambist.adapters.ids import SystemIds
from cambist.frontends.http.edge.crowd import Crowd
from cambist.frontends.telemetry.counters import Counters
from tests.tables import table

PROXIES = (ip_network("10.0.0.0/8"),)


async def test_one_address_has_no_more_than_its_part_and_others_come_in() -> None:
    crowd = Crowd(most=100, of_an_address=2, ids=SystemIds())
    assert crowd.enter("192.0.2.1")
    leave = crowd.enter("192.0.2.1")
    assert leave is not None
    assert crowd.enter("192.0.2.1") is None
    assert crowd.enter("192.0.2.2")
    leave()
    assert crowd.enter("192.0.2.1")
    assert crowd.count == 3


@table(
    ("one", "same", "other"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"),
        ("::ffff:192.0.2.1", "192.0.2.1", "::ffff:192.0.2.2"),
    ],
    ids=["a customer of IPv6 has a /64", "IPv4 over IPv6"],
)
async def test_an_address_is_what_limits_count_by(one: str, same: str, other: str) -> None:
    crowd = Crowd(most=100, of_an_address=1, ids=SystemIds())
    assert crowd.enter(one)
    assert crowd.enter(same) is None
    assert crowd.enter(other)


async def test_proxies_and_unix_sockets_stand_for_many_and_count_in_all_only() -> None:
    crowd = Crowd(most=5, of_an_address=1, ids=SystemIds(), trusted=PROXIES)
    assert all(crowd.enter(peer) for peer in ("10.0.0.1", "10.0.0.1", None, None, "192.0.2.1"))
    assert crowd.enter("10.0.0.1") is None
    assert crowd.enter("192.0.2.2") is None


async def test_a_flood_of_refusals_is_counted_and_takes_one_line(caplog: pytest.LogCaptureFixture) -> None:
    counters = Counters()
    crowd = Crowd(most=2, of_an_address=1, ids=SystemIds(), counters=counters)
    assert crowd.enter("192.0.2.1")
    for _ in range(1000):
        assert crowd.enter("192.0.2.1") is None
    assert crowd.enter("192.0.2.2")
    assert crowd.enter("192.0.2.3") is None
    assert dict(counters.refused_connections.read()) == {("address",): 1000, ("process",): 1}
    assert len(caplog.records) == 1
