"""When the payer window answers, and its content (docs/window.md "Back to the shop", "How long it is there")."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.money import Rub
from cambist.core.domain.payer.window import FINAL_FACES, Face, face, web_link
from cambist.core.domain.payments.payments import Payment, PaymentStatus
from tests.tables import table

S = PaymentStatus
START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
QR = "https://qr.example/1"
CLOSING = (S.PAID, S.SETTLED, S.REFUNDED, S.FAILED, S.CANCELLED)


def payment(status: PaymentStatus, *, closed_after: timedelta | None = None, qr: str | None = QR) -> Payment:
    return Payment(
        id="pay_0",
        account_id="acc",
        mode=Mode.TEST,
        shop_id="shop",
        status=status,
        amount=Rub(100_00),
        payment_method="sbp",
        created_at=START,
        expires_at=START + timedelta(minutes=15),
        qr_payload=qr,
        closed_at=None if closed_after is None else START + closed_after,
    )


def test_every_status_has_a_face_at_some_time() -> None:
    closed = timedelta(minutes=1)
    shown = {status for status in S if face(payment(status, closed_after=closed), START + closed) is not None}
    assert shown == set(S)


@table("status", CLOSING)
@table(("seconds", "is_open"), [(0, True), (59.999, True), (60, False), (61, False), (86_400, False)])
def test_the_window_is_available_one_minute_after_the_payment_came_to_rest(
    status: PaymentStatus, seconds: float, is_open: bool
) -> None:
    """The window closes a minute after the end (docs/window.md "How long it is there")."""
    rest = timedelta(minutes=3)
    shown = face(payment(status, closed_after=rest), START + rest + timedelta(seconds=seconds))
    assert (shown is not None) is is_open


def test_a_late_payment_reopens_the_window_for_a_minute() -> None:
    """Five hours after creation, when the minute of the expiry is long over (docs/window.md "How long it is there")."""
    late = timedelta(hours=5)
    paid = payment(S.PAID, closed_after=late)
    assert face(paid, START + late + timedelta(seconds=59)) is Face.PAID
    assert face(paid, START + late + timedelta(seconds=60)) is None


def test_closed_payment_is_not_shown_without_a_moment_of_rest() -> None:
    assert [face(payment(status), START) for status in CLOSING] == [None] * len(CLOSING)


@table(
    ("age", "shown"),
    [
        (timedelta(minutes=15), Face.EXPIRED),
        (timedelta(hours=6) - timedelta(microseconds=1), Face.EXPIRED),
        (timedelta(hours=6), None),
    ],
)
def test_expired_stays_until_six_hours_after_creation(age: timedelta, shown: Face | None) -> None:
    assert face(payment(S.EXPIRED), START + age) is shown


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400)))
def test_amount_mismatch_is_shown_until_somebody_has_decided(age: timedelta) -> None:
    """The page names the review (docs/window.md "How long it is there")."""
    assert face(payment(S.AMOUNT_MISMATCH), START + age) is Face.REVIEW


def test_refund_within_the_paid_minute_leaves_the_window_open() -> None:
    """The minute runs from `paid`; a refund neither ends nor extends it (docs/window.md "How long it is there")."""
    refunded = payment(S.REFUNDED, closed_after=timedelta(0))
    assert face(refunded, START + timedelta(seconds=59)) is Face.PAID
    assert face(refunded, START + timedelta(seconds=60)) is None


@table(
    ("qr", "age", "shown"),
    [
        (None, timedelta(0), Face.PREPARING),
        (QR, timedelta(0), Face.WAITING),
        (QR, timedelta(minutes=15) - timedelta(microseconds=1), Face.WAITING),
        (QR, timedelta(minutes=15), Face.CHECKING),
        (None, timedelta(minutes=15), Face.CHECKING),
        (QR, timedelta(days=1), Face.CHECKING),
    ],
)
def test_pending_has_three_faces(qr: str | None, age: timedelta, shown: Face) -> None:
    """No QR yet; a QR to pay; and past the deadline, where nobody should start to pay."""
    assert face(payment(S.PENDING, qr=qr), START + age) is shown


def test_processing_keeps_its_face_past_the_deadline() -> None:
    assert face(payment(S.PROCESSING), START + timedelta(hours=1)) is Face.PROCESSING


def test_paid_and_settled_look_alike_and_only_what_cannot_change_is_final() -> None:
    rest = timedelta(0)
    assert face(payment(S.SETTLED, closed_after=rest), START) is face(payment(S.PAID, closed_after=rest), START)
    assert {Face.PAID, Face.FAILED, Face.CANCELLED} == FINAL_FACES


@table(
    "address",
    ["https://shop.example/thanks?order=1#top", "http://127.0.0.1:8080/back", "HTTPS://shop.example", "https://[::1]/"],
)
def test_a_return_address_on_the_web_is_kept_as_it_is(address: str) -> None:
    assert web_link(address) == address


@table(
    "address",
    [
        None,
        "",
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " https://shop.example",
        "java\nscript:alert(1)",
        "https://shop.example/\r\nx",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "ftp://shop.example",
        "//shop.example/path",
        "/path",
        "shop.example",
        "https:shop.example",
        "https:///path",
        "https://",
        "https:\\\\shop.example",
        "https://shop.example\\@evil.example",
        "https://[::1",
        "bank100000000111://qr",
    ],
)
def test_anything_but_an_absolute_web_address_is_no_link(address: str | None) -> None:
    """Links lead to http and https only."""
    assert web_link(address) is None
