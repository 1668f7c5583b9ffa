"""Passkeys checked by the package webauthn. A passkey must verify its user, so it counts as two factors."""

import base64
import ipaddress
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from ...ports.passkeys import NewPasskey, PasskeyRefused, PasskeyReply, UsedPasskey

_LONGEST = 16_384
_NAME = "cambist"


class WebauthnPasskeys:
    """Implements the port PasskeyVerifier. The library is imported at the first use."""

    def __init__(self, app_url: str) -> None:
        parts = urlsplit(app_url)
        host = (parts.hostname or "").lower()
        self._rp_id = host if host and not _is_address(host) else None
        usual = {"https": 443, "http": 80}.get(parts.scheme)
        port = "" if parts.port in (None, usual) else f":{parts.port}"
        self._origin = f"{parts.scheme}://{host}{port}"

    @property
    def rp_id(self) -> str | None:
        """The host of `app_url`, unless it is an address."""
        return self._rp_id

    def creation_options(self, *, challenge: bytes, user_id: str, user_name: str, known: Sequence[str]) -> str:
        """Return the options for a new passkey."""
        from webauthn import generate_registration_options, options_to_json
        from webauthn.helpers import structs

        return options_to_json(
            generate_registration_options(
                rp_id=self._host(),
                rp_name=_NAME,
                user_id=user_id.encode(),
                user_name=user_name,
                user_display_name=user_name,
                challenge=challenge,
                attestation=structs.AttestationConveyancePreference.NONE,
                authenticator_selection=structs.AuthenticatorSelectionCriteria(
                    resident_key=structs.ResidentKeyRequirement.REQUIRED,
                    user_verification=structs.UserVerificationRequirement.REQUIRED,
                ),
                exclude_credentials=[structs.PublicKeyCredentialDescriptor(id=_decoded(each)) for each in known],
            )
        )

    def request_options(self, *, challenge: bytes) -> str:
        """Return the options for a sign-in."""
        from webauthn import generate_authentication_options, options_to_json
        from webauthn.helpers import structs

        return options_to_json(
            generate_authentication_options(
                rp_id=self._host(),
                challenge=challenge,
                user_verification=structs.UserVerificationRequirement.REQUIRED,
            )
        )

    def read(self, reply: str) -> PasskeyReply:
        """Read a reply. Raises: PasskeyRefused."""
        document = self._document(reply)
        try:
            response = document["response"]
            client = json.loads(_decoded(response["clientDataJSON"]))
            handle = response.get("userHandle")
            if client.get("crossOrigin"):
                raise PasskeyRefused("the page was framed")
            return PasskeyReply(
                credential_id=str(document["id"]),
                challenge=_decoded(client["challenge"]),
                user_handle=_decoded(handle).decode("ascii") if handle else None,
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise PasskeyRefused(type(error).__name__) from None

    def register(self, reply: str, challenge: bytes) -> NewPasskey:
        """Verify a new passkey. Raises: PasskeyRefused."""
        from webauthn import verify_registration_response
        from webauthn.helpers.exceptions import WebAuthnException

        try:
            found = verify_registration_response(
                credential=self._document(reply),
                expected_challenge=challenge,
                expected_rp_id=self._host(),
                expected_origin=self._origin,
                require_user_verification=True,
            )
        except (WebAuthnException, ValueError, TypeError, KeyError, RecursionError) as error:
            raise PasskeyRefused(type(error).__name__) from None
        return NewPasskey(
            credential_id=_encoded(found.credential_id),
            public_key=found.credential_public_key,
            sign_count=found.sign_count,
            is_synced=found.credential_backed_up,
        )

    def check(self, reply: str, challenge: bytes, *, public_key: bytes, sign_count: int) -> UsedPasskey:
        """Verify a sign-in. Raises: PasskeyRefused."""
        from webauthn import verify_authentication_response
        from webauthn.helpers.exceptions import WebAuthnException

        try:
            found = verify_authentication_response(
                credential=self._document(reply),
                expected_challenge=challenge,
                expected_rp_id=self._host(),
                expected_origin=self._origin,
                credential_public_key=public_key,
                credential_current_sign_count=sign_count,
                require_user_verification=True,
            )
        except (WebAuthnException, ValueError, TypeError, KeyError, RecursionError) as error:
            raise PasskeyRefused(type(error).__name__) from None
        return UsedPasskey(sign_count=found.new_sign_count, is_synced=found.credential_backed_up)

    def _host(self) -> str:
        if self._rp_id is None:
            raise PasskeyRefused("browsers offer no passkeys at an address: app_url needs a name")
        return self._rp_id

    @staticmethod
    def _document(reply: str) -> dict[str, Any]:
        if len(reply) > _LONGEST:
            raise PasskeyRefused("too long")
        try:
            document = json.loads(reply)
        except (ValueError, RecursionError):  # the second: thousands of brackets
            raise PasskeyRefused("no JSON") from None
        if not isinstance(document, dict):
            raise PasskeyRefused("no object")
        return document


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
