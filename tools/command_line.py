"""Write the page of all commands, docs/command-line.md, from the program itself.

Run: .venv/bin/python tools/command_line.py > docs/command-line.md
"""

# ruff: noqa: E501 - lines of the page

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer.main

from pyspark_kafka.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED = ("--bootstrap-servers", "--config", "--options", "-o", "--json")
# What exit status 1 means, where a command has it.
FINDINGS = {
    "check": "A step has failed.",
    "checkpoint diff": "The checkpoints differ.",
    "checkpoint verify": "A fault was found.",
    "lag": "A threshold is exceeded, or a partition has a fault.",
    "topics create": "With `--if-not-exists`: the topic is there, and has other partitions or another replication.",
    "transactions abort": "There was nothing to abort, or you said no.",
}
_HEAD = """# The command line

`pyspark-kafka` needs neither Spark nor a JAR, except for `demo` and for `check` with `--spark`. `python -m pyspark_kafka.cli` is the
same program where its script is not on the `PATH`. `pyspark-kafka --version` prints the version.

This page is written by `tools/command_line.py`; [operations](operations.md), [check](check.md) and
[transactions](transactions.md) describe the commands.

## Commands

`--help` of a command, or `-h`, lists its options. A command with a connection takes all options of the next chapter; one with JSON has
`--json`.

| Command | What it does | Connection | JSON | Exit status 1 |
| --- | --- | --- | --- | --- |
"""
_TAIL = """
## A connection

Every command that asks brokers takes the same options. A later row takes precedence over an earlier one, for each option of a
query separately.

| Option | Environment variable | What it is |
| --- | --- | --- |
| `--config FILE` | `PYSPARK_KAFKA_CONFIG` | A file of Java client properties, as Kafka's own tools take it. Properties for reading and writing are left out, unknown names are refused. |
| `--options FILE` | `PYSPARK_KAFKA_OPTIONS` | A JSON file with the [options](options.md) of a query. |
| `-o NAME=VALUE` | none | One option of a query; may be repeated. |
| `--bootstrap-servers HOSTS`, `--bootstrap-server`, `-b` | `PYSPARK_KAFKA_BOOTSTRAP_SERVERS` | The brokers: `host:port`, several with commas between them. |

The prefix `kafka.` may be left out everywhere. `kafka.default.api.timeout.ms` is how long a step may take, and `--json` prints
JSON on standard output, and nothing else there.

## What is printed

Data go to standard output: a table on a terminal; elsewhere they have no colors and are not folded. Errors, warnings and what
takes more than 2 s go to standard error. Texts of brokers and records are escaped, so that they cannot drive a
terminal. If the reader of a pipe ends early, as `head` does, the command does its work and exits with its own status; `tail` and
`lag --watch` end, with status 0.

## Exit statuses

| Status | Meaning |
| --- | --- |
| 0 | All is well. |
| 1 | What was asked for was found, and is not as it should be: see the last column above. |
| 2 | The arguments are wrong, or nothing could be done with them. Standard error has the reason, and the option to change. |
| 3 | Something could not be found out: brokers are away, or a right is missing. Standard error says what; the rest is printed. |
| 4 | No broker can be reached, or none responded in time. Standard error says what that means; the same command may work later. |
| 130 | Interrupted by Ctrl-C. |
"""


def commands(group: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    """Return all commands of the program by name, `topics list`, in ascending order."""
    group = typer.main.get_command(app) if group is None else group
    for word, command in sorted(group.commands.items()):
        full = f"{name} {word}".strip()
        if hasattr(command, "commands"):
            yield from commands(command, full)
        else:
            yield full, command


def page() -> str:
    """Return the page."""
    rows = []
    for name, command in commands():
        opts = {opt for parameter in command.params for opt in parameter.opts}
        does = " ".join(command.help.split("\n\n")[0].split()).replace("|", "\\|")
        marks = ["yes" if opt in opts else "" for opt in ("--bootstrap-servers", "--json")]
        rows.append(f"| `{name}` | {does} | {marks[0]} | {marks[1]} | {FINDINGS.get(name, '')} |\n")
    return f"{_HEAD}{''.join(rows)}{_TAIL}"


if __name__ == "__main__":
    print(page(), end="")
