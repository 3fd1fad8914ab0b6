"""A stranger's installation: first lines of pages, a wheel in an environment with Spark or without; no compiler."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path

import pytest

import first_row
from kit.checkpoint_files import write_checkpoint
from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from pyspark_kafka.version import ON_INDEX, install_command

ROOT = Path(__file__).resolve().parents[4]
# What a platform has: older than what pip would choose, and none of it may change.
SPARK_40 = ("pyspark==4.0.*", "pandas==2.2.*", "numpy==2.1.*", "pyarrow==18.*")
CLIENT_40 = ("pyspark-client==4.0.*", "pandas==2.2.*", "numpy==2.1.*", "pyarrow==18.*")
OWN = {"pyspark-kafka", "kafka-python", "cramjam", "crc32c"}
ARROW = {"pyarrow", "numpy"}

HELP_OF_ALL = """
import sys, typer
from typer.testing import CliRunner
from pyspark_kafka._ops.cli.main import app

def paths(command, path=()):
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from paths(each, (*path, name))

for path in paths(typer.main.get_command(app)):
    done = CliRunner().invoke(app, [*path, "--help"])
    print(*path, done.exit_code, sep=" ")
"""
NAMES_OF_SPARK = """
import pyspark_kafka, pyspark_kafka.metrics
from pyspark_kafka import continuous, formats
pyspark_kafka.DefaultSource, pyspark_kafka.KafkaSource, pyspark_kafka.redrive, formats.decode_udf
continuous.read(object())
"""
READ = """
import sys, pyspark_kafka
options = {"kafka.bootstrap.servers": sys.argv[1], "subscribe": sys.argv[2]}
print(pyspark_kafka.read_arrow(options).reader().read_all()["value"].to_pylist())
"""

pytestmark = [pytest.mark.full("Installations"), pytest.mark.timeout(900)]


class Environment:
    """A virtual environment that pip fills, and a PATH without compilers."""

    def __init__(self, place: Path, *requirements: str) -> None:
        self._place = place
        place.mkdir()
        self._variables = first_row.stranger(place, use_caches=True)
        venv.create(place / "venv", with_pip=True)
        if requirements:
            self.install(*requirements)

    def install(self, *requirements: str) -> dict[str, tuple[str | None, str]]:
        """Install, and return what changed: the version before, None for what was not there, and the version now."""
        before = self._installed()
        self.run("python", "-m", "pip", "install", "--quiet", "--no-compile", *requirements)
        after = self._installed()
        assert before.keys() <= after.keys()
        return {name: (before.get(name), version) for name, version in after.items() if before.get(name) != version}

    def run(self, program: str, *arguments: str, code: int = 0) -> str:
        """Run a program of the environment, and return what it printed, with its errors if it is to fail."""
        command = [str(self._place / "venv" / "bin" / program), *arguments]
        done = subprocess.run(
            command, cwd=self._place, env=self._variables, capture_output=True, text=True, check=False, timeout=600
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    def _installed(self) -> dict[str, str]:
        listed = json.loads(self.run("python", "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"))
        return {each["name"].lower(): each["version"] for each in listed}


@pytest.mark.parametrize("page", first_row.PAGES, ids=lambda page: page.stem)
def test_first_lines_of_a_page_print_its_table_in_an_empty_environment(
    page: Path, pure_wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # What the index has is older than the pages.
    first_row.show_first_row(page, tmp_path, wheel=pure_wheel if ON_INDEX else None)

    *_, codec, times = capsys.readouterr().out.splitlines()
    assert "compiled=False" in codec
    assert times.startswith(f"{page.name}: installed after ")
    assert not (tmp_path / "programs" / "gcc").exists()


def test_wheel_beside_pyspark_4_0_changes_nothing_of_it_and_runs_the_first_programs(
    pure_wheel: Path, tmp_path: Path
) -> None:
    environment = Environment(tmp_path / "platform", *SPARK_40)
    changed = environment.install(str(pure_wheel))
    assert changed.keys() == OWN
    assert all(before is None for before, _ in changed.values())
    readme = first_row.first_lines(first_row.PAGES[0])
    assert readme.table in environment.run("python", "-c", readme.program)


def test_wheel_beside_the_client_of_spark_connect_changes_nothing_of_it(pure_wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "client", *CLIENT_40)
    changed = environment.install(str(pure_wheel))
    assert changed.keys() == OWN
    assert all(before is None for before, _ in changed.values())
    environment.run("python", "-c", NAMES_OF_SPARK)


def test_wheel_alone_brings_no_spark_and_its_commands_work_without_one(
    pure_wheel: Path, bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(bootstrap_servers, topic, [Record(b"k", b"apple")])
    environment = Environment(tmp_path / "laptop")

    assert environment.install(str(pure_wheel)).keys() == OWN | ARROW
    assert environment.run("python", "-c", READ, bootstrap_servers, topic) == "[b'apple']\n"
    missing = environment.run("python", "-c", "import pyspark_kafka.metrics", code=1)
    assert f"Hint: Run {install_command('spark')}" in missing
    assert "[CLI_PACKAGE_MISSING]" in environment.run("pyspark-kafka", "--help", code=2)

    installed = environment.install(f"{pure_wheel}[cli]").keys()
    assert {"typer", "rich"} <= installed
    assert not {"pyspark", "pyspark-client", "pandas", "cython", *OWN, *ARROW} & installed
    helps = environment.run("python", "-c", HELP_OF_ALL).splitlines()
    assert {"checkpoint show 0", "transactions list 0", "check 0", "report 0", "tail 0", "lag 0"} <= {*helps}
    assert all(line.endswith("0") for line in helps), helps
    servers = ("--bootstrap-servers", bootstrap_servers)
    checked = environment.run("pyspark-kafka", "check", *servers, "--topic", topic)
    assert "There is no PySpark in this Python" in checked
    assert "apple" in environment.run("pyspark-kafka", "tail", topic, *servers)
    checkpoint = str(write_checkpoint(tmp_path / "checkpoint", [{topic: {"0": 0}}]))
    assert topic in environment.run("pyspark-kafka", "lag", *servers, "--checkpoint", checkpoint)
    assert topic in environment.run("pyspark-kafka", "checkpoint", "show", checkpoint)
    needs = environment.run("pyspark-kafka", "check", *servers, "--spark", "local[1]", code=1)
    assert "PySpark is not installed in this Python" in needs
