"""A client of Spark Connect that runs cases of the matrix of logins: a line in is a case, a line out its error."""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from kit.pointers import REPO

if TYPE_CHECKING:
    from types import TracebackType

    from kit.security_matrix import Task

_TESTS = REPO / "tests"


class MatrixClient:
    """The client, in a process of its own: a process has sessions of one kind only."""

    def __init__(self, connect_url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kit.programs.matrix_client", connect_url],
            cwd=_TESTS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> MatrixClient:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)

    def run(self, use: str, task: Task) -> None:
        """Run one case; fails with the text of its error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {**vars(task), "use": use, "place": str(task.place), "session": None}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        error = json.loads(self._process.stdout.readline())["error"]
        assert not error, error


def main(connect_url: str) -> None:
    """Run cases until the input ends."""
    from pyspark import cloudpickle  # noqa: PLC0415 - not for those who start the program
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from kit import security_matrix  # noqa: PLC0415

    # The server's tasks do not find the tests.
    cloudpickle.register_pickle_by_value(security_matrix)  # type: ignore[no-untyped-call]
    spark = SparkSession.builder.remote(connect_url).getOrCreate()
    for line in sys.stdin:
        request = json.loads(line)
        use = security_matrix.USE_BY_NAME[request.pop("use")]
        task = security_matrix.Task(**{**request, "session": spark, "place": Path(request["place"])})
        error = ""
        try:
            use.run(task)
        except Exception:  # noqa: BLE001 - whatever it is, the test shows it
            error = traceback.format_exc()[-4000:]
        print(json.dumps({"error": error}), flush=True)  # noqa: T201 - the answer
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
