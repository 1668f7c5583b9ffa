"""Colours of the payer's pages, made from the one colour of a brand (docs/window.md "Your brand").

Every text reaches the contrast of WCAG 2 AA, 4.5 to 1. The button keeps the brand's colour and gets white text, or
black text where white is too weak: one of them always suffices. Links and marks get the colour itself, darkened or
lightened until they do.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

AA = 4.5
EDGE = 3.0
"""Contrast of a button with its ground below which it gets a border."""
_SHAPE = re.compile(r"#?([0-9a-fA-F]{6})\Z")
_STEPS = 100

Color = tuple[int, int, int]
_BLACK: Color = (0, 0, 0)
_WHITE: Color = (0xFF, 0xFF, 0xFF)


class Grounds(msgspec.Struct, frozen=True):
    """Grounds of a theme, on which coloured text is drawn."""

    card: Color
    tint: Color


LIGHT = Grounds(card=_WHITE, tint=(0xF7, 0xF9, 0xFC))
DARK = Grounds(card=(0x17, 0x1B, 0x23), tint=(0x1C, 0x21, 0x2B))
"""As `--card` and `--tint` of window.css."""


def read_color(text: str) -> str:
    """Return a colour as `#rrggbb`. Raises: ValueError."""
    found = _SHAPE.match(text.strip())
    if found is None:
        raise ValueError("must be a colour such as #2152d9")
    return f"#{found[1].lower()}"


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colours as WCAG 2 defines it, from 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: Color) -> float:
    red, green, blue = (_linear(part / 255) for part in color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def _mixed(color: Color, other: Color, share: float) -> Color:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(color, other, strict=True))
    return red, green, blue


def _readable(color: Color, grounds: Sequence[Color]) -> Color:
    """Return the colour moved towards black or white as little as its text needs on all grounds."""
    target = _BLACK if _luminance(grounds[0]) > 0.2 else _WHITE
    steps = (_mixed(color, target, step / _STEPS) for step in range(_STEPS + 1))
    return next((each for each in steps if all(contrast(each, ground) >= AA for ground in grounds)), target)


def palette(text: str, grounds: Grounds) -> Mapping[str, str]:
    """Return the custom properties of window.css for a brand's colour on these grounds."""
    color = _parsed(text)
    on_accent = _WHITE if contrast(_WHITE, color) >= AA else _BLACK
    # Away from the text of the button, so that its contrast rises while the pointer is over it.
    deep = _mixed(color, _BLACK if on_accent == _WHITE else _WHITE, 0.15)
    tint = _mixed(grounds.card, color, 0.12)
    accent_text = _readable(color, (grounds.card, grounds.tint, tint))
    edge = color if contrast(color, grounds.card) >= EDGE else accent_text
    made = {
        "--accent": color,
        "--accent-deep": deep,
        "--accent-edge": edge,
        "--accent-tint": tint,
        "--accent-text": accent_text,
        "--on-accent": on_accent,
    }
    return {name: _written(each) for name, each in made.items()}


def adjustments(text: str) -> frozenset[str]:
    """Return what the rule changes about a colour, for the person who chose it: `dark_text` on the button, a `border`
    around it, `darker` links on light grounds, `lighter` ones on dark grounds."""
    light, dark = palette(text, LIGHT), palette(text, DARK)
    found = {
        "dark_text": light["--on-accent"] != _written(_WHITE),
        "border": any(each["--accent-edge"] != text for each in (light, dark)),
        "darker": light["--accent-text"] != text,
        "lighter": dark["--accent-text"] != text,
    }
    return frozenset(name for name, is_so in found.items() if is_so)


def stylesheet(text: str) -> str:
    """Return the stylesheet of a brand's colour. Raises: ValueError."""
    color = read_color(text)
    light, dark = (_rule(palette(color, grounds)) for grounds in (LIGHT, DARK))
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n"


def _rule(properties: Mapping[str, str]) -> str:
    return f":root {{ {' '.join(f'{name}: {value};' for name, value in properties.items())} }}"


def _parsed(text: str) -> Color:
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def _written(color: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
