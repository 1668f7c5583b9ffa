"""KYC over HTTP. No rule lives here (docs/kyc.md "KYC: verifying your clients"). Register takes no Idempotency-Key: the
phone is one."""

import msgspec
from litestar import Response, post
from msgspec import UNSET, UnsetType

from ...core.domain.kyc.kyc import CheckOrder, RegisterOrder, UploadOrder
from ...core.usecases.kyc.check import KycAnswer, check
from ...core.usecases.kyc.register import register
from ...core.usecases.kyc.uploads import Grant, grant_upload
from ...ports.bundle import Ports
from .door.access import ApiRequest
from .door.answers import answer
from .door.bodies import body_reader
from .door.routing import Router


class CheckView(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of POST /kyc/check, spelled as the interface has it."""

    status: str
    accountNumber: str | UnsetType = UNSET  # noqa: N815  (the interface's spelling)
    kyc_url: str | UnsetType = UNSET
    error: str | UnsetType = UNSET


class RegistrationView(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of POST /kyc/register, which spells the link in another way."""

    status: str
    accountNumber: str | UnsetType = UNSET  # noqa: N815  (the interface's spelling)
    kycUrl: str | UnsetType = UNSET  # noqa: N815  (the interface's spelling)
    error: str | UnsetType = UNSET


class UploadView(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of POST /kyc/upload-url."""

    upload_url: str
    file_key: str


def _given(value: str | None) -> str | UnsetType:
    return UNSET if value is None else value


def check_view(of: KycAnswer) -> CheckView:
    """Where a client stands."""
    return CheckView(
        status=of.status, accountNumber=_given(of.account_number), kyc_url=_given(of.url), error=_given(of.error)
    )


def registration_view(of: KycAnswer) -> RegistrationView:
    """What became of a registration."""
    return RegistrationView(
        status=of.status, accountNumber=_given(of.account_number), kycUrl=_given(of.url), error=_given(of.error)
    )


def upload_view(of: Grant) -> UploadView:
    """A place for a document."""
    return UploadView(upload_url=of.upload_url, file_key=of.file_key)


def kyc_router(ports: Ports) -> Router:
    """POST /kyc/check, /kyc/upload-url, /kyc/register."""

    @post("/check", status_code=200)
    async def check_client(request: ApiRequest) -> Response[bytes]:
        return answer(check_view(await check(ports, request.auth, await body_reader(request, CheckOrder))))

    @post("/upload-url", status_code=200)
    async def upload_url(request: ApiRequest) -> Response[bytes]:
        grant = await grant_upload(ports, request.auth, await body_reader(request, UploadOrder))
        return answer(upload_view(grant))

    @post("/register", status_code=200)
    async def register_client(request: ApiRequest) -> Response[bytes]:
        done = await register(ports, request.auth, await body_reader(request, RegisterOrder))
        return answer(registration_view(done))

    return Router("/kyc", route_handlers=[check_client, upload_url, register_client])
