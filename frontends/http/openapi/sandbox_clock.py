"""The clock of a test account in the OpenAPI document."""

from ....core.domain.sandbox_clock import ClockWish
from ..sandbox_clock import ClockView
from .model import API, Operation

SANDBOX_CLOCK = (
    Operation("get", f"{API}/sandbox/clock", "Sandbox", "The clock of the test account", answer=ClockView),
    Operation(
        "post",
        f"{API}/sandbox/clock/advance",
        "Sandbox",
        "Move the clock of the test account forward, over all that is due on the way",
        body=ClockWish,
        answer=ClockView,
        refusals={404: ("NOT_FOUND",), 409: ("INVALID_STATE",)},
    ),
)
