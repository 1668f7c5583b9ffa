"""Slips over exchanges of clients, and over who they are."""

from tests.simulation.mutants.slips import Slip, domain, usecase

EXCHANGES: dict[str, Slip] = {
    "a late deposit counts for an exchange": domain(
        "exchanges/funds",
        "    in_time = [each for each in fresh if each.at < exchange.expires_at]\n",
        "    in_time, fresh = fresh, []\n",
    ),
    "a deposit that is not final counts for an exchange": domain(
        "exchanges/funds",
        "for each in seen if each.is_final and not each.is_taken_back and each.amount > 0}",
        "for each in seen if not each.is_taken_back and each.amount > 0}",
    ),
    "an excess deposit does not go to suspense": domain(
        "exchanges/funds",
        "    suspended = 0 if is_dust else beyond\n",
        "    suspended = 0 if reason == 'excess' else beyond\n",
    ),
    "RUB that are taken back in the hold are sent for all the same": usecase(
        "exchanges/steps",
        "        if less.status is _S.RUB_RECEIVED and gone.held < asked_units(less):\n",
        "        if less.status is _S.PENDING and gone.held < asked_units(less):\n",
    ),
    "USDT are sent without the hold": domain(
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
    "an exchange's end has no event": usecase(
        "exchanges/steps",
        "    if after.is_final:\n        await _announce(ports, unit, after, exchange.status)\n",
        "    if after.is_final and exchange.tx_hash:\n        await _announce(ports, unit, after, exchange.status)\n",
    ),
    "a cancellation does not check whether money came": usecase(
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
    "a verification that monitoring withdrew still counts": domain(
        "kyc/kyc",
        "        if finding.status is not KycStatus.FAILED or heard:\n            return client\n",
        "        if finding.status is not KycStatus.REQUIRED or heard:\n            return client\n",
    ),
    "a verifier's decision has no event": usecase(
        "kyc/results", "        await announce_client(ports, unit, subject, after)\n", ""
    ),
    "a client under review counts as verified": usecase(
        "kyc/results",
        "    CheckStatus.PROCESSING: KycStatus.PROCESSING,\n    CheckStatus.VERIFIED",
        "    CheckStatus.PROCESSING: KycStatus.VERIFIED,\n    CheckStatus.VERIFIED",
    ),
}
