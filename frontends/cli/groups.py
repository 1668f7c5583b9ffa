"""Groups of commands whose help is whole, and which know what was meant (docs/cli.md "Finding a command")."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import click

from ...core.domain.shapes import nearest

_WHOLE = 10_000
"""Characters of a command's first sentence: none is cut."""


class Group(click.Group):
    """Shows each command's whole first sentence."""

    def headings(self) -> Mapping[str, Iterable[str]]:
        """The command names under each heading of the help, in order."""
        return {"Commands": self.commands}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every heading's commands, wrapped to the terminal's width."""
        for heading, names in self.headings().items():
            found = ((name, self.get_command(ctx, name)) for name in names)
            shown = [(name, each) for name, each in found if each is not None and not each.hidden]
            with formatter.section(heading):
                formatter.write_dl([(name, each.get_short_help_str(_WHOLE)) for name, each in shown])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name. Raises: UsageError with the name that is nearest."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = nearest(name, self.list_commands(ctx))
            ctx.fail(f"No such command {name!r}" + (f"; did you mean {near}?" if near else "."))
        return super().resolve_command(ctx, args)


group: Callable[..., Callable[[Callable[..., Any]], Group]] = partial(click.group, cls=Group)
"""As `click.group`."""
