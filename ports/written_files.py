"""Files that an operator writes with any editor: settings, secrets, credentials of merchants."""

import codecs

_OTHERS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
"""The order matters: the byte-order mark of UTF-32 begins with that of UTF-16."""


def written_text(content: bytes) -> str:
    """Return the text of a file in UTF-8, without the byte-order mark that some editors put before it.

    Raises: ValueError, which names the detected encoding and quotes nothing.
    """
    for mark, name in _OTHERS:
        if content.startswith(mark):
            raise ValueError(f"it is {name}: save it as UTF-8")
    try:
        return content.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
