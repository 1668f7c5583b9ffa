"""Logos of merchants on the payer's pages: PNG, JPEG or WebP (docs/window.md "Your brand").

A logo is rebuilt from the parts that its pixels need. So metadata, such as the place of a photograph, and anything
hidden in or behind the picture never reach a payer. SVG is not accepted: it is a document that may load and run things.
"""

import struct
from datetime import datetime

import msgspec

BYTES_MOST = 64 * 1024
SIDE_LEAST, SIDE_MOST = 16, 2048

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_PARTS = frozenset((b"IHDR", b"PLTE", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT", b"IDAT", b"IEND"))
_JPEG = b"\xff\xd8\xff"
_JPEG_SIZES = frozenset((0xC0, 0xC1, 0xC2))
"""Markers of the sequential and progressive frames, which hold the size."""
_JPEG_PARTS = _JPEG_SIZES | {0xC4, 0xDB, 0xDD}
"""Further ones: Huffman and quantisation tables, restart interval."""
_JPEG_HEADERS = ((0xE0, b"\0\x10JFIF\0"), (0xEE, b"\0\x0eAdobe\0"))
"""JFIF's without a thumbnail, and Adobe's colour transform. The size of each is fixed, so that nothing hides in it."""
_JPEG_SCAN, _JPEG_END = 0xDA, 0xD9
_WEBP_PARTS = frozenset((b"VP8 ", b"VP8L", b"ALPH"))
_WEBP_ALPHA = 0x10


class Logo(msgspec.Struct, frozen=True, kw_only=True):
    """A picture. It never changes: another picture is another record, so that browsers may keep each for ever."""

    id: str
    account_id: str
    media_type: str
    body: bytes
    created_at: datetime
    version: int = 0


class Picture(msgspec.Struct, frozen=True):
    """A picture that was read: its media type and its bytes without everything else."""

    media_type: str
    body: bytes


def read_picture(given: bytes) -> Picture:
    """Return a picture rebuilt from its pixels. Raises: ValueError with the cause."""
    if len(given) > BYTES_MOST:
        raise ValueError(f"must have at most {BYTES_MOST // 1024} KB")
    try:
        if given.startswith(_PNG):
            return _sized(*_png(given))
        if given.startswith(_JPEG):
            return _sized(*_jpeg(given))
        if given.startswith(b"RIFF") and given[8:12] == b"WEBP":
            return _sized(*_webp(given))
    except (IndexError, struct.error):
        raise ValueError("must be a whole picture: this one is cut off") from None
    raise ValueError("must be a PNG, JPEG or WebP picture")


def _sized(media_type: str, body: bytes, width: int, height: int) -> Picture:
    if not (SIDE_LEAST <= width <= SIDE_MOST and SIDE_LEAST <= height <= SIDE_MOST):
        raise ValueError(f"must have sides of {SIDE_LEAST} to {SIDE_MOST} pixels")
    return Picture(media_type, body)


def _once(width: int) -> None:
    """Refuse a second size: decoders take the first, and we would have judged the last."""
    if width:
        raise ValueError("must be one picture")


def _drawn(has_pixels: bool) -> None:
    if not has_pixels:
        raise ValueError("must be a whole picture: this one has no pixels")


def _png(given: bytes) -> tuple[str, bytes, int, int]:
    parts, at, width, height = [_PNG], len(_PNG), 0, 0
    while True:
        (size,), kind = struct.unpack_from(">I", given, at), given[at + 4 : at + 8]
        part = given[at : at + 12 + size]
        if len(part) != 12 + size:
            raise IndexError
        if kind == b"IHDR":
            _once(width)
            width, height = struct.unpack_from(">II", part, 8)
        if kind in _PNG_PARTS:
            parts.append(part)
        if kind == b"IEND":
            _drawn(any(each[4:8] == b"IDAT" for each in parts))
            return "image/png", b"".join(parts), width, height
        at += len(part)


def _jpeg(given: bytes) -> tuple[str, bytes, int, int]:
    parts, at, width, height = [given[:2]], 2, 0, 0
    while True:
        if given[at] != 0xFF:
            raise IndexError
        marker = given[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if marker == _JPEG_END:
            _drawn(any(each[1] == _JPEG_SCAN for each in parts))
            return "image/jpeg", b"".join((*parts, given[at : at + 2])), width, height
        (size,) = struct.unpack_from(">H", given, at + 2)
        end = at + 2 + size
        if marker in _JPEG_SIZES:
            _once(width)
            height, width = struct.unpack_from(">HH", given, at + 5)
        if marker == _JPEG_SCAN:
            end = _scan_end(given, end)
        if end > len(given):
            raise IndexError
        is_header = any(marker == each and given.startswith(start, at + 2) for each, start in _JPEG_HEADERS)
        if marker in _JPEG_PARTS or marker == _JPEG_SCAN or is_header:
            parts.append(given[at:end])
        at = end


def _scan_end(given: bytes, at: int) -> int:
    """Return where the coded pixels end: at a marker that is neither an escaped byte nor a restart."""
    while True:
        at = given.find(b"\xff", at)
        if at < 0:
            raise IndexError
        after = given[at + 1]
        if after != 0 and not 0xD0 <= after <= 0xD7:
            return at
        at += 2


def _webp(given: bytes) -> tuple[str, bytes, int, int]:
    (total,) = struct.unpack_from("<I", given, 4)
    end, at, parts = total + 8, 12, list[bytes]()
    if end > len(given):
        raise IndexError
    width = height = 0
    extended = alpha = False
    while at < end:
        kind, (size,) = given[at : at + 4], struct.unpack_from("<I", given, at + 4)
        padded = size + size % 2
        content = given[at + 8 : at + 8 + size]
        if len(content) != size:
            raise IndexError
        if kind in (b"VP8 ", b"VP8L"):
            _once(width)
        if kind == b"VP8 ":
            width, height = (each & 0x3FFF for each in struct.unpack_from("<HH", content, 6))
        elif kind == b"VP8L":
            (bits,) = struct.unpack_from("<I", content, 1)
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        elif kind == b"VP8X":
            extended = True
        elif kind in (b"ANIM", b"ANMF"):
            raise ValueError("must not move")
        if kind in _WEBP_PARTS:
            alpha = alpha or kind == b"ALPH"
            parts.append(kind + struct.pack("<I", size) + content + b"\0" * (size % 2))
        at += 8 + padded
    if extended and alpha:
        sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        parts.insert(0, b"VP8X" + struct.pack("<I", 10) + bytes((_WEBP_ALPHA, 0, 0, 0)) + sides)
    body = b"WEBP" + b"".join(parts)
    return "image/webp", b"RIFF" + struct.pack("<I", len(body)) + body, width, height
