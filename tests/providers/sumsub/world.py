"""Sumsub's records of applicants and its answers about them: the half of the fake without HTTP."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

INDIVIDUAL, COMPANY = "individual", "company"
STEPS = {"IDENTITY": ("PASSPORT", "ID_CARD", "DRIVERS"), "SELFIE": ("SELFIE",), "PROOF_OF_RESIDENCE": ("UTILITY_BILL",)}
UNDER_WAY = ("pending", "prechecked", "queued")
MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"%PDF-")
"""Sumsub recognises JPEG, PNG and PDF by these bytes and ignores the type that a client declares."""
ANSWERS = ("GREEN", "RED")
REJECT_TYPES = ("RETRY", "FINAL")


class Level(msgspec.Struct, frozen=True):
    """A verification level: the kind of its applicants, and the steps it requires."""

    name: str
    steps: tuple[str, ...] = ("IDENTITY", "SELFIE")
    kind: str = INDIVIDUAL


class Image(msgspec.Struct, frozen=True):
    """One uploaded image of a document."""

    id: int
    kind: str
    country: str
    digest: bytes


class Applicant(msgspec.Struct, kw_only=True):
    """State of one applicant."""

    id: str
    external: str
    level: Level
    told: Mapping[str, Any]
    """The person's data from the creation request."""
    status: str = "init"
    result: Mapping[str, Any] | None = None
    images: list[Image] = []
    deleted: bool = False
    reviews: int = 0
    red_steps: tuple[str, ...] = ()

    def images_of(self, step: str) -> list[Image]:
        return [image for image in self.images if image.kind in STEPS[step]]

    def review(self) -> dict[str, Any]:
        """Sumsub's `review`, which is also the answer to `/status`."""
        review: dict[str, Any] = {
            "reviewId": sha256(self.id.encode()).hexdigest()[:5],
            "attemptCnt": self.reviews,
            "levelName": self.level.name,
            "createDate": "2026-11-23 05:11:02+0000",
            "reviewStatus": self.status,
            "priority": 0,
        }
        return review if self.result is None else review | {"reviewResult": dict(self.result)}

    def profile(self) -> dict[str, Any]:
        """The answer to `/one`: with the person in it, as the real one."""
        return {
            "id": self.id,
            "createdAt": "2026-11-23 05:11:02",
            "clientId": "cambist",
            "inspectionId": self.id[::-1],
            "externalUserId": self.external,
            "applicantPlatform": "API",
            "info": {"firstName": "ИВАН", "lastName": "ПЕТРОВ", "dob": "1990-01-01", "country": "RUS"},
            "review": self.review(),
            "deleted": self.deleted,
            "type": self.level.kind,
            **{name: self.told[name] for name in ("email", "phone") if name in self.told},
        }

    def steps(self) -> dict[str, Any]:
        """The answer to `/requiredIdDocsStatus`: null for a step of which nothing is there."""
        return {step: self._step(step) for step in self.level.steps}

    def _step(self, step: str) -> dict[str, Any] | None:
        images = self.images_of(step)
        if not images:
            return None
        said: dict[str, Any] = {
            "country": images[0].country,
            "idDocType": images[0].kind,
            "imageIds": [image.id for image in images],
            "imageReviewResults": {},
        }
        if self.status == "completed" and self.result is not None:
            said["reviewResult"] = {"reviewAnswer": "RED" if step in self.red_steps else "GREEN"}
        return said


class Problem(Exception):
    """An error of Sumsub: status, and the body's code where it has one."""

    def __init__(self, status: int, description: str, code: int | None = None, name: str | None = None) -> None:
        super().__init__(description)
        self.status = status
        self.body: dict[str, Any] = {"description": description, "code": status, "correlationId": "req-0f3a"}
        if code is not None:
            self.body |= {"errorCode": code, "errorName": name}


