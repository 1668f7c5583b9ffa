"""Valid endpoints, and the endpoint that a delivery is for (docs/webhooks.md "Further endpoints")."""

from datetime import UTC, datetime

import msgspec
import pytest

from cambist.core.domain.accounts.accounts import Account, EndpointRef, Mode, Settings
from cambist.core.domain.errors import Refusal
from cambist.core.domain.webhooks import feed
from cambist.core.domain.webhooks.delivery import LIFETIME
from cambist.core.domain.webhooks.endpoints import (
    SECRET_OVERLAP_HOURS,
    EndpointKey,
    EndpointPatch,
    WebhookEndpoint,
    own_receiver,
    read_order,
    with_endpoint,
    without_endpoint,
)
from cambist.core.domain.webhooks.events import EVENT_KEPT, Delivery, DeliveryStatus, EndpointDelivery, EventType
from tests.tables import table

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
URL = "https://merchant.example/hook"
ACCOUNT = Account(id="acc_1", name="A", default_shop_id="shop", created_at=NOON)
BOTH = msgspec.structs.replace(ACCOUNT, settings=Settings(webhook_url=URL), webhook_secret=b"1")


def endpoint(number: int, mode: Mode = Mode.TEST) -> WebhookEndpoint:
    return WebhookEndpoint(
        id=f"we_{number}",
        account_id="acc_1",
        mode=mode,
        url=URL,
        event_types=None,
        description=None,
        secret=b"2",
        created_at=NOON,
    )


def knowing(count: int, mode: Mode = Mode.TEST) -> Account:
    """The account with so many further endpoints."""
    refs = tuple(EndpointRef(id=f"we_{number}", mode=mode, event_types=None) for number in range(count))
    return msgspec.structs.replace(ACCOUNT, endpoints=refs or None)


def test_retention_periods_are_the_documented_ones() -> None:
    """Retention of a replaced secret, of events, of the feed, and of deliveries that are retried (docs/webhooks.md
    "Changing the secret", "Looking, and sending again", "When you do not answer")."""
    assert SECRET_OVERLAP_HOURS == 24
    assert [kept.days for kept in (EVENT_KEPT, feed.KEPT, LIFETIME)] == [30, 30, 7]


@table(
    ("account", "receives"),
    [
        pytest.param(None, False, id="no account"),
        pytest.param(ACCOUNT, False, id="neither address nor secret"),
        pytest.param(msgspec.structs.replace(BOTH, webhook_secret=None), False, id="an address"),
        pytest.param(msgspec.structs.replace(BOTH, settings=Settings()), False, id="a secret"),
        pytest.param(BOTH, True, id="both"),
    ],
)
def test_an_account_receives_once_it_has_an_address_and_a_secret(account: Account | None, receives: bool) -> None:
    assert (own_receiver(account) is not None) is receives


@table(
    ("there", "mode", "comes", "fits"),
    [(3, Mode.TEST, 3, True), (4, Mode.TEST, 4, False), (4, Mode.TEST, 0, True), (4, Mode.LIVE, 4, True)],
)
def test_an_account_has_at_most_five_in_a_mode_its_own_among_them(
    there: int, mode: Mode, comes: int, fits: bool
) -> None:
    account = knowing(there, mode)
    if fits:
        known = with_endpoint(account, endpoint(comes)).endpoints or ()
        assert sorted(each.id for each in known) == sorted({f"we_{comes}", *(f"we_{each}" for each in range(there))})
    else:
        with pytest.raises(Refusal, match="at most 5 webhook endpoints in a mode"):
            with_endpoint(account, endpoint(comes))


@table(
    ("there", "gone", "left"), [(2, "we_0", ("we_1",)), (2, "we_9", ("we_0", "we_1")), (1, "we_0", ()), (0, "x", ())]
)
def test_removed_endpoint_leaves_the_others(there: int, gone: str, left: tuple[str, ...]) -> None:
    found = without_endpoint(knowing(there), gone).endpoints
    assert tuple(each.id for each in found or ()) == left
    assert found != ()


@table(("description", "kept"), [("x" * 256, "x" * 256), ("", None), ("x" * 257, ...), ("a\nb", ...)])
def test_a_description_has_at_most_256_characters_and_an_empty_one_is_none(description: str, kept: object) -> None:
    patch = EndpointPatch(description=description)
    if kept is ...:
        with pytest.raises(Refusal, match="at most 256 characters"):
            read_order(patch, Mode.TEST)
    else:
        assert read_order(patch, Mode.TEST) == {"description": kept}


def test_delivery_is_for_the_accounts_endpoint_or_the_one_it_names() -> None:
    about = {
        "account_id": "acc_1",
        "mode": Mode.LIVE,
        "type": EventType.REFUND_FAILED,
        "status": DeliveryStatus.PENDING,
        "created_at": NOON,
    }
    own = EndpointKey.to(Delivery(id="evt_1", **about))  # type: ignore[arg-type]
    further = EndpointKey.to(EndpointDelivery(id="evt_1/we_1", endpoint_id="we_1", **about))  # type: ignore[arg-type]
    assert own == EndpointKey("acc_1", Mode.LIVE)
    assert further == EndpointKey("acc_1", Mode.LIVE, "we_1")
    for each in (own, further):
        assert EndpointKey.of(each.id) == each
