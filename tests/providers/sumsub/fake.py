"""Sumsub's interface on this machine, as strict as the real one: every request is authenticated over its very bytes,
and refused as Sumsub refuses (docs/providers/sumsub.md "Tested and untested")."""

import hashlib
import hmac
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from cambist.ports.notifications import InboundNotification
from cambist.testing import FakeProvider, ProviderAnswer, ProviderRequest
from tests.providers.sumsub.world import UNDER_WAY, Applicant, Level, Problem, World

TOKEN = "sbx:token.of-tests"
SECRET = "Hej2ch71kG2kTd1iIUDZFNsO5C1lh5Gq"
NOTIFICATION_SECRET = "notification-secret-of-tests"
SHA256 = "HMAC_SHA256_HEX"
LEVEL = "basic-kyc-level"
LEVELS = (
    Level(LEVEL),
    Level("with address & more", ("IDENTITY", "SELFIE", "PROOF_OF_RESIDENCE")),
    Level("basic-kyb-level", (), "company"),
)

SKEW = timedelta(seconds=60)
WINDOW = timedelta(seconds=5)
MOST = {"GET": 300, "POST": 50}
_BODY_LIMIT = 50 * 1024 * 1024

Work = Callable[[ProviderRequest], Any]


class FakeSumsub(FakeProvider):
    """Sumsub's fake: a sandbox, or the live service if the token starts with `prd:`. Time stamps and rate limits
    follow its clock `now`."""

    def __init__(
        self, now: Callable[[], datetime], *, token: str = TOKEN, secret: str = SECRET, levels: Sequence[Level] = LEVELS
    ) -> None:
        super().__init__(body_limit=_BODY_LIMIT)
        self.world = World(levels)
        self._now, self._token, self._secret = now, token, secret
        self._asked: dict[str, deque[datetime]] = {method: deque() for method in MOST}
        self.most = dict(MOST)
        """Reads and writes in a window."""
        self._links = 0
        self._offer_all()

    def _offer_all(self) -> None:
        world = self.world

        def of_id(say: Callable[[Applicant], Any]) -> Work:
            return lambda request: say(world.of(request.parts["id"]))

        self._offer("POST", "/resources/applicants", self._create)
        self._offer("GET", "/resources/applicants/{id}/one", of_id(Applicant.profile))
        self._offer("GET", "/resources/applicants/{id}/status", of_id(Applicant.review))
        self._offer("GET", "/resources/applicants/{id}/requiredIdDocsStatus", of_id(Applicant.steps))
        self._offer("GET", "/resources/applicants/-/levels", self._levels)
        self._offer(
            "GET",
            "/resources/applicants/-;externalUserId={external}/one",
            lambda request: world.named(request.parts["external"]).profile(),
        )
        self._offer("POST", "/resources/applicants/{id}/info/idDoc", self._add_image)
        self._offer("POST", "/resources/applicants/{id}/status/pending", self._begin)
        self._offer("POST", "/resources/applicants/{id}/status/testCompleted", self._test_completed)
        self._offer("PATCH", "/resources/applicants/{id}/presence/deactivated", self._deactivate)
        self._offer("POST", "/resources/sdkIntegrations/levels/-/websdkLink", self._link)
        self._offer("POST", "/resources/accessTokens", self._access_token)
        self._offer("POST", "/resources/accessTokens/sdk", self._access_token)

    def _offer(self, method: str, path: str, work: Work) -> None:
        def handler(request: ProviderRequest) -> ProviderAnswer:
            try:
                self._authenticate(request)
                self._count(request)
                said = work(request)
            except Problem as problem:
                return ProviderAnswer.of_json(problem.body, problem.status)
            return said if isinstance(said, ProviderAnswer) else ProviderAnswer.of_json(said)

        self.on(method, path, handler)

    def denial(self, status: int) -> ProviderAnswer:
        return ProviderAnswer.of_json(Problem(status, "Invalid App Token").body, status)

    def _authenticate(self, request: ProviderRequest) -> None:
        """The signature is over time, method, target and body as they came. Raises: Problem 401."""
        told = {name: request.headers.get(f"x-app-{name}", "") for name in ("token", "access-ts", "access-sig")}
        if told["token"] != self._token:
            raise Problem(401, "Invalid App Token")
        if not told["access-ts"].isdigit() or abs(int(told["access-ts"]) - self._now().timestamp()) > SKEW.seconds:
            raise Problem(401, "Request timestamp is too old or from the future")
        said = f"{told['access-ts']}{request.method}{request.target}".encode() + request.body
        if not hmac.compare_digest(told["access-sig"], hmac.new(self._secret.encode(), said, "sha256").hexdigest()):
            raise Problem(401, "Request signature mismatch", 4003, "app-token-signature mismatch")

    def _count(self, request: ProviderRequest) -> None:
        """Raises: Problem 429."""
        method, now = ("GET" if request.method == "GET" else "POST"), self._now()
        asked = self._asked[method]
        while asked and asked[0] <= now - WINDOW:
            asked.popleft()
        if len(asked) >= self.most[method]:
            raise Problem(429, "Too many requests")
        asked.append(now)

    def _create(self, request: ProviderRequest) -> ProviderAnswer:
        made = self.world.create(request.query.get("levelName", ""), _json(request))
        return ProviderAnswer.of_json(made.profile(), 201)

    def _levels(self, _: ProviderRequest) -> Any:
        items = [{"id": f"{number:024x}", "name": name} for number, name in enumerate(self.world.levels)]
        return {"list": {"items": items, "totalItems": len(items)}}

    def _add_image(self, request: ProviderRequest) -> ProviderAnswer:
        parts = _form(request)
        if "metadata" not in parts:
            raise Problem(400, "metadata is missing")
        try:
            metadata = json.loads(parts["metadata"])
        except ValueError:
            raise Problem(400, "metadata is no JSON") from None
        image = self.world.add_image(request.parts["id"], metadata, parts.get("content", b""))
        answer = ProviderAnswer.of_json(metadata)
        return ProviderAnswer(body=answer.body, headers={**answer.headers, "X-Image-Id": str(image)})

    def _begin(self, request: ProviderRequest) -> Any:
        self.world.begin(request.parts["id"])
        return {"ok": 1}

    def _test_completed(self, request: ProviderRequest) -> Any:
        if not self._token.startswith("sbx:"):
            raise Problem(403, "In the sandbox only")
        self.world.complete(request.parts["id"], _json(request))
        return {"ok": 1}

    def _deactivate(self, request: ProviderRequest) -> Any:
        applicant = self.world.of(request.parts["id"])
        if applicant.status in UNDER_WAY:
            raise Problem(409, "The applicant is being checked")
        applicant.deleted = True
        return applicant.profile()

    def _link(self, request: ProviderRequest) -> Any:
        told = _json(request)
        level, seconds = self.world.levels.get(str(told.get("levelName"))), told.get("ttlInSecs", 1800)
        if level is None or not isinstance(told.get("userId"), str) or not isinstance(seconds, int) or seconds <= 0:
            raise Problem(400, "Malformed link")
        self._links += 1
        return {"url": f"https://in.sumsub.com/websdk/p/sbx_{self._links:08x}"}

    def _access_token(self, request: ProviderRequest) -> Any:
        told = dict(request.query) or _json(request)
        if not told.get("userId") or told.get("levelName") not in self.world.levels:
            raise Problem(400, "Malformed request")
        return {"token": "_action-sbx-1", "userId": told["userId"]}

    def decide(self, external: str, answer: str, reject: str | None = None, red_steps: Sequence[str] = ()) -> None:
        """Let Sumsub's people or monitoring decide."""
        result = {"reviewAnswer": answer} | ({} if reject is None else {"reviewRejectType": reject})
        self.world.complete(self.world.named(external).id, result, red_steps)

    def fill_in(self, external: str) -> None:
        """Fill in the form with everything that the level requires, and send it, as the person does."""
        applicant = self.world.named(external)
        applicant.status = "init"
        kinds = {"IDENTITY": "PASSPORT", "SELFIE": "SELFIE", "PROOF_OF_RESIDENCE": "UTILITY_BILL"}
        applicant.result = None
        for step in applicant.level.steps:
            metadata = {"idDocType": kinds[step], "country": "RUS"}
            self.world.add_image(applicant.id, metadata, f"%PDF-{step}, try {applicant.reviews}".encode())
        self.world.begin(applicant.id)

    def post(
        self, external: str, kind: str = "applicantReviewed", algorithm: str = SHA256
    ) -> tuple[Mapping[str, str], bytes]:
        """Return headers and body of a notification, as Sumsub posts it."""
        body = self.world.payload(external, kind)
        digest = {"HMAC_SHA1_HEX": "sha1", "HMAC_SHA256_HEX": "sha256", "HMAC_SHA512_HEX": "sha512"}[algorithm]
        said = hmac.new(NOTIFICATION_SECRET.encode(), body, getattr(hashlib, digest)).hexdigest()
        return {
            "Content-Type": "application/json",
            "X-Payload-Digest": said,
            "X-Payload-Digest-Alg": algorithm,
        }, body

    def notification(
        self, external: str, kind: str = "applicantReviewed", algorithm: str = SHA256
    ) -> InboundNotification:
        """The same, as it reaches an adapter."""
        headers, body = self.post(external, kind, algorithm)
        lower = {name.lower(): value for name, value in headers.items()}
        return InboundNotification(headers=lower, body=body, query={}, address="203.0.113.7")


def _json(request: ProviderRequest) -> dict[str, Any]:
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise Problem(415, "Content-Type must be application/json")
    try:
        told = json.loads(request.body)
    except ValueError:
        raise Problem(400, "The body is no JSON") from None
    if not isinstance(told, dict):
        raise Problem(400, "The body is no object")
    return told


def _form(request: ProviderRequest) -> Mapping[str, bytes]:
    """The parts of a multipart body by their names. Raises: Problem 400, 415."""
    said = request.headers.get("content-type", "")
    if not said.startswith("multipart/form-data; boundary="):
        raise Problem(415, "Content-Type must be multipart/form-data with a boundary")
    if not request.body.rstrip(b"\r\n").endswith(f"--{said.partition('boundary=')[2]}--".encode()):
        raise Problem(400, "The form does not end")
    whole = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {said}\r\n\r\n".encode() + request.body)
    parts: dict[str, bytes] = {}
    for part in whole.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            parts[name] = content
    return parts