class World:
    """Applicants by id, and the operations on them."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self.levels = {level.name: level for level in levels}
        self.applicants: dict[str, Applicant] = {}
        self._images = 1000

    def named(self, external: str) -> Applicant:
        """Raises: Problem 404."""
        for applicant in self.applicants.values():
            if applicant.external == external:
                return applicant
        raise Problem(404, "Applicant not found")

    def of(self, reference: str) -> Applicant:
        """Raises: Problem 400, 404; a deleted applicant counts as missing."""
        if len(reference) != 24 or not set(reference) <= set("0123456789abcdef"):
            raise Problem(400, f"Invalid id '{reference}'")
        applicant = self.applicants.get(reference)
        if applicant is None or applicant.deleted:
            raise Problem(404, "Applicant not found")
        return applicant

    def create(self, level_name: str, told: Mapping[str, Any]) -> Applicant:
        known = {"externalUserId", "email", "phone", "type", "lang", "sourceKey", "metadata", "fixedInfo", "info"}
        external = told.get("externalUserId")
        if not isinstance(external, str) or not external or not told.keys() <= known:
            raise Problem(400, "Malformed applicant")
        level = self.levels.get(level_name)
        if level is None:
            raise Problem(404, f"Level '{level_name}' not found")
        if told.get("type", INDIVIDUAL) != level.kind:
            raise Problem(400, "The level is for applicants of another type")
        for present in self.applicants.values():
            if present.external == external:
                raise Problem(409, f"Applicant with external user id '{external}' already exists: {present.id}")
        reference = sha256(external.encode()).hexdigest()[:24]
        made = self.applicants[reference] = Applicant(id=reference, external=external, level=level, told=told)
        return made

    def add_image(self, reference: str, metadata: Any, content: bytes) -> int:
        applicant = self.of(reference)
        final = applicant.result is not None and applicant.result.get("reviewRejectType") == "FINAL"
        if applicant.status in UNDER_WAY:
            raise Problem(409, "The applicant is being checked", 1006, "no-upload-verification-in-progress")
        if final:
            raise Problem(409, "The applicant was rejected for good", 1009, "applicant-with-final-reject")
        known = {each for kinds in STEPS.values() for each in kinds}
        if not isinstance(metadata, dict) or metadata.get("idDocType") not in known:
            raise Problem(400, "Unknown idDocType")
        country = metadata.get("country")
        if not isinstance(country, str) or len(country) != 3 or not country.isascii() or not country.isupper():
            raise Problem(400, "country must have three letters")
        if metadata["idDocType"] not in {each for step in applicant.level.steps for each in STEPS[step]}:
            raise Problem(409, "The level does not ask for it", 1010, "doc-type-not-in-req-docs")
        if not content:
            raise Problem(400, "The file is empty", 1003, "empty-file")
        if not content.startswith(MAGIC):
            raise Problem(400, "The file cannot be read", 1004, "corrupted-file")
        digest = sha256(content).digest()
        if any(image.digest == digest for image in applicant.images):
            raise Problem(409, "The document was uploaded before", 1000, "duplicate-document")
        self._images += 1
        applicant.images = [*applicant.images, Image(self._images, metadata["idDocType"], country, digest)]
        return self._images

    def begin(self, reference: str) -> None:
        applicant = self.of(reference)
        if applicant.status in UNDER_WAY:
            raise Problem(409, "The applicant is being checked")
        if any(not applicant.images_of(step) for step in applicant.level.steps):
            raise Problem(400, "Not all required documents are there")
        applicant.status, applicant.result = "pending", None
        applicant.reviews += 1

    def complete(self, reference: str, result: Mapping[str, Any], red_steps: Sequence[str] = ()) -> None:
        """Record a decision by Sumsub's staff, or by `testCompleted` in the sandbox."""
        answer, reject = result.get("reviewAnswer"), result.get("reviewRejectType")
        if answer not in ANSWERS or (answer == "RED") != (reject in REJECT_TYPES):
            raise Problem(400, "Malformed review result")
        applicant = self.of(reference)
        applicant.status, applicant.result, applicant.red_steps = "completed", dict(result), tuple(red_steps)

    def payload(self, external: str, kind: str) -> bytes:
        """A notification's body: it has no personal data."""
        applicant = self.named(external)
        told: dict[str, Any] = {
            "applicantId": applicant.id,
            "inspectionId": applicant.id[::-1],
            "applicantType": applicant.level.kind,
            "correlationId": "req-7a10",
            "levelName": applicant.level.name,
            "sandboxMode": True,
            "externalUserId": external,
            "type": kind,
            "reviewStatus": applicant.status,
            "createdAtMs": "2026-11-23 05:12:58.123",
            "clientId": "cambist",
        }
        if applicant.result is not None:
            told["reviewResult"] = dict(applicant.result)
        return json.dumps(told, ensure_ascii=False).encode()
