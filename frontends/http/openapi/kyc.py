"""The operations about end clients and their verification."""

from ....core.domain.kyc.clients import ClientStatus
from ....core.domain.kyc.kyc import CheckOrder, RegisterOrder, UploadOrder
from ....core.usecases.kyc.clients import ClientSimulation
from ..clients import ClientsView, ClientView
from ..kyc import CheckView, RegistrationView, UploadView
from .model import API, PAGES, Operation, Query, Refusals

_ALWAYS: Refusals = {400: ("SANDBOX_NOT_SUPPORTED",), 403: ("PROVIDER_DISABLED",)}
_REQUIRED: Refusals = {400: ("SANDBOX_NOT_SUPPORTED", "KYC_NOT_REQUIRED"), 403: ("PROVIDER_DISABLED",)}
_VERIFIER: Refusals = {502: ("PROVIDER_ERROR",), 503: ("KYC_UNAVAILABLE",)}

KYC = (
    Operation(
        "post",
        f"{API}/kyc/check",
        "KYC",
        "Where a client's verification stands",
        body=CheckOrder,
        answer=CheckView,
        refusals={**_ALWAYS, **_VERIFIER},
    ),
    Operation(
        "post",
        f"{API}/kyc/upload-url",
        "KYC",
        "A place to PUT one document, within ten minutes",
        body=UploadOrder,
        answer=UploadView,
        refusals=_REQUIRED,
    ),
    Operation(
        "post",
        f"{API}/kyc/register",
        "KYC",
        "Have a client verified; a repeat for the same phone answers with the stored result",
        body=RegisterOrder,
        answer=RegistrationView,
        refusals={**_REQUIRED, **_VERIFIER, 500: ("KYC_PERSIST_FAILED",)},
    ),
    Operation(
        "get",
        f"{API}/exchange-clients",
        "Exchanges",
        "End clients, the newest first",
        answer=ClientsView,
        query=(
            *PAGES,
            Query("kyc_status", "In this state only.", {"enum": [*ClientStatus]}),
            Query("q", "Digits of the phone, at least three; all else is dropped."),
        ),
    ),
    Operation(
        "post",
        f"{API}/sandbox/exchange-clients",
        "Sandbox",
        "Let the client of a phone be in a state",
        body=ClientSimulation,
        answer=ClientView,
        refusals={404: ("NOT_FOUND",)},
    ),
)
