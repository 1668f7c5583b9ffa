"""Comparison of a repeated request with the receipt that was requested first."""

from hashlib import sha256

import msgspec

from ...ports.receipts import ReceiptRequest


def digest_of(request: ReceiptRequest) -> str:
    """Return the same text for requests of the same receipt."""
    receipt = (request.kind, request.receipt, request.prepaid_kopecks, request.correction)
    return sha256(msgspec.json.encode(receipt)).hexdigest()
