"""Runs commands of `pyspark-kafka` in this process, whatever the environment of the tests says about terminals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from pyspark_kafka._ops.cli.main import app

if TYPE_CHECKING:
    from typer.testing import Result

_PLAIN = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None, "PYSPARK_KAFKA_BOOTSTRAP_SERVERS": None}


def invoke(*arguments: str, answer: str = "") -> Result:
    """Run one command, with `answer` as what the user types; return exit code and output."""
    return CliRunner().invoke(app, arguments, input=answer, env=_PLAIN)


def warnings_of(done: Result) -> str:
    """Return standard error without the lines of progress, which a slow machine has more of."""
    return "".join(
        line for line in done.stderr.splitlines(keepends=True) if not re.search(r" …( \d+ s)?$", line.rstrip("\n"))
    )
