"""Each way to log in with each thing that people do, on a real broker: the cases of docs/security-matrix.md.

A few are in each run of the tests; `make security-matrix` runs all, and writes the page.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from kit import security_matrix
from kit.fixtures.spark import session_kept
from kit.independent_client import Record, await_committed, produce
from kit.programs.matrix_client import MatrixClient
from kit.security_matrix import CASES, CONNECT, KERBEROS, VALUES, Case, Task
from pyspark_kafka.testing import EmbeddedKafka

pytestmark = pytest.mark.full("Security matrix")

# The file that outcomes are added to, one JSON object a line.
RESULTS = "PYSPARK_KAFKA_MATRIX"
_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def matrix_client(connect_url: str) -> Iterator[MatrixClient]:
    with MatrixClient(connect_url) as client:
        yield client


@pytest.fixture
def noted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Add what came of the case to the file of outcomes, where one is wanted."""
    failed_before = request.session.testsfailed
    yield
    if file := os.environ.get(RESULTS):
        case: Case = request.node.callspec.params["case"]
        outcome = {
            "way": case.way.name,
            "use": case.use.name,
            "session": case.session,
            "passed": request.session.testsfailed == failed_before,
        }
        with Path(file).open("a") as written:
            written.write(json.dumps(outcome) + "\n")


def parameter(case: Case) -> ParameterSet:
    if case.way.broker == KERBEROS:
        return pytest.param(case, id=str(case), marks=pytest.mark.kerberos)
    return pytest.param(case, id=str(case), marks=() if case.quick else pytest.mark.long)


@pytest.mark.usefixtures("noted")
@pytest.mark.broker
@pytest.mark.parametrize("case", [parameter(case) for case in CASES])
def test_case_of_the_matrix_works(tmp_path: Path, request: pytest.FixtureRequest, case: Case) -> None:
    # Before Spark: a realm is known to the processes that are started after it.
    kafka: EmbeddedKafka = request.getfixturevalue(case.way.broker)
    number = next(_NUMBERS)
    source, target = f"matrix-source-{number}", f"matrix-{number}"
    for topic in (source, target):
        kafka.create_topic(topic)
    produce(kafka.bootstrap_servers, source, [Record(None, value) for value in VALUES])
    task = Task(None, case.way.options(request.getfixturevalue), source, target, tmp_path)
    if case.session == CONNECT:
        request.getfixturevalue("matrix_client").run(case.use.name, task)
    elif case.session:
        session: SparkSession = request.getfixturevalue("spark")
        cloudpickle.register_pickle_by_value(security_matrix)  # type: ignore[no-untyped-call]
        with session_kept(session):
            case.use.run(replace(task, session=session))
    else:
        case.use.run(task)
    if case.use.writes:
        await_committed(kafka.bootstrap_servers, target, VALUES)
