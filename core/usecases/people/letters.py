"""Letters to merchants' people, sent by a durable job (docs/dashboard.md "Letters")."""

from collections.abc import Mapping
from datetime import timedelta

import msgspec

from ....ports.bundle import Ports
from ....ports.faults import Fault, OutcomeUnknown, Refused
from ....ports.jobs import Job
from ....ports.mailer import MailMessage
from ....ports.storage import Unit
from ...domain.people.letters import TEXTS
from ...domain.people.people import Letter
from ..common.encrypted import letter_aad
from ..common.schedule import FollowUp, reschedule_at
from ..common.units import retrying

SEND = FollowUp("person.letter")
_PAUSES = (timedelta(seconds=30), timedelta(minutes=5), timedelta(hours=1), timedelta(hours=6))
PREFIX = "ltr_"


def add_letter(ports: Ports, unit: Unit, to: str, kind: str, language: str, values: Mapping[str, str]) -> bool:
    """Add a letter and its job to the unit. Return False if e-mail is not connected."""
    if ports.mailer is None:
        return False
    subject, text = TEXTS[language][kind]
    now = ports.clock.real()
    letter_id = f"{PREFIX}{ports.ids.uuid()}"
    message = MailMessage(id=letter_id, to=to, subject=subject.format(**values), text=text.format(**values))
    body = ports.vault.encrypt(msgspec.json.encode(message), letter_aad(letter_id))
    unit[Letter].add(Letter(id=letter_id, body=body, created_at=now))
    unit[Job].add(SEND.first(letter_id, now, now))
    return True


async def send_letter(ports: Ports, job: Job) -> None:
    """Send the letter of the job. It is given up after the last pause, or when the server rejects it for good."""
    letter = await ports.storage.get(Letter, job.argument)
    if letter is None or ports.mailer is None:
        await reschedule_at(ports, job, None)
        return
    plain = ports.vault.decrypt(letter.body, letter_aad(letter.id))
    try:
        await ports.mailer.send(msgspec.json.decode(plain, type=MailMessage))
    except (Refused, OutcomeUnknown):
        # A letter that may have arrived is not sent twice: its link would only confuse.
        await _done(ports, letter, job)
    except Fault:
        if job.attempts > len(_PAUSES):
            await _done(ports, letter, job)
        else:
            await reschedule_at(ports, job, ports.clock.real() + _PAUSES[job.attempts - 1])
    else:
        await _done(ports, letter, job)


async def _done(ports: Ports, letter: Letter, job: Job) -> None:
    async def work(unit: Unit) -> None:
        found = await unit[Letter].get(letter.id)
        if found is not None:
            unit[Letter].remove(found)

    await retrying(ports.storage, work)
    await reschedule_at(ports, job, None)
