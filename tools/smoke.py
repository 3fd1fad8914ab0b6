"""Install the pure wheel into an empty environment, show the help of its program, and decode record batches.

usage: smoke.py [--installed]

For machines on which no test runs, such as Windows: no broker, no Spark, no make. --installed: only use the package of
this Python.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What Kafka's Java producer wrote with each codec.
BATCHES = "java-*-codec-*.json"


def main() -> None:
    """Build, install and use the wheel."""
    if sys.argv[1:] == ["--installed"]:
        show_help()
        print(f"{decode_batches(ROOT / 'tests' / 'golden' / 'batches')} records are as Java wrote them")
        return
    with tempfile.TemporaryDirectory() as place:
        environment = {**os.environ, "PYSPARK_KAFKA_PURE_PYTHON": "1"}
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", place, str(ROOT)]
        subprocess.run(build, env=environment, check=True)
        (wheel,) = Path(place).glob("*-py3-none-any.whl")
        folder = Path(place) / "venv"
        venv.create(folder, with_pip=True)
        python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"{wheel}[cli]"], check=True)
        subprocess.run([python, __file__, "--installed"], cwd=place, check=True)


def show_help() -> None:
    """Run the program of this environment."""
    program = shutil.which("pyspark-kafka", path=Path(sys.executable).parent)
    if program is None:
        sys.exit(f"The program pyspark-kafka is not beside {sys.executable}")
    subprocess.run([program, "--help"], check=True)


def decode_batches(folder: Path) -> int:
    """Decode all files, compare their offsets, and return the number of records."""
    from pyspark_kafka.records import decode  # noqa: PLC0415 - main() runs where the package is not installed

    records = 0
    for description in sorted(folder.glob(BATCHES)):
        told = json.loads(description.read_text(encoding="utf-8"))
        data, begin, found = description.with_suffix(".bin").read_bytes(), 0, set()
        for answer in told["answers"]:
            end = begin + answer["bytes"]
            found |= set(decode(data[begin:end], start_offset=answer["start_offset"]).batch["offset"].to_pylist())
            begin = end
        if sorted(found) != told["read_uncommitted"]:
            sys.exit(f"{description.stem}: offsets {sorted(found)}, expected {told['read_uncommitted']}")
        records += len(found)
    return records


if __name__ == "__main__":
    main()
