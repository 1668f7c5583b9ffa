"""The port KycVerifier with Sumsub: each operation is one applicant, found by `externalUserId`
(docs/providers/sumsub.md)."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ....ports.clock import Clock
from ....ports.faults import Forged, NotConfigured, OutcomeUnknown, Refused, Unavailable
from ....ports.files import FileStore
from ....ports.kyc import (
    Check,
    CheckNotification,
    CheckRequest,
    CheckStatus,
    Document,
    DocumentState,
    NoAnswer,
    Purpose,
)
from ....ports.notifications import InboundNotification, Received
from ....ports.operation_log import OperationLog
from ....ports.storage import Storage
from ....ports.tools import Tools
from ...provider_http import ProviderHttp
from .api import NOT_ASKED_FOR, SumsubApi
from .rules import SumsubRules, person_of
from .settings import SumsubSettings
from .signing import is_genuine
from .wire import DOCUMENTS, FORM, Applicant, NotificationBody, Review, Steps, multipart, status_of

NAME = "sumsub"
LIMIT = 15.0
"""Seconds of one exchange."""

FORM_TIME = timedelta(days=1)
"""Lifetime of a form address. A new address is created after half of it."""

_TELLING = frozenset(
    {
        "applicantPending",
        "applicantReviewed",
        "applicantWorkflowCompleted",
        "applicantWorkflowFailed",
        "applicantOnHold",
        "applicantAwaitingUser",
        "applicantReset",
        "applicantActivated",
        "applicantDeactivated",
        "applicantDeleted",
        "applicantPersonalDataDeleted",
    }
)
"""Types of notifications that may change a check's status."""


class SumsubPage(msgspec.Struct, frozen=True, kw_only=True):
    """Note of an applicant, stored under its id. It contains no personal data."""

    operation: str
    flow: str
    level: str
    approved: bool = False
    """The check was GREEN once."""
    form_url: str | None = None
    form_until: datetime | None = None


