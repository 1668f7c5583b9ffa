"""The operations about refunds."""

from ....core.domain.refunds.refunds import RefundOrder
from ....core.usecases.sandbox.refunds import RefundSimulation
from ..refunds import RefundsView, RefundView
from .model import API, PAGES, UUID, Operation, Query, Refusals

_OFF = "NOT_FOUND"
"""Until refunds are enabled for the account."""
_NO_REFUND: Refusals = {404: ("REFUND_NOT_FOUND", _OFF)}

REFUNDS = (
    Operation(
        "post",
        f"{API}/refunds",
        "Refunds",
        "Apply for a refund, of all that is left or of a part",
        body=RefundOrder,
        answer=RefundView,
        creates=True,
        refusals={
            400: ("INVALID_AMOUNT", "OVER_REMAINING", "PARTIAL_BEFORE_SETTLEMENT"),
            404: ("PAYMENT_NOT_FOUND", _OFF),
            409: ("INVALID_STATUS", "LIMIT_PER_PAYMENT"),
        },
    ),
    Operation(
        "get",
        f"{API}/refunds",
        "Refunds",
        "Refunds, the newest first",
        answer=RefundsView,
        query=(
            *PAGES,
            Query("payment_id", "Of this payment only."),
            Query("status", "A refund status, in any case."),
            Query("shop_id", "Of this shop only.", UUID),
            Query("external_id", "Exactly this."),
        ),
        refusals={400: ("SHOP_NOT_FOUND",), 404: (_OFF,)},
    ),
    Operation("get", f"{API}/refunds/{{refund_id}}", "Refunds", "A refund", answer=RefundView, refusals=_NO_REFUND),
    Operation(
        "post",
        f"{API}/refunds/{{refund_id}}/cancel",
        "Refunds",
        "Take an application back while it is pending",
        answer=RefundView,
        refusals={**_NO_REFUND, 409: ("INVALID_STATE",)},
    ),
    Operation(
        "post",
        f"{API}/sandbox/refunds/{{refund_id}}/simulate",
        "Sandbox",
        "Lead a refund to an outcome, as the operator and the bank would",
        body=RefundSimulation,
        answer=RefundView,
        refusals={**_NO_REFUND, 409: ("INVALID_STATE",), 503: ("PROVIDER_UNAVAILABLE",)},
    ),
)
