"""Programs and commands of a guide, run as they stand but for what a test replaces: addresses, names, places."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kit.pointers import REPO
from kit.programs.cli import invoke
from kit.programs.run import kill_program, run_logging_program, start_program
from kit.waiting import eventually
from pyspark_kafka.testing.cache import cache_directory

_MAX_S = 450
# A function of `foreachBatch` in a program, to its last line.
_FUNCTION = re.compile(r"^def \w+\(batch, batch_id\):\n.*?\n(?=\n\n)", re.DOTALL | re.MULTILINE)
_WAIT = """
import time
from pathlib import Path

Path({first!r}).touch()
while not Path({second!r}).exists():
    time.sleep(0.1)
"""


class GuidePage:
    """A page of docs/guides. Its programs share their names, as in one notebook.

    Attributes:
        text: the page.
        replaced: what is replaced in its programs and commands, and by what.
        names: the names of the programs.
    """

    def __init__(self, name: str, spark: SparkSession, replaced: Mapping[str, str]) -> None:
        self.text = guide_text(name)
        self.replaced = dict(replaced)
        self.names: dict[str, Any] = {"spark": spark}

    def program(self, word: str) -> str:
        """Return the program that has a text."""
        return self._block("python", word)

    def run(self, word: str) -> None:
        """Run the program that has a text; a stream that it starts reads what there is, and ends."""
        text = _ending(self._own(self.program(word)))
        exec(compile(text, f"program with {word!r}", "exec"), self.names)  # noqa: S102 - our own page
        if "query" in self.names:
            self.names.pop("query").awaitTermination()

    def refused(self, word: str) -> str:
        """Run the command of the block that has a text; return the error that it ends with."""
        _, *arguments = shlex.split(self._own(self._block("sh", word)).replace("\\\n", " "))
        done = invoke(*arguments)
        assert done.exit_code == 2, done.output
        return done.stderr

    def command(self, word: str, *more: str) -> str:
        """Run the commands of the block that has a text; return what the last one prints, all are successful."""
        printed = ""
        for line in self._own(self._block("sh", word)).replace("\\\n", " ").splitlines():
            program, *arguments = shlex.split(line, comments=True)
            if program == "python":
                printed = subprocess.run(
                    [sys.executable, *arguments], check=True, capture_output=True, text=True
                ).stdout
                continue
            assert program == "pyspark-kafka", line
            done = invoke(*arguments, *more)
            assert done.exit_code == 0, f"{line}\n{done.output}"
            printed = done.stdout
        return printed

    def _block(self, language: str, word: str) -> str:
        return _block_of(self.text, language, word)

    def _own(self, text: str) -> str:
        return _with(self.replaced, text)


class GuideScript:
    """Programs of guides in one script, with a Spark of its own: for jars of its session, and a driver that dies.

    Attributes:
        text: the script. A stream that it starts reads what there is, and ends.
        place: the folder of its files.
    """

    def __init__(self, programs: Iterable[str], replaced: Mapping[str, str], place: Path) -> None:
        self.text = _with(replaced, _ending("\n\n".join(programs)))
        self.text = self.text.replace(".start()\n", ".start()\nquery.awaitTermination()\n")
        self.place = place

    def run(self) -> list[Any]:
        """Run it; return the documents in JSON that it prints, one a line."""
        printed, _ = run_logging_program(self.text, place=self.place, environment=self._environment())
        return [json.loads(line) for line in printed.splitlines()]

    def run_until_killed(self, batch_id: int, meanwhile: Callable[[], None]) -> None:
        """Run it twice in one process; its driver is killed in a batch, when the function of `foreachBatch` returns.

        Args:
            batch_id: of the second run.
            meanwhile: called between the two runs.
        """
        death = f"    if batch_id == {batch_id}:\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        dying = _FUNCTION.sub(lambda found: f"{found[0]}{death}", self.text)
        assert death in dying, self.text
        script, log, first, second = (self.place / name for name in ("dying.py", "dying.log", "first", "second"))
        wait = _WAIT.format(first=str(first), second=str(second))
        script.write_text(f"import os\nimport signal\n\n{dying}\n{wait}\n{dying}")
        process = start_program(str(script), log=log, environment=self._environment())
        try:
            eventually(lambda: first.exists() or process.poll() is not None, _MAX_S)
            meanwhile()
            second.touch()
            status = process.wait(_MAX_S)
        finally:
            # Spark's JVM, which outlives the driver's Python for a moment.
            kill_program(process)
        assert status == -signal.SIGKILL, log.read_text()[-4000:]

    def _environment(self) -> dict[str, str]:
        """Return what makes Spark small, and keeps its files here and the jars of packages for the next run."""
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            # By default each look at a table of Delta Lake has 50 tasks.
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.jars.ivy": str(cache_directory() / "ivy"),
            "spark.local.dir": str(self.place / "local"),
            "spark.sql.warehouse.dir": str(self.place / "warehouse"),
        }
        flags = [flag for name, value in settings.items() for flag in ("--conf", f"{name}={value}")]
        return {"PYSPARK_SUBMIT_ARGS": shlex.join(["--master", "local[2]", *flags, "pyspark-shell"])}


def guide_program(name: str, word: str) -> str:
    """Return the program of a guide that has a text."""
    return _block_of(guide_text(name), "python", word)


def guide_text(name: str) -> str:
    """Return a guide."""
    return (REPO / "docs" / "guides" / f"{name}.md").read_text()


def _block_of(text: str, language: str, word: str) -> str:
    blocks: list[str] = re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    (found,) = [block for block in blocks if word in block]
    return found


def _ending(program: str) -> str:
    return program.replace(".start()", ".trigger(availableNow=True).start()")


def _with(replaced: Mapping[str, str], text: str) -> str:
    for old, new in replaced.items():
        text = text.replace(old, new)
    return text
