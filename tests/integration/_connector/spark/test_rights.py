"""Spark queries of a user with the least rights, and their end when a right is taken away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kit.independent_client import Record, consume_committed, produce
from kit.rights import COMMITS, FEATURES, SOURCE, TARGET, renamed
from kit.rights_in_use import Guarded, Trial
from kit.waiting import eventually
from pyspark_kafka import continuous
from pyspark_kafka._client.client.wire.missing_rights import Right
from pyspark_kafka.continuous.query.handle import ContinuousQuery


def rights_of(trial: Trial, key: str) -> list[Right]:
    """Return the rights of a feature; ids of queries are not known before they start, so their family is granted."""
    (found,) = (each for each in FEATURES if each.key == key)
    named = [renamed(right, trial.names) for right in found.rights]
    return [
        Right(right.operation, right.kind, "pyspark-kafka-", family="pyspark-kafka-")
        if right.kind in ("transactional-id", "group")
        else right
        for right in named
    ]


def names(values: list[bytes | None]) -> list[bytes]:
    return sorted(value or b"" for value in values)


def written(guarded: Guarded, trial: Trial) -> list[bytes]:
    return names([record.value for record in consume_committed(guarded.kafka.bootstrap_servers, trial.names[TARGET])])


def test_stream_ends_with_the_line_that_grants_the_right_and_continues_where_it_was(
    spark: SparkSession, guarded: Guarded, tmp_path: Path
) -> None:
    trial, read = guarded.trial("read", tmp_path)
    every = [*read, *rights_of(trial, "exactly-once")]
    servers = guarded.kafka.bootstrap_servers

    def start() -> StreamingQuery:
        checkpoint = str(tmp_path / "checkpoint")
        return (
            spark.readStream.format("pyspark_kafka").options(**trial.read_options(failOnDataLoss="false")).load()
            .select("value").writeStream.format("pyspark_kafka").options(**trial.user)
            .options(topic=trial.names[TARGET], commitTopic=trial.names[COMMITS], deliveryGuarantee="exactly_once")
            .option("checkpointLocation", checkpoint).trigger(processingTime="100 milliseconds").start()
        )  # fmt: skip

    expected = [b"v"]
    guarded.acls.put(every)
    query = start()
    try:
        eventually(lambda: written(guarded, trial) == expected)
        for number, missing in enumerate((read[0], every[1], every[2])):
            guarded.acls.put(right for right in every if right != missing)
            produce(servers, trial.names[SOURCE], [Record(None, b"%d" % number)])
            with pytest.raises(PySparkException) as caught:
                query.awaitTermination(300)
            # Spark itself says of a commit only that the job has failed; the reason is the cause, which it logs.
            text = f"{caught.value} {caught.value.__dict__.get('_stackTrace', '')}{caught.value.__cause__}"
            assert f"--operation {missing.operation} --{missing.kind}" in text
            assert written(guarded, trial) == expected
            guarded.acls.put(every)
            expected = sorted([*expected, b"%d" % number])
            query = start()
            eventually(lambda: written(guarded, trial) == expected)  # noqa: B023 - called here
    finally:
        query.stop()


@pytest.mark.parametrize(
    "kind",
    [
        "source",
        *(
            pytest.param(kind, marks=pytest.mark.full("Further missing rights"))
            for kind in ("target", "transactional-id")
        ),
    ],
)
def test_continuous_query_ends_and_continues_exactly_once_when_the_right_is_back(
    spark: SparkSession, guarded: Guarded, tmp_path: Path, kind: str
) -> None:
    trial, _ = guarded.trial("read", tmp_path)
    every = rights_of(trial, "continuous-exactly-once")
    servers, expected = guarded.kafka.bootstrap_servers, [b"v"]

    def start() -> ContinuousQuery:
        write: Any = (
            continuous.read(spark).format("pyspark_kafka").options(**trial.read_options()).load()
            .writeStream.format("pyspark_kafka").options(**trial.user).option("topic", trial.names[TARGET])
            .option("deliveryGuarantee", "exactly_once").option("checkpointLocation", str(tmp_path / "checkpoint"))
        )  # fmt: skip
        started: ContinuousQuery = write.trigger(continuous="100 milliseconds").start()
        return started

    (missing,) = (right for right in every if kind in (right.kind, _side(right, trial)))
    guarded.acls.put(every)
    query = start()
    try:
        eventually(lambda: written(guarded, trial) == expected)
        guarded.acls.put(right for right in every if right != missing)
        produce(servers, trial.names[SOURCE], [Record(None, b"w")])
        eventually(lambda: query.exception() is not None)
        assert f"--operation {missing.operation} --{missing.kind}" in str(query.exception())
        assert written(guarded, trial) == expected
        guarded.acls.put(every)
        query = start()
        eventually(lambda: written(guarded, trial) == [b"v", b"w"])
    finally:
        query.stop()


def _side(right: Right, trial: Trial) -> str:
    return {trial.names[SOURCE]: "source", trial.names[TARGET]: "target"}.get(right.name, "")
