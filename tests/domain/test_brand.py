"""Brands of the payer's pages: colours that can be read, logos without hidden parts, contacts
(docs/window.md "Your brand")."""

import base64
import random
import re

import pytest

from cambist.core.domain.payer.brand import Brand
from cambist.core.domain.payer.colors import (
    AA,
    DARK,
    EDGE,
    LIGHT,
    Color,
    Grounds,
    adjustments,
    contrast,
    palette,
    read_color,
    stylesheet,
)
from cambist.core.domain.payer.logos import BYTES_MOST, read_picture
from tests.tables import table

# 20 x 18 pixels, each with "secret place" in its metadata.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAABQAAAASAQMAAABhHmxTAAAAFHRFWHRDb21tZW50AHNlY3JldCBwbGFjZWgPqY0AAAAGUExURcgeKAAA/8+IZKkA"
    "AAAySURBVHjaJcmxDcAgAMAwS3mkp3IqJ3RkQNChXm14MuVdWbLlyBUYYsYbK3acuP8b4QNHJQ5IZ0v2+QAAAABJRU5ErkJggg=="
)
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/4QAwRXhpZgAATU0AKgAAAAgAAQEOAAIAAAANAAAAGgAAAABzZWNyZXQgcGxhY2UAAP/+AA5zZWNyZXQgcGxh"
    "Y2X/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4r"
    "K06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/wgARCAASABQDASIAAhEBAxEB/8QAFgABAQEA"
    "AAAAAAAAAAAAAAAAAAEE/8QAFwEAAwEAAAAAAAAAAAAAAAAAAAECBP/aAAwDAQACEAMQAAABz1J1lAEuCl//xAAWEAADAAAAAAAAAAAAAAAAAAAA"
    "ATD/2gAIAQEAAQUCgj//xAAYEQACAwAAAAAAAAAAAAAAAAAAMQEQEf/aAAgBAwEBPwFGVCP/xAAYEQADAQEAAAAAAAAAAAAAAAAAATEQEf/aAAgB"
    "AgEBPwGnXjp//8QAFBABAAAAAAAAAAAAAAAAAAAAMP/aAAgBAQAGPwIf/8QAGRAAAgMBAAAAAAAAAAAAAAAAEDEAEXEg/9oACAEBAAE/IVgoLOEn"
    "/9oADAMBAAIAAwAAABADAID/xAAZEQABBQAAAAAAAAAAAAAAAAAAEBExUaH/2gAIAQMBAT8QwMpID//EABkRAAEFAAAAAAAAAAAAAAAAAAAQETFB"
    "of/aAAgBAgEBPxDQ1aTH/8QAHRAAAQMFAQAAAAAAAAAAAAAAARARUQAgIbHwgf/aAAgBAQABPxDqEIEvnwsnUWbDuv/Z"
)
WEBP = base64.b64decode(
    "UklGRtYAAABXRUJQVlA4WAoAAAAYAAAAEwAAEQAAQUxQSAoAAAABB1CyiAhERP8DVlA4IHYAAAAQBACdASoUABIAP2mewlizq6cjsAwCcC0JaGll"
    "RhZwoGwdwMwBvG7gQAD+4NByK91Cm0T1RZiuKYZbyuWo8vQvxzRf7fPFwmm/A1YablyRcEg7T7eWLnNl/EuYRMYfK50VhgqIyuVkdQRCQIpm7L5y"
    "74edAAAARVhJRigAAABNTQAqAAAACAABAQ4AAgAAAA0AAAAaAAAAAHNlY3JldCBwbGFjZQAA"
)

_FRAME = b"\xff\xc0\0\x11\x08\xff\xff\xff\xff\3\1\x11\0\2\x11\1\3\x11\1"
_VP8 = b"VP8 \x0a\0\0\0\x10\2\0\x9d\1\x2a\xff\x3f\xff\x3f"
"""Headers of huge pictures."""


def _color(text: str) -> Color:
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def test_every_colour_gets_texts_of_contrast_aa_and_a_visible_button() -> None:
    draw = random.Random(7)
    colors = [
        "#000000",
        "#ffffff",
        "#808080",
        "#ffff00",
        "#767676",
        "#171b23",
        "#f7f9fc",
        "#ff0000",
        "#00ff00",
        "#0000ff",
    ]
    colors += [f"#{draw.randrange(1 << 24):06x}" for _ in range(2000)]
    for text in colors:
        for grounds in (LIGHT, DARK):
            found = {name: _color(value) for name, value in palette(text, grounds).items()}
            _check(text, found, grounds)


