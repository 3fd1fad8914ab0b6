"""The log of the wire, switched on by the environment of a process."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("value", "on"), [("1", True), ("0", False), ("", False)])
def test_an_environment_variable_switches_the_log_on(value: str, *, on: bool) -> None:
    program = "from pyspark_kafka._client.client.net import trace; print(trace.is_on())"
    environment = {"PYSPARK_KAFKA_WIRE_LOG": value}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(on)
