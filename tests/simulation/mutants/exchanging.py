"""Slips over exchanges of clients, and over who they are."""

from tests.simulation.mutants.slips import Slip, domain, usecase

EXCHANGES: dict[str, Slip] = {
    "what came too late counts for an exchange": domain(
        "exchanges/funds",
        "    in_time = [each for each in fresh if each.at < exchange.expires_at]\n",
        "    in_time, fresh = fresh, []\n",
    ),
    "what is not final counts for an exchange": domain(
        "exchanges/funds",
        "for each in seen if each.is_final and not each.is_taken_back and each.amount > 0}",
        "for each in seen if not each.is_taken_back and each.amount > 0}",
    ),
    "what is beyond what was asked is not suspended": domain(
        "exchanges/funds",
        "    suspended = 0 if is_dust else beyond\n",
        "    suspended = 0 if reason == 'excess' else beyond\n",
    ),
    "RUB that are taken back in the hold are sent for all the same": usecase(
        "exchanges/steps",
        "        if less.status is _S.RUB_RECEIVED and gone.held < asked_units(less):\n",
        "        if less.status is _S.PENDING and gone.held < asked_units(less):\n",
    ),
    "what is held is sent at once": domain(
        "exchanges/exchanges",
        "hold_until=now + HOLD if after is _S.RUB_RECEIVED",
        "hold_until=now if after is _S.RUB_RECEIVED",
    ),
    "each try of a remittance is another operation at the bank": usecase(
        "exchanges/remittances",
        "        operation=part.operation,\n        phone=",
        '        operation=f"{part.operation}-{exchange.version}",\n        phone=',
    ),
    "the second part goes before the first has arrived": domain(
        "exchanges/payouts",
        "    sent = [part for part in parts if part.status is _S.SENT]\n    if sent:\n        return sent[0]\n",
        "    sent = [part for part in parts if part.status is _S.SENT]\n"
        "    if sent and all(part.status is not _S.PLANNED for part in parts):\n        return sent[0]\n",
    ),
    "an exchange that failed gives nothing back": usecase(
        "exchanges/steps",
        '        await _release(unit, exchange, known, failed_release(exchange), "failed")\n',
        "        known.clear()\n",
    ),
    "an exchange's end is told to nobody": usecase(
        "exchanges/steps",
        "    if after.is_final:\n        await _announce(ports, unit, after, exchange.status)\n",
        "    if after.is_final and exchange.tx_hash:\n        await _announce(ports, unit, after, exchange.status)\n",
    ),
    "who calls an exchange off does not look whether money came": usecase(
        "exchanges/exchanges",
        "    _require_cancellable(await take_funds(ports, exchange, seen), allowed)\n"
        "    if any(not incoming.is_final for incoming in seen):\n",
        "    if len(seen) > 100:\n",
    ),
}

CLIENTS: dict[str, Slip] = {
    "each try of a registration is another check at the verifier": usecase(
        "kyc/results",
        "        return await provider.register(_open_request(ports, subject))\n",
        "        request = _open_request(ports, subject)\n"
        '        request = msgspec.structs.replace(request, operation=f"{request.operation}{ports.ids.uuid()[-4:]}")\n'
        "        return await provider.register(request)\n",
    ),
    "what monitoring takes back counts on": domain(
        "kyc/kyc",
        "        if finding.status is not KycStatus.FAILED or heard:\n            return client\n",
        "        if finding.status is not KycStatus.REQUIRED or heard:\n            return client\n",
    ),
    "what a verifier found is told to nobody": usecase(
        "kyc/results", "        await announce_client(ports, unit, subject, after)\n", ""
    ),
    "who is looked at counts as verified": usecase(
        "kyc/results",
        "    CheckStatus.PROCESSING: KycStatus.PROCESSING,\n    CheckStatus.VERIFIED",
        "    CheckStatus.PROCESSING: KycStatus.VERIFIED,\n    CheckStatus.VERIFIED",
    ),
}
