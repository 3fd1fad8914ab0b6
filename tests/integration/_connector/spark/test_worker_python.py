"""The Python that Spark starts its processes with, as a program."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = [sys.executable, "-m", "pyspark_kafka._connector.spark.worker_python"]


@pytest.mark.parametrize("arguments", [["-c", "import sys; print(*sys.argv)", "a", "b"], ["-m", "this"], ["-VV"]])
def test_program_that_is_no_process_of_spark_runs_as_in_the_interpreter(arguments: list[str]) -> None:
    ours, plain = (
        subprocess.run([*program, *arguments], capture_output=True, check=True, timeout=60)
        for program in (_PROGRAM, [sys.executable])
    )
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)


def test_an_exit_code_is_passed_on() -> None:
    assert subprocess.run([*_PROGRAM, "-c", "raise SystemExit(7)"], check=False, timeout=60).returncode == 7


def test_nothing_imports_pyspark_before_its_archives_are_last() -> None:
    program = "import sys, pyspark_kafka.spark.daemon; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False"]
