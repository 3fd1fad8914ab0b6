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


class HelpfulCommand(TyperCommand):
    """A command whose help names no type for a flag, which takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of the command, and its `--help`."""
        return _without_types_of_flags(super().get_params(ctx))


class HelpfulGroup(TyperGroup):
    """A group of commands whose help names no type for a flag."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of the group, and its `--help`."""
        return _without_types_of_flags(super().get_params(ctx))


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    for each in parameters:
        if getattr(each, "is_flag", False):
            each.metavar = ""
    return parameters
