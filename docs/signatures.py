"""The signatures of embedding, as text for docs/embedding.md. docs/generate.py writes them."""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import cambist
from cambist import testing

HEADING = "## Signatures\n"
_INTRODUCTION = """
`SyncService` and `SyncMerchant` have the calls of `Service` and `Merchant` without `async`, and lists as plain
iterators; `SyncServiceSandbox` has those of `ServiceSandbox`. `Service.asgi`, `working`, `tools`, `acting` and
`end_streams` are for event loops only.
"""
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    cambist.open,
    cambist.open_sync,
    cambist.migrate,
    cambist.verify_signature,
    testing.open_service,
    testing.open_sync_service,
)
CLASSES: tuple[type[Any], ...] = (
    cambist.Service,
    cambist.Merchant,
    cambist.SyncService,
    cambist.Mount,
    testing.ServiceSandbox,
    testing.AsyncClock,
)
OF_THE_TOOLS = ("replaced", "within")
"""Methods for other modules of ours."""
_MODULES = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Z])|\bdatetime\.(?=datetime|timezone)|~")
_MEMBER = re.compile(r"<[A-Za-z.]+: ('[a-z]+')>")
"""The repr of an enum's member."""
_SAME = frozenset(vars(cambist.Service)) - {"merchant"}
"""Methods that a `SyncService` shares with a `Service`."""


def signatures() -> str:
    """Return the section."""
    return "\n".join([HEADING, _INTRODUCTION.strip(), "", "```text", *_lines(), "```", ""])


def _lines() -> Iterator[str]:
    for function in FUNCTIONS:
        name = function.__qualname__
        yield _line(f"{function.__module__}.{name}", function)
    for kind in CLASSES:
        yield ""
        if kind is cambist.Mount:
            yield _line("cambist.Mount", kind)
        yield from (_line(f"{kind.__name__}.{name}", method) for name, method in methods(kind))


def methods(kind: type[Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the methods of a class that the page shows."""
    left_out = _SAME if kind is cambist.SyncService else ()
    for name, method in vars(kind).items():
        if inspect.isfunction(method) and not name.startswith("_") and name not in (*OF_THE_TOOLS, *left_out):
            yield name, method


def _line(name: str, function: Callable[..., Any]) -> str:
    called = inspect.signature(function)
    shown = str(called.replace(parameters=[each for each in called.parameters.values() if each.name != "self"]))
    start = "async " if inspect.iscoroutinefunction(function) else ""
    plain = _MODULES.sub("", _MEMBER.sub(r"\1", shown))
    text = f"{start}{name}{plain}".removesuffix(" -> None")
    # Break lines after commas only.
    joined = re.sub(r"(?<!,) ", "\0", text)
    return textwrap.fill(joined, 118, subsequent_indent="    ", break_long_words=False).replace("\0", " ")
