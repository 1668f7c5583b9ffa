"""Replies of authenticators at the adapter that checks them: only an exact one passes
(docs/dashboard.md "Passkeys")."""

import base64
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import cbor2
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from cambist.adapters.passkeys.webauthn import WebauthnPasskeys
from cambist.ports.passkeys import PasskeyRefused
from tests.tables import table

HOST, ORIGIN = "pay.example", "https://pay.example"
CHALLENGE = bytes(range(32))
PRESENT, VERIFIED, WITH_KEY = 0x01, 0x04, 0x40


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Authenticator:
    """An authenticator in software, which signs any challenge."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = b"credential-of-olga"

    def client(self, kind: str, **more: Any) -> bytes:
        given = {"type": kind, "challenge": encoded(CHALLENGE), "origin": ORIGIN, "crossOrigin": False, **more}
        return json.dumps(given).encode()

    def data(self, flags: int, count: int, host: str) -> bytes:
        return sha256(host.encode()).digest() + bytes([flags]) + count.to_bytes(4, "big")

    def created(self, *, flags: int = PRESENT | VERIFIED, host: str = HOST, **client: Any) -> str:
        """A reply to the options for a new passkey."""
        numbers = self.key.public_key().public_numbers()
        point = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        made = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + cbor2.dumps(point)
        data = self.data(flags | WITH_KEY, 0, host) + made
        response = {
            "clientDataJSON": encoded(self.client("webauthn.create", **client)),
            "attestationObject": encoded(cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})),
        }
        return self.reply(response)

    def used(
        self, *, flags: int = PRESENT | VERIFIED, host: str = HOST, count: int = 0, spoil: bytes = b"", **client: Any
    ) -> str:
        """A reply to the options for a sign-in."""
        said = self.client("webauthn.get", **client)
        data = self.data(flags, count, host)
        signature = self.key.sign(data + sha256(said + spoil).digest(), ec.ECDSA(hashes.SHA256()))
        response = {
            "clientDataJSON": encoded(said),
            "authenticatorData": encoded(data),
            "signature": encoded(signature),
            "userHandle": encoded(b"usr_1"),
        }
        return self.reply(response)

    def reply(self, response: dict[str, str]) -> str:
        name = encoded(self.id)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})


def is_accepted(passkeys: WebauthnPasskeys, reply: str, verify: Callable[[], object]) -> bool:
    """Whether a reply passes the two steps that the service takes."""
    try:
        passkeys.read(reply)
        verify()
    except PasskeyRefused:
        return False
    return True


def checked(reply: str, authenticator: Authenticator, *, count: int = 0) -> int:
    """The counter of an accepted sign-in."""
    passkeys = WebauthnPasskeys(ORIGIN)
    known = passkeys.register(authenticator.created(), CHALLENGE)
    assert passkeys.read(reply).challenge == CHALLENGE
    return passkeys.check(reply, CHALLENGE, public_key=known.public_key, sign_count=count).sign_count


def test_exact_replies_pass() -> None:
    authenticator = Authenticator()
    assert checked(authenticator.used(count=8), authenticator, count=7) == 8
    assert checked(authenticator.used(), authenticator) == 0
    assert WebauthnPasskeys(ORIGIN).read(authenticator.used()).user_handle == "usr_1"


FOREIGN: list[dict[str, Any]] = [
    {"origin": "https://evil.example"},
    {"origin": "https://pay.example.evil.example"},
    {"origin": "http://pay.example"},
    {"origin": "https://pay.example:8443"},
    {"origin": "https://shop.pay.example"},
    {"origin": ""},
    {"challenge": encoded(bytes(32))},
    {"host": "evil.example"},
    {"host": "example"},
    {"flags": PRESENT},
    {"flags": VERIFIED},
    {"flags": 0},
    {"crossOrigin": True},
]


@table("change", [*FOREIGN, {"type": "webauthn.create"}, {"spoil": b"x"}])
def test_sign_in_that_differs_in_anything_is_refused(change: dict[str, Any]) -> None:
    authenticator = Authenticator()
    reply = authenticator.used(**{name: value for name, value in change.items() if name != "type"})
    if "type" in change:
        document = json.loads(reply)
        document["response"]["clientDataJSON"] = encoded(authenticator.client(change["type"]))
        reply = json.dumps(document)
    passkeys = WebauthnPasskeys(ORIGIN)
    known = passkeys.register(authenticator.created(), CHALLENGE)
    assert not is_accepted(
        passkeys, reply, lambda: passkeys.check(reply, CHALLENGE, public_key=known.public_key, sign_count=0)
    )


@table("change", FOREIGN)
def test_new_passkey_that_differs_in_anything_is_refused(change: dict[str, Any]) -> None:
    reply = Authenticator().created(**change)
    passkeys = WebauthnPasskeys(ORIGIN)
    assert not is_accepted(passkeys, reply, lambda: passkeys.register(reply, CHALLENGE))


@table(("kept", "sent"), [(7, 7), (7, 6), (7, 0), (1, 1)])
def test_counter_that_does_not_rise_is_refused(kept: int, sent: int) -> None:
    authenticator = Authenticator()
    with pytest.raises(PasskeyRefused):
        checked(authenticator.used(count=sent), authenticator, count=kept)


def test_key_of_another_authenticator_is_refused() -> None:
    authenticator = Authenticator()
    with pytest.raises(PasskeyRefused):
        checked(Authenticator().used(), authenticator)


@table(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        "1",
        "\0",
        "{" * 5000,
        "[" * 16_000,
        "[" * 8000 + "]" * 8000,
        '{"id": 1}',
        '{"id": "a", "response": {}}',
        "x" * 20_000,
    ],
)
def test_text_that_is_no_reply_is_refused(text: str) -> None:
    with pytest.raises(PasskeyRefused):
        WebauthnPasskeys(ORIGIN).read(text)


def deep(levels: int) -> str:
    """A reply whose inner parts are nested deeply."""
    document = json.loads(Authenticator().created())
    document["response"]["clientDataJSON"] = encoded(b"[" * levels)
    return json.dumps(document)


@table("spoil", [b"", b"\x81" * 8000, b"\xff", b"\xbf" * 100, cbor2.dumps({"fmt": "none"}), cbor2.dumps([])])
def test_attestation_of_another_shape_is_refused(spoil: bytes) -> None:
    document = json.loads(Authenticator().created())
    document["response"]["attestationObject"] = encoded(spoil)
    with pytest.raises(PasskeyRefused):
        WebauthnPasskeys(ORIGIN).register(json.dumps(document), CHALLENGE)


def test_client_data_nested_deeply_is_refused() -> None:
    with pytest.raises(PasskeyRefused):
        WebauthnPasskeys(ORIGIN).read(deep(8000))
    with pytest.raises(PasskeyRefused):
        WebauthnPasskeys(ORIGIN).register(deep(8000), CHALLENGE)


@table(
    "spoil", [b"", b"\x81" * 4000, b"\xff", cbor2.dumps({1: 2}), cbor2.dumps({1: 2, 3: -7, -1: 1, -2: b"", -3: b""})]
)
def test_key_of_another_shape_is_refused(spoil: bytes) -> None:
    """The kept key is ours, but a reply of a new passkey brings one of its own."""
    authenticator = Authenticator()
    made = bytes(16) + len(authenticator.id).to_bytes(2, "big") + authenticator.id + spoil
    data = authenticator.data(PRESENT | VERIFIED | WITH_KEY, 0, HOST) + made
    document = json.loads(authenticator.created())
    attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
    document["response"]["attestationObject"] = encoded(attestation)
    passkeys = WebauthnPasskeys(ORIGIN)

    def verify() -> None:
        found = passkeys.register(json.dumps(document), CHALLENGE)
        passkeys.check(authenticator.used(), CHALLENGE, public_key=found.public_key, sign_count=0)

    assert not is_accepted(passkeys, json.dumps(document), verify)
