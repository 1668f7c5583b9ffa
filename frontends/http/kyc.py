"""HTTP API of KYC, without business rules (docs/kyc.md "KYC: verifying your clients"). Register takes no
Idempotency-Key: the phone serves as one."""

from typing import Annotated

import msgspec
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from ...core.domain import shared_fields as shared
from ...core.domain.accounts.accounts import Caller
from ...core.domain.accounts.key_terms import Right
from ...core.domain.kyc.kyc import CheckOrder, RegisterOrder, UploadOrder
from ...core.usecases.kyc.check import KycAnswer, check
from ...core.usecases.kyc.register import register
from ...core.usecases.kyc.uploads import Grant, grant_upload
from ...ports.bundle import Ports
from .edge.answers import answer
from .edge.operation import ApiRequest, Operation, Refusals


class CheckView(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of POST /kyc/check, in the documented spelling."""

    status: Annotated[
        str, shared.STATUS, shared.among(("not_required", "required", "processing", "verified", "failed"))
    ]
    accountNumber: Annotated[str | UnsetType, Meta(description="The client's account number, once verified")] = UNSET  # noqa: N815  (the interface's spelling)
    kyc_url: Annotated[str | UnsetType, Meta(description="The verifier's form for the client")] = UNSET
    error: Annotated[str | UnsetType, shared.ERROR] = UNSET


class RegistrationView(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of POST /kyc/register, which spells the link differently."""

    status: Annotated[str, shared.STATUS, shared.among(("required", "processing", "verified", "failed"))]
    accountNumber: Annotated[str | UnsetType, Meta(description="The client's account number, once verified")] = UNSET  # noqa: N815  (the interface's spelling)
    kycUrl: Annotated[str | UnsetType, Meta(description="The verifier's form for the client")] = UNSET  # noqa: N815  (the interface's spelling)
    error: Annotated[str | UnsetType, shared.ERROR] = UNSET


class UploadView(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of POST /kyc/upload-url."""

    upload_url: Annotated[str, Meta(description="PUT the file to this address, once, within ten minutes")]
    file_key: Annotated[str, Meta(description="Pass it to POST /kyc/register")]


def _given(value: str | None) -> str | UnsetType:
    return UNSET if value is None else value


def check_view(of: KycAnswer) -> CheckView:
    """Return the client's verification status."""
    return CheckView(
        status=of.status, accountNumber=_given(of.account_number), kyc_url=_given(of.url), error=_given(of.error)
    )


def registration_view(of: KycAnswer) -> RegistrationView:
    """Return the result of a registration."""
    return RegistrationView(
        status=of.status, accountNumber=_given(of.account_number), kycUrl=_given(of.url), error=_given(of.error)
    )


def upload_view(of: Grant) -> UploadView:
    """Return the granted upload of a document."""
    return UploadView(upload_url=of.upload_url, file_key=of.file_key)


async def check_client(ports: Ports, caller: Caller, request: ApiRequest[CheckOrder]) -> ASGIApp:
    return answer(check_view(await check(ports, caller, request.read)))


async def upload_url(ports: Ports, caller: Caller, request: ApiRequest[UploadOrder]) -> ASGIApp:
    return answer(upload_view(await grant_upload(ports, caller, request.read)))


async def register_client(ports: Ports, caller: Caller, request: ApiRequest[RegisterOrder]) -> ASGIApp:
    return answer(registration_view(await register(ports, caller, request.read)))


_ALWAYS: Refusals = {400: ("SANDBOX_NOT_SUPPORTED",), 403: ("PROVIDER_DISABLED",)}
_REQUIRED: Refusals = {400: ("SANDBOX_NOT_SUPPORTED", "KYC_NOT_REQUIRED"), 403: ("PROVIDER_DISABLED",)}
_VERIFIER: Refusals = {502: ("PROVIDER_ERROR",), 503: ("KYC_UNAVAILABLE",)}

KYC = (
    Operation(
        "check_client",
        "post",
        "/api/v1/kyc/check",
        "KYC",
        "Check a client's verification status",
        check_client,
        body=CheckOrder,
        answer=CheckView,
        refusals={**_ALWAYS, **_VERIFIER},
        right=Right.KYC,
    ),
    Operation(
        "create_upload_url",
        "post",
        "/api/v1/kyc/upload-url",
        "KYC",
        "Get a URL to upload one document within ten minutes",
        upload_url,
        body=UploadOrder,
        answer=UploadView,
        refusals={**_REQUIRED, 409: ("UPLOAD_LIMIT",), 503: ("KYC_UNAVAILABLE",)},
        right=Right.KYC,
    ),
    Operation(
        "register_client",
        "post",
        "/api/v1/kyc/register",
        "KYC",
        "Register a client for verification; a repeat for the same phone returns the stored result",
        register_client,
        body=RegisterOrder,
        answer=RegistrationView,
        refusals={**_REQUIRED, **_VERIFIER, 500: ("KYC_PERSIST_FAILED",)},
        right=Right.KYC,
    ),
)