def _check(text: str, found: dict[str, Color], grounds: Grounds) -> None:
    assert found["--accent"] == _color(text)
    for button in ("--accent", "--accent-deep"):
        assert contrast(found["--on-accent"], found[button]) >= AA, text
    for ground in (grounds.card, grounds.tint, found["--accent-tint"]):
        assert contrast(found["--accent-text"], ground) >= AA, text
    assert contrast(found["--accent-edge"], grounds.card) >= EDGE, text


@table(
    "text, found",
    [
        ("#2152d9", {"border", "lighter"}),
        ("#9a9a9a", {"dark_text", "border", "darker"}),
        ("#ffdd00", {"dark_text", "border", "darker"}),
        ("#ffffff", {"dark_text", "border", "darker"}),
        ("#000000", {"border", "lighter"}),
    ],
)
def test_changes_of_a_colour_are_named(text: str, found: set[str]) -> None:
    assert adjustments(text) == found


def test_colour_is_read_in_one_shape_and_nothing_else_enters_a_stylesheet() -> None:
    assert read_color(" 2152D9 ") == read_color("#2152d9") == "#2152d9"
    assert re.fullmatch(r"[-:{};#() @a-z0-9\n]+", stylesheet("2152d9"))
    for wrong in ("", "red", "#12345", "#1234567", "#12345g", "#2152d9;}", "２152d9"):
        with pytest.raises(ValueError, match="must be a colour"):
            stylesheet(wrong)


@table("given, kind", [(PNG, "image/png"), (JPEG, "image/jpeg"), (WEBP, "image/webp")])
def test_logo_keeps_its_pixels_and_nothing_else(given: bytes, kind: str) -> None:
    assert b"secret place" in given
    read = read_picture(given + b"<script>secret place</script>")
    assert read.media_type == kind
    assert b"secret" not in read.body
    assert read_picture(read.body) == read
    for thumbnail in (b"\xff\xe0\0\x0eJFXX\0secret!", b"\xff\xe0\0\x13JFIF\0\1\1\0\0\1\0\1\1\0sec"):
        assert kind != "image/jpeg" or read_picture(given[:2] + thumbnail + given[2:]) == read
    for cut in range(20, len(read.body)):
        with pytest.raises(ValueError, match=r"cut off|sides"):
            read_picture(read.body[:cut])


@table(
    "given, says",
    [
        (b"", "must be a PNG, JPEG or WebP"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "must be a PNG, JPEG or WebP"),
        (b"GIF89a" + bytes(50), "must be a PNG, JPEG or WebP"),
        (PNG + bytes(BYTES_MOST), "at most 64 KB"),
        (PNG.replace(b"\0\0\0\x14\0\0\0\x12", b"\0\0\xff\xff\0\0\0\x12"), "sides of 16 to 2048"),
        (PNG.replace(b"\0\0\0\x14\0\0\0\x12", b"\0\0\0\x0f\0\0\0\x12"), "sides of 16 to 2048"),
        (PNG[:16] + b"\0\0\xff\xff" * 2 + PNG[24:33] + PNG[8:], "one picture"),
        (JPEG[:2] + _FRAME + JPEG[2:], "one picture"),
        (b"RIFF" + (len(WEBP) + 10).to_bytes(4, "little") + b"WEBP" + _VP8 + WEBP[12:], "one picture"),
        (PNG[:33] + PNG[-12:], "no pixels"),
        (JPEG[:2] + _FRAME + JPEG[-2:], "no pixels"),
        (b"RIFF\x1e\0\0\0WEBPANIM\x06\0\0\0" + bytes(20), "must not move"),
    ],
)
def test_other_files_are_no_logos(given: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_picture(given)


@table(
    "contact, link",
    [
        ("help@shop.example", "mailto:help@shop.example"),
        ("+7 (900) 123-45-67", "tel:+79001234567"),
        ("https://shop.example/help", "https://shop.example/help"),
        ("javascript:alert(1)", None),
        ("https://user:key@shop.example", None),
        ("a@shop.example?bcc=b@shop.example", None),
        ("a@shop.example?subject=x", None),
        ("<b>@shop.example", None),
        ("write to us in the chat", None),
        (None, None),
    ],
)
def test_contact_becomes_a_link_where_it_is_one(contact: str | None, link: str | None) -> None:
    assert Brand(contact=contact).contact_link == link
