"""Shells complete commands, options and reference names, as they ask for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_kafka._client.options import OPTIONS
from pyspark_kafka._ops.reference.conditions import read_entries

OPTION_NAMES = [each.name for each in OPTIONS if each.name.startswith("kafka.ssl.t")]
CONDITIONS = [each.condition for each in read_entries() if each.condition.startswith("TLS_")]

# Fails where the program loads what a completion does not need, or connects.
GUARDED = """
import sys

def refuse(event, arguments):
    package = str(arguments[0]).partition(".")[0] if event == "import" else ""
    if event in {"socket.connect", "socket.getaddrinfo"} or package in {"pyspark", "pyarrow", "numpy", "kafka"}:
        raise AssertionError(f"{event} {arguments}")

sys.addaudithook(refuse)
sys.argv = ["pyspark-kafka"]
from pyspark_kafka.__main__ import main
main()
"""


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return variables with this environment's program on the path, and a home of its own."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "HOME": str(home), "PATH": path, **more}


def output_of(command: list[str], home: Path, **more: str) -> str:
    done = subprocess.run(
        command, env=environment(home, **more), capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("setup", ['eval "$(pyspark-kafka --show-completion)"', "pyspark-kafka --install-completion"])
def test_bash_completes_after_either_way_to_set_it_up(setup: str, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").touch()
    script = f"""
        {setup} > /dev/null
        source ~/.bashrc
        COMP_WORDS=(pyspark-kafka options kafka.ssl.t) COMP_CWORD=2
        $(complete -p pyspark-kafka | sed 's/.*-F \\([^ ]*\\) .*/\\1/') pyspark-kafka
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    assert output_of(["bash", "--norc", "-c", script], tmp_path).splitlines() == OPTION_NAMES


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("pyspark-kafka tr", ["transactions"]),
        ("pyspark-kafka lag --max", ["--max-records", "--max-seconds"]),
        ("pyspark-kafka tail orders --bootstrap", ["--bootstrap-servers"]),
        ("pyspark-kafka options kafka.ssl.t", OPTION_NAMES),
        ("pyspark-kafka errors TLS_", CONDITIONS),
    ],
)
def test_completion_loads_no_spark_and_connects_to_nobody(words: str, completed: list[str], tmp_path: Path) -> None:
    asked = {
        "_PYSPARK_KAFKA_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
        "PYSPARK_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
    }
    assert output_of([sys.executable, "-c", GUARDED], tmp_path, **asked).splitlines() == completed


@pytest.mark.parametrize(
    ("shell", "action"), [("zsh", {}), ("fish", {"_TYPER_COMPLETE_FISH_ACTION": "get-args"})], ids=["zsh", "fish"]
)
def test_other_shells_get_the_names_in_their_own_form(shell: str, action: dict[str, str], tmp_path: Path) -> None:
    asked = {
        "_PYSPARK_KAFKA_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "pyspark-kafka errors TLS_",
        **action,
    }
    shown = output_of([sys.executable, "-c", GUARDED], tmp_path, **asked)
    assert [name for name in CONDITIONS if name in shown] == CONDITIONS
    assert ("_arguments" in shown) is (shell == "zsh")
