"""Bodies of the calls that the KYC page's script makes."""

from ....core.domain.kyc.kyc import UploadOrder
from ....core.domain.masked import Masked


class PageCall(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of a call by the page's script."""

    session: str


class PageUpload(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session: str
    content_type: str
    size: int | None = None

    @property
    def order(self) -> UploadOrder:
        """The same order as in the merchant's call."""
        return UploadOrder(content_type=self.content_type, size=self.size)


class PageRegister(Masked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session: str
    selfie_key: str | None = None
    document_key: str | None = None
    address_key: str | None = None
    email: str | None = None
    user_type: str | None = None
