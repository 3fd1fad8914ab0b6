"""`pyspark-kafka errors`: what an error means and what to do, as docs/errors.md has it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from pyspark_kafka._ops.cli.common.arguments import AsJson  # noqa: TC001 - for typer
from pyspark_kafka._ops.cli.common.outcome import ExitStatus, run_command


def errors(
    text: Annotated[
        str | None,
        typer.Argument(help="The condition of an error, such as UNKNOWN_TOPIC, or a text.", autocompletion=_conditions),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain an error by its condition, or list the conditions that a text is about; without a text, all of them."""
    run_command(lambda: _show(text or "", as_json=as_json))


def _conditions() -> list[str]:
    """Return what a shell completes."""
    from pyspark_kafka._ops.reference.conditions import read_entries  # noqa: PLC0415 - only when needed

    return [each.condition for each in read_entries()]


def _show(text: str, *, as_json: bool) -> ExitStatus:
    from pyspark_kafka._ops.cli.common.output import print_json, print_rows, say, without_links  # noqa: PLC0415 - only when needed
    from pyspark_kafka._ops.reference.conditions import read_entries  # noqa: PLC0415

    entries = read_entries()
    # As it begins an error: in brackets, with the sentence behind it.
    name = text.strip().lstrip("[").partition("]")[0].upper()
    one = [entry for entry in entries if entry.condition == name]
    wanted = text.lower()
    found = one or [each for each in entries if wanted in f"{each.condition} {each.happened} {each.why}".lower()]
    if as_json:
        print_json([{**asdict(entry), "page": entry.address} for entry in found])
    elif one:
        for entry in one:
            parts = (f"{entry.condition} ({entry.of})", entry.happened, entry.why, entry.remedy, entry.address)
            say(*(without_links(part) for part in parts if part))
    elif found:
        print_rows(("condition", "what happened"), [(each.condition, each.happened) for each in found])
    else:
        say(f"No condition has '{text}' in its name or description.")
    return ExitStatus.WELL if found else ExitStatus.FINDING