class SumsubVerifier:
    """Implement the ports KycVerifier, Notifications and Checkable. The reference of a check is the applicant's id."""

    name = NAME
    notification_networks: Sequence[str] = ()

    def __init__(
        self,
        api: SumsubApi,
        rules: SumsubRules,
        notification_secret: str,
        storage: Storage,
        clock: Clock,
        files: FileStore,
    ) -> None:
        self._api = api
        self._rules = rules
        self._notification_secret = notification_secret
        self._clock = clock
        self._files = files
        self._pages = OperationLog(NAME, SumsubPage, storage, clock)

    def __repr__(self) -> str:
        return "<SumsubVerifier>"

    @property
    def is_sandbox(self) -> bool:
        """Report whether the token belongs to the sandbox. There, anybody who has the token decides who is verified."""
        return self._api.is_sandbox

    @property
    def clock_skew(self) -> float | None:
        """Seconds by which Sumsub's clock was ahead of ours; None: not known yet."""
        return self._api.clock_skew

    async def register(self, request: CheckRequest) -> Check:
        """Create the operation's applicant and start its check, or continue where an earlier call stopped.

        Raises: Refused (`incomplete`) if documents or fields are missing, or Sumsub rejects them; OutcomeUnknown,
        Unavailable, NotConfigured.
        """
        level = self._rules.level_of(request)
        made = await self._api.create(request.operation, level, person_of(request))
        try:
            return await self._go_on(request, level, made)
        except Unavailable as fault:
            raise OutcomeUnknown(f"sumsub: the applicant is there, and its check may be: {fault}") from None

    async def _go_on(self, request: CheckRequest, level: str, made: Applicant | None) -> Check:
        applicant = made or await self._api.find(request.operation)
        if applicant is None:
            raise OutcomeUnknown("sumsub: the applicant exists, and is not found yet")
        page = SumsubPage(operation=request.operation, flow=FORM if request.redirect else DOCUMENTS, level=level)
        page, _ = await self._pages.start(applicant.id, page)
        if applicant.deleted:
            return _gone(applicant.id)
        review = applicant.review
        if page.flow == DOCUMENTS and not review.has_begun:
            review = await self._hand_in(applicant.id, request, is_new=made is not None)
        return await self._check(applicant.id, page, review)

    async def _hand_in(self, reference: str, request: CheckRequest, *, is_new: bool) -> Review:
        """Submit the missing documents and start the review. If a concurrent call did so first, a refusal here means
        nothing. Raises: Refused."""
        there = None if is_new else await self._api.steps(reference)
        try:
            for document in request.documents:
                step = None if there is None else there.of(document.purpose)
                if step is None or not step.image_ids:
                    await self._add(reference, document)
            await self._api.begin(reference)
        except Refused:
            review = await self._api.review(reference)
            if review is None or not review.has_begun:
                raise
            return review
        return Review(review_status="pending")

    async def _add(self, reference: str, document: Document) -> None:
        """Submit a document. Skip a proof of address if the level does not require it. Raises: Refused."""
        kind, content = self._rules.kind(document), await self._content(document)
        try:
            await self._api.add_document(reference, *multipart(document, kind, self._rules.country, content))
        except Refused as fault:
            if fault.reason != NOT_ASKED_FOR:
                raise
            if document.purpose is not Purpose.ADDRESS:
                raise Refused(str(fault), reason="incomplete") from None

    async def _content(self, document: Document) -> bytes:
        content = bytearray()
        try:
            async for part in self._files.read(document.key):
                content += part
        except Refused:
            raise Refused("sumsub: a document cannot be read any more", reason="incomplete") from None
        return bytes(content)

    async def find_check(self, operation: str) -> Check | None:
        """Return the check of this operation. Return None also while documents are missing: the check has not begun,
        and `register` continues it. Raises: NoAnswer, Unavailable, NotConfigured."""
        applicant = await self._api.find(operation)
        if applicant is None:
            return None
        if applicant.deleted:
            return _gone(applicant.id)
        page = await self._pages.read(applicant.id)
        if not applicant.review.has_begun and (page is None or page.flow == DOCUMENTS):
            return None
        return await self._read(applicant.id, page or self._guessed(applicant), applicant.review)

    async def check_state(self, reference: str) -> Check:
        """Return the state of the check. Raises: Refused for an unknown reference; NoAnswer, Unavailable,
        NotConfigured."""
        page = await self._pages.read(reference)
        review = await self._api.review(reference)
        if review is None:
            if page is not None and not page.approved:
                return _gone(reference)
            raise Refused("sumsub: no applicant of this reference", reason="not_found")
        if page is None:
            applicant = await self._api.applicant(reference)
            if applicant is None:
                raise Refused("sumsub: no applicant of this reference", reason="not_found")
            # A restored database has lost its note of the applicant.
            page, _ = await self._pages.start(reference, self._guessed(applicant))
        return await self._read(reference, page, review)

    async def _read(self, reference: str, page: SumsubPage, review: Review) -> Check:
        """Build the check for a read. The POST calls involved may be repeated, so a lost answer counts as NoAnswer."""
        try:
            return await self._check(reference, page, review)
        except (OutcomeUnknown, Refused) as fault:
            raise NoAnswer(str(fault)) from None

    async def _check(self, reference: str, page: SumsubPage, review: Review) -> Check:
        """Build the check from its review, with the form's address or the documents' results."""
        status = status_of(review, page.flow, page.approved)
        if status is CheckStatus.FORM:
            return Check(reference=reference, status=status, form_url=await self._form_url(reference, page))
        if status is CheckStatus.PROCESSING:
            return Check(reference=reference, status=status)
        steps = await self._api.steps(reference) or Steps()
        passport = None if steps.identity is None else steps.identity.state
        address = None if steps.proof_of_residence is None else steps.proof_of_residence.state
        level = 0
        if status is CheckStatus.VERIFIED:
            level = 2 if address is DocumentState.PASSED else 1
            if not page.approved:
                await self._pages.change(reference, lambda page: msgspec.structs.replace(page, approved=True))
        return Check(reference=reference, status=status, level=level, passport=passport, address=address)

    async def _form_url(self, reference: str, page: SumsubPage) -> str:
        now = self._clock.now()
        if page.form_url is not None and page.form_until is not None and page.form_until - now > FORM_TIME / 2:
            return page.form_url
        url = await self._api.link(page.operation, page.level, int(FORM_TIME.total_seconds()))
        until = now + FORM_TIME
        await self._pages.change(reference, lambda page: msgspec.structs.replace(page, form_url=url, form_until=until))
        return url

    async def receive(self, notification: InboundNotification) -> Received:
        """Verify a notification and return its operation. Raises: Forged if Sumsub's digest is missing or wrong."""
        if not is_genuine(self._notification_secret, notification):
            raise Forged("sumsub: the notification has no digest by the notification secret, in SHA-256 or SHA-512")
        try:
            told = msgspec.json.decode(notification.body, type=NotificationBody)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return Received()
        if told.type not in _TELLING or not told.external_user_id:
            return Received()
        return Received(notifications=(CheckNotification(operation=told.external_user_id),))

    async def check(self) -> None:
        """Check that Sumsub accepts the credentials and has the configured levels. Raises: NotConfigured,
        Unavailable."""
        there = {level.name for level in (await self._api.levels()).list.items}
        wanted = (self._rules.level, self._rules.company_level)
        lacking = [level for level in wanted if level is not None and level not in there]
        if lacking:
            raise NotConfigured(f"sumsub: it has no level {', '.join(lacking)}")

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    def _guessed(self, applicant: Applicant) -> SumsubPage:
        return SumsubPage(
            operation=applicant.external_user_id or "",
            flow=DOCUMENTS,
            level=applicant.review.level_name or self._rules.level,
        )


def sumsub(tools: Tools, own: SumsubSettings) -> SumsubVerifier:
    """Build the verifier of its settings. Raises: NotConfigured."""
    api = SumsubApi(ProviderHttp(NAME, own.url, limit=LIMIT, clock=tools.clock), own.token, own.secret, tools.clock)
    return SumsubVerifier(api, own, own.notification_secret, tools.storage, tools.clock, tools.files)


def _gone(reference: str) -> Check:
    """Return the failed check of an applicant that was deleted at Sumsub before a decision. The person must begin a new
    check."""
    return Check(reference=reference, status=CheckStatus.FAILED)
