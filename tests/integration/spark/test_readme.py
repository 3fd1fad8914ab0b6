"""The example of the README, pasted into a file and run as a reader would run it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from programs import run_program
from support import Record, consume, produce

if TYPE_CHECKING:
    from pyspark_kafka.testing import EmbeddedKafka

_README = Path(__file__).parents[3] / "README.md"


def example_with(word: str) -> str:
    """Give the README's Python block that holds a word."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", _README.read_text(), re.DOTALL)
    return next(block for block in blocks if word in block)


def test_the_broker_of_the_readme_starts_and_tells_its_address(tmp_path: Path) -> None:
    said = run_program(example_with("EmbeddedKafka"), place=tmp_path)
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", said)


def test_the_example_runs_as_it_stands(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    example = example_with("readStream")
    # The one thing a reader changes is the address of the broker.
    assert "localhost:9092" in example
    kafka.create_topic("events", 2)
    kafka.create_topic("events-copy", 2)
    produce(kafka.bootstrap_servers, "events", [Record(b"k%d" % i, b"v%d" % i) for i in range(25)])
    run_program(example.replace("localhost:9092", kafka.bootstrap_servers), place=tmp_path)
    assert {r.value for r in consume(kafka.bootstrap_servers, "events-copy", 25)} == {b"v%d" % i for i in range(25)}
