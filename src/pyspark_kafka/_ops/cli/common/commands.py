"""Classes of typer for all commands: how their help looks."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

# As Kafka's own tools call it; left out of the help, which both names make too wide.
_ALIASES = {"bootstrap-server": "bootstrap-servers"}

# What groups hand down to their commands.
CONTEXT: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "token_normalize_func": lambda name: _ALIASES.get(name, name),
}


class _PlainFlags:
    """Parameters whose help names no type for a flag, which takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, and `--help`."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the class of typer
        for each in found:
            if getattr(each, "is_flag", False):
                each.metavar = ""
        return found


class HelpfulCommand(_PlainFlags, TyperCommand):
    """A command."""


class HelpfulGroup(_PlainFlags, TyperGroup):
    """A group of commands."""
