"""Command groups with complete help texts and suggestions for misspelt names (docs/cli.md "Finding a command")."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import click

from ...core.domain.shapes import nearest

_WHOLE = 10_000
"""Length limit of a short help, large enough that no text is cut."""


class Group(click.Group):
    """Group that shows the whole first sentence of each command's help."""

    def headings(self) -> Mapping[str, Iterable[str]]:
        """Return the command names under each heading of the help, in order."""
        return {"Commands": self.commands}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of every heading, wrapped to the terminal's width."""
        for heading, names in self.headings().items():
            found = ((name, self.get_command(ctx, name)) for name in names)
            shown = [(name, each) for name, each in found if each is not None and not each.hidden]
            with formatter.section(heading):
                formatter.write_dl([(name, each.get_short_help_str(_WHOLE)) for name, each in shown])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command named by the arguments. Raises: UsageError with the nearest name."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = nearest(name, self.list_commands(ctx))
            ctx.fail(f"No such command {name!r}" + (f"; did you mean {near}?" if near else "."))
        return super().resolve_command(ctx, args)


group: Callable[..., Callable[[Callable[..., Any]], Group]] = partial(click.group, cls=Group)
"""Same as `click.group`, with our class."""
