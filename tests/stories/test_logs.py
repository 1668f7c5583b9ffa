"""The log of `cambist serve` (docs/operations.md "Logs"): secrets, payers' names and phones and document numbers never
appear in a log or an error. The service logs at its most verbose level, and everything fails that can fail from
outside or through broken data."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.receivers import Receiver
from tests.stories.merchant import Merchant, merchant
from tests.stories.processes import WEBHOOK_SECRET, Installation, installation

CANARIES = {
    "webhook secret": "canary-webhook-secret-0123456789",
    "replaced webhook secret": WEBHOOK_SECRET,
    "phone": "+79161237788",
    "payer": "Канарейкина Мария",
    "payer as the bank has it": "КАНАРЕЙКИНА М. П.",
    "document": "CANARY4509",
    "e-mail": "canary@merchant.example",
    "wrong secret": "c0ffee" * 10 + "c0ff",
}
ORDER: dict[str, Any] = {
    "client_phone": CANARIES["phone"],
    "client_email": CANARIES["e-mail"],
    "payer": {"full_name": CANARIES["payer"], "document_number": CANARIES["document"]},
}


@pytest.mark.parametrize("form", ["text", "json"])
async def test_no_secret_is_ever_said_and_errors_carry_their_request(tmp_path: Path, form: str) -> None:
    with installation(tmp_path, log_level="debug", log_format=form) as place:
        async with Receiver() as receiver:
            receiver.answer_with(500, 200)
            account = await place.account(receiver.url)
            service, base = place.serve()
            wish = f"webhook_secret={CANARIES['webhook secret']}"
            command = await asyncio.to_thread(place.call, "account", "set", account.account_id, wish, "--json")
            assert command.status == 0
            async with merchant(base, account.test) as shop:
                await play_with_canaries(shop)
                await receiver.arrived(2)
                request_ids = await break_things(place, shop)
        assert service.terminate() == 0
    errors = [line for line in service.err.splitlines() if "unhandled error" in line]
    for request_id in request_ids:
        assert any(request_id in line for line in errors), "an error does not say whose it is"
    assert service.err.count("Traceback") >= len(request_ids)
    secrets = {"API secret": account.test.api_secret, "live API secret": account.live.api_secret, **CANARIES}
    said = readable(service.out + service.err + command.out + command.err)
    assert [name for name, secret in secrets.items() if secret in said] == []


def readable(text: str) -> str:
    """Return the text, also without JSON's escapes and with Python's bytes decoded."""
    without = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    as_bytes = re.sub(rb"\\+x([0-9a-fA-F]{2})", lambda found: bytes.fromhex(found[1].decode()), text.encode())
    return "\n".join((text, without, as_bytes.decode("utf-8", "replace")))


async def play_with_canaries(shop: Merchant) -> None:
    """A good payment with all personal data, and the same data in requests that are refused."""
    payment = await shop.create(**ORDER)
    assert payment.status == 201
    paid = await shop.simulate(payment.json["id"], outcome="paid", payer_name=CANARIES["payer as the bank has it"])
    assert paid.json["payer_name"] == CANARIES["payer as the bank has it"]
    assert (await shop.create(**{**ORDER, "client_phone": f"{CANARIES['phone']}x"})).status == 422
    assert (await shop.create(**{**ORDER, "amount_rub": "1"})).json["error"]["code"] == "AMOUNT_BELOW_MINIMUM"
    assert (await shop.create(**{**ORDER, CANARIES["payer"]: 1})).status == 400
    assert (await shop.ask("GET", f"/payments?q={CANARIES['phone']}", secret=CANARIES["wrong secret"])).status == 401


async def break_things(place: Installation, shop: Merchant) -> list[str]:
    """Damage the data behind the service's back. The ids of the requests that failed for it."""
    payment = await shop.paid(**ORDER)
    place.damage(
        f"UPDATE payments SET payer_name = x'0102' WHERE id = '{payment['id']}'",
        "CREATE TRIGGER broken BEFORE INSERT ON payments BEGIN SELECT RAISE(ABORT, 'out of order'); END",
    )
    failed = [await shop.ask("GET", f"/payments/{payment['id']}"), await shop.create(**ORDER)]
    for answer in failed:
        assert (answer.status, answer.json["error"]["code"]) == (500, "INTERNAL_ERROR")
    return [answer.headers["X-Request-Id"] for answer in failed]
