"""Write the page of all commands, docs/command-line.md, from the program itself.

Run: .venv/bin/python tools/command_line.py > docs/command-line.md
"""

# ruff: noqa: E501 - lines of the page

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer.main

from pyspark_kafka._ops.cli.main import app

SHARED = ("--bootstrap-servers", "--config", "--options", "-o", "--json")
# What exit status 1 means, where a command has it.
FINDINGS = {
    "check": "A step failed.",
    "checkpoint diff": "The checkpoints differ.",
    "checkpoint verify": "A fault was found.",
    "lag": "A threshold is exceeded, or a partition has a fault.",
    "transactions abort": "There was no open transaction, or you answered no.",
    "transactions resolve": "Nothing was lost, or you answered no.",
}
_HEAD = """# The command line

The [extra](install.md) `cli` installs the program. It needs neither Spark nor a JAR, except for `demo` and for `check` with `--spark`, `--remote` or
`--cluster`. `python -m pyspark_kafka` is the same program, if its script is not on the `PATH`. `pyspark-kafka --version` prints the version.

This page is written by `tools/command_line.py`; [operations](operations.md), [check](check.md) and
[transactions](transactions.md) describe the commands.

## Commands

`--help` of a command, or `-h`, lists its options, and has an example. A command with a connection takes all options of the next section. A
command with JSON has `--json`.

`pyspark-kafka --install-completion` sets up bash, zsh and fish, and `--show-completion` prints what it would write. The Tab key then completes
commands, options, the names for `pyspark-kafka options`, and the conditions for `pyspark-kafka errors`.
"""
_TAIL = """
Other administration, such as the configuration and deletion of topics, is done by Kafka's own tools, or by
`python -m kafka.admin`, the program of kafka-python, which this package installs.

## A connection

Every command with a connection takes the same options. For each option of a query, a later row takes precedence over an earlier
row.

| Option | Environment variable | What it is |
| --- | --- | --- |
| `--config FILE` | `PYSPARK_KAFKA_CONFIG` | A file with Java client properties, as for Kafka's own tools. Properties of consumers and producers are ignored, unknown names are refused. |
| `--options FILE` | `PYSPARK_KAFKA_OPTIONS` | A JSON file with the [options](options.md) of a query. |
| `-o NAME=VALUE` | none | One option of a query; may be repeated. |
| `--bootstrap-servers HOSTS`, `--bootstrap-server`, `-b` | `PYSPARK_KAFKA_BOOTSTRAP_SERVERS` | The brokers: `host:port`, several with commas between them. |

The prefix `kafka.` is optional. `kafka.default.api.timeout.ms` limits the time of a step. `--json` prints
only JSON on standard output.

## Output

Data is printed on standard output. On a terminal it is a table; elsewhere it has no colors and no line breaks in cells. Errors,
warnings, and the progress of steps that take more than 2 s, are printed on standard error. Texts of brokers and records are escaped, so
that they cannot control the terminal. If the reader of a pipe ends early, as `head` does, the command completes its work and exits with
its normal status; `tail` and `lag --watch` end with status 0.

## Exit statuses

| Status | Meaning |
| --- | --- |
| 0 | The command did its work, and found no problem. |
| 1 | The command found a problem: see its entry. |
| 2 | The arguments are wrong, or the command could not start its work. Standard error has the reason, and the option to change. |
| 3 | The result is incomplete, because brokers did not respond, or a right is missing. Standard error lists the missing part. |
| 4 | No broker is reachable, or no broker responded in time. Standard error explains it; the same command may succeed later. |
| 130 | The command was interrupted by Ctrl-C. |
"""


def commands(group: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    """Return all commands of the program by name, `transactions list`, in ascending order."""
    group = typer.main.get_command(app) if group is None else group
    for word, command in sorted(group.commands.items()):
        full = f"{name} {word}".strip()
        if hasattr(command, "commands"):
            yield from commands(command, full)
        else:
            yield full, command


def page() -> str:
    """Return the page, with an entry for each command."""
    entries = []
    for name, command in commands():
        opts = {opt for parameter in command.params for opt in parameter.opts}
        takes = [word for opt, word in (("--bootstrap-servers", "connection"), ("--json", "JSON")) if opt in opts]
        found = [f"exit status 1: {FINDINGS[name]}"] if name in FINDINGS else []
        does = " ".join(command.help.split("\n\n")[0].split())
        facts = " · ".join(takes + found)
        entries.append(f"\n### `{name}`\n\n{does}\n" + (f"\n{facts}\n" if facts else ""))
    return f"{_HEAD}{''.join(entries)}{_TAIL}"


if __name__ == "__main__":
    print(page(), end="")
