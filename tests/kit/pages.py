"""Programs and commands of a guide, run as they stand but for what a test replaces: addresses, names, places."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from kit.pointers import REPO
from kit.programs.cli import invoke


class GuidePage:
    """A page of docs/guides. Its programs share their names, as in one notebook.

    Attributes:
        text: the page.
        replaced: what is replaced in its programs and commands, and by what.
        names: the names of the programs.
    """

    def __init__(self, name: str, spark: SparkSession, replaced: Mapping[str, str]) -> None:
        self.text = (REPO / "docs" / "guides" / f"{name}.md").read_text()
        self.replaced = dict(replaced)
        self.names: dict[str, Any] = {"spark": spark}

    def program(self, word: str) -> str:
        """Return the program that has a text."""
        return self._block("python", word)

    def run(self, word: str) -> None:
        """Run the program that has a text; a stream that it starts reads what there is, and ends."""
        text = self._own(self.program(word)).replace(".start()", ".trigger(availableNow=True).start()")
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
        blocks: list[str] = re.findall(rf"^ *```{language}\n(.*?)^ *```", self.text, re.DOTALL | re.MULTILINE)
        (found,) = [block for block in blocks if word in block]
        return found

    def _own(self, text: str) -> str:
        for old, new in self.replaced.items():
            text = text.replace(old, new)
        return text
