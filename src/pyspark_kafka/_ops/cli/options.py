"""`pyspark-kafka options`: the options of reads and writes, as docs/options.md has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyspark_kafka._ops.cli.common.arguments import AsJson  # noqa: TC001 - for typer
from pyspark_kafka._ops.cli.common.outcome import ExitStatus, run_command

if TYPE_CHECKING:
    from pyspark_kafka._client.options import Option


def options(
    text: Annotated[
        str | None,
        typer.Argument(help="The name of an option, or a part of names or texts.", autocompletion=_names),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show an option, or list the options whose name or description contains a text; without a text, all of them."""
    run_command(lambda: _show(text, as_json=as_json))


def _names() -> list[str]:
    """Return what a shell completes."""
    from pyspark_kafka._client.options import OPTIONS  # noqa: PLC0415 - only when needed

    return [each.name for each in OPTIONS]


def _show(text: str | None, *, as_json: bool) -> ExitStatus:
    from pyspark_kafka._client.options import EVERYWHERE, OPTIONS  # noqa: PLC0415 - only when needed
    from pyspark_kafka._ops.cli.common.output import print_json, print_rows, say, without_links  # noqa: PLC0415

    one = None if text is None else OPTIONS.get(text) or OPTIONS.get(f"kafka.{text}")
    wanted = (text or "").lower()
    found = [one] if one else [each for each in OPTIONS if wanted in f"{each.name} {each.doc}".lower()]
    if as_json:
        print_json([_entry(each) for each in found])
    elif one:
        entry = _entry(one)
        say(*(without_links(f"{label}: {value}") for label, value in entry.items() if value))
    elif found:
        rows = [(each.name, each.status.value, each.facts.get("default", "")) for each in found]
        print_rows(("option", "status", "default"), rows)
    else:
        nearest = OPTIONS.nearest(wanted, EVERYWHERE)
        say(f"No option has '{text}' in its name or description." + (f" Did you mean {nearest}?" if nearest else ""))
    return ExitStatus.WELL if found else ExitStatus.FINDING


def _entry(option: Option) -> dict[str, Any]:
    """Return an option as values for JSON. Its keys are public."""
    return {
        "option": option.name,
        "status": option.status.value,
        **option.facts,
        "description": option.text,
        "spark_connector": option.parity,
        "page": option.address,
    }
