"""Verification of end clients, by a merchant's front end or on the hosted page, with documents or by the verifier's
form; and its final checks."""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from cambist.core.domain.kyc.clients import read_operation
from cambist.ports.kyc import CheckStatus
from tests.simulation.applicant_plans import Applicant
from tests.simulation.merchants import Merchant
from tests.simulation.network import HttpAnswer, NoAnswer
from tests.simulation.plan import ENDS, FAULTS_END
from tests.simulation.receivers import given_up

if TYPE_CHECKING:
    from tests.simulation.verifier import CheckRow
    from tests.simulation.world import World

DOCUMENTS, REDIRECT = 1, 2
"""The merchants that ask for verification, by documents and by the verifier's form."""
_ANSWERS = {
    CheckStatus.FORM: "required",
    CheckStatus.PROCESSING: "processing",
    CheckStatus.VERIFIED: "verified",
    CheckStatus.FAILED: "failed",
}


@dataclass
class Person:
    """An applicant, with everything observed about the verification."""

    plan: Applicant
    answers: list[str] = field(default_factory=list)
    session: str = ""
    """Session of the last link to the hosted page."""
    registered: int = 0
    """How often a registration was answered."""


class Registry:
    """A merchant's clients that are verified."""

    def __init__(self, world: "World", merchant: Merchant) -> None:
        self._world = world
        self._merchant = merchant
        self._chance = world.chance.of(f"registry/{merchant.number}")
        self.people: list[Person] = []

    async def verify(self, plan: Applicant) -> None:
        """Verify a person, from the first request to the last attempt. After a refusal, try once more."""
        person, world = Person(plan), self._world
        self.people.append(person)
        world.verifier.expect({plan.phone: list(plan.verdicts)})
        world.counts["applicants"] += 1
        world.begin(self._fill_in(plan))
        for _ in range(3):
            if await self.check(person) in ("required", "failed"):
                await asyncio.gather(*(self._register(person) for _ in range(2 if plan.doubled else 1)))
            while await self.check(person) == "processing" and world.loop.time() < FAULTS_END:
                await self._sleep(self._chance.uniform(5.0, 600.0))
            if person.answers[-1] == "verified" or world.loop.time() > FAULTS_END:
                return
            await self._sleep(self._chance.uniform(1.0, 900.0))

    async def check(self, person: Person) -> str:
        """Return the client's status as the merchant sees it."""
        answer = await self._insist("/api/v1/kyc/check", {"phone": person.plan.phone}, by_page=False)
        if answer.status != 200:
            self._world.fault(f"{person.plan.phone}: how it stands was answered {answer.status} {answer.body!r}")
            return "unknown"
        status: str = answer.json["status"]
        if person.answers and person.answers[-1] == "verified" and status not in ("verified", "failed"):
            self._world.fault(f"{person.plan.phone}: seen verified, and {status} later")
        person.answers.append(status)
        return status

    async def _register(self, person: Person) -> None:
        """Register with the data that the account's flow needs, each time with new documents."""
        by_page, given = person.plan.by_page, {"phone": person.plan.phone}
        if by_page:
            answer = await self._insist("/api/v1/kyc/check", given, by_page=False)
            url = (answer.json.get("kyc_url") if answer.status == 200 else None) or ""
            person.session = parse_qs(urlsplit(url).query).get("session", [person.session])[0]
            given = {"session": person.session}
        path = "/kyc" if by_page else "/api/v1/kyc"
        if self._merchant.number == REDIRECT:
            body: dict[str, str] = {**given, "email": "client@example.com", "user_type": "individual"}
        else:
            asked = {"content_type": "image/jpeg"} | ({"session": given["session"]} if by_page else {})
            places = [await self._insist(f"{path}/upload-url", asked, by_page=by_page) for _ in range(2)]
            if any(each.status != 200 for each in places):
                if not by_page or places[-1].status != 404:  # the link's hour may be over
                    self._world.fault(f"{person.plan.phone}: no place for documents: {places[-1].body!r}")
                return
            for place in places:
                await self._sleep(self._chance.uniform(0.1, 20.0))
                self._world.files.put(place.json["upload_url"], 1000)
            body = {**given, "selfie_key": places[0].json["file_key"], "document_key": places[1].json["file_key"]}
        answer = await self._insist(f"{path}/register", body, by_page=by_page)
        person.registered += 1
        # The documents may have been taken by the very request whose answer was lost.
        if answer.status not in (200, 400, 404) and answer.code != "KYC_PERSIST_FAILED":
            self._world.fault(f"{person.plan.phone}: its registration was answered {answer.status} {answer.body!r}")

    async def _fill_in(self, plan: Applicant) -> None:
        """Let the person fill in the verifier's form each time it is requested."""
        while plan.fills_after >= 0 and self._world.loop.time() < FAULTS_END:
            await self._sleep(plan.fills_after + self._chance.uniform(10.0, 100.0))
            self._world.verifier.fill_in(plan.phone)

    async def _insist(self, path: str, body: dict[str, str], *, by_page: bool) -> HttpAnswer:
        """Repeat the request until there is a definite answer; the page uses no keys."""
        while True:
            answer = await (self._by_page(path, body) if by_page else self._merchant.insist("POST", path, body, None))
            if answer.status not in (0, 429, 502, 503):
                return answer
            if self._world.loop.time() > ENDS + 3600:
                self._world.fault(f"{path}: nobody answers")
                return answer
            await self._sleep(self._chance.uniform(2.0, 60.0))

    async def _by_page(self, path: str, body: dict[str, str]) -> HttpAnswer:
        headers = ((b"content-type", b"application/json"),)
        try:
            async with asyncio.timeout(30.0):
                return await self._world.request("POST", path, headers, msgspec.json.encode(body))
        except (TimeoutError, NoAnswer):
            return HttpAnswer(0, b"")

    async def _sleep(self, seconds: float) -> None:
        await self._world.network.sleep(seconds)

    async def judge(self) -> None:
        """Check that merchants see the verifier's results, and that a person has one check at a time."""
        for person in self.people:
            status = await self.check(person)
            phone = person.plan.phone
            rows = [row for row in self._world.verifier.checks.values() if row.phone == phone]
            if any(row.beside for row in rows):
                self._world.fault(f"{phone}: {len(rows)} checks were begun, and one before another was refused")
            expected = self._expected(rows)
            if status not in expected:
                self._world.fault(f"{phone} is {status}, and should be {expected}: {rows}")
            await self._judge_told(phone, rows)

    def _expected(self, rows: "list[CheckRow]") -> set[str]:
        """Return the statuses that fit the last check. Only its notification reports that monitoring revoked one."""
        if not rows:
            return {"required"}
        last = rows[-1]
        if last.was_green and last.status is CheckStatus.FAILED:
            told = self._world.post.told.get(last.operation)
            heard = told is not None and last.revoked_at is not None and told >= last.revoked_at
            return {"failed"} if heard else {"failed", "verified"}
        return {_ANSWERS[last.status]}

    async def _judge_told(self, phone: str, rows: "list[CheckRow]") -> None:
        """Check that each decision has one event; only events that were given up may be missing."""
        told = sorted(
            (each for each in self._merchant.receiver.told.values() if each.body.get("phone") == phone),
            key=lambda each: each.sequence,
        )
        subject = read_operation(rows[0].operation) if rows else None
        lost = set[int]()
        if subject is not None:
            lost = await given_up(self._world.office, subject[0], {each.sequence for each in told})
        found: list[Any] = [(each.sequence, each.body["status"]) for each in told]
        green = any(row.was_green for row in rows)
        decided = sum(row.status in (CheckStatus.FAILED, CheckStatus.VERIFIED) for row in rows)
        if len({*(number for number, _ in found), *lost}) != decided:
            self._world.fault(f"{phone}: {found} was told, {sorted(lost)} given up, of {decided} decisions")
        said = [status for _, status in found]
        # If monitoring revokes a check before the service learns of its approval, the service sees a refusal.
        if len(rows) > said.count("failed") + len(lost) + 1:
            self._world.fault(f"{phone}: {len(rows)} checks were begun, and {found} was told")
        if said.count("verified") > green or "verified" in said[:-1]:
            self._world.fault(f"{phone}: {found} was told, and the verifier found {rows}")
