"""A description of a checkpoint in sentences: its query, its reads, its position, the effect of a restart. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import timestamp_text
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import CheckpointKind
from pyspark_kafka._ops.operations.text import counted
from pyspark_kafka.errors import listed, printable

if TYPE_CHECKING:
    from pyspark_kafka._base.offsets import KafkaSourceOffset
    from pyspark_kafka._ops.operations.checkpoints.summary import BatchSummary, CheckpointSummary, SourceSummary

_MAX_OTHER = 80


def describe_query(account: CheckpointSummary) -> list[str]:
    """Return the query, and its sources."""
    named = "has no id that can be read" if account.query_id is None else f"is {account.query_id}"
    said = [f"The query of checkpoint {account.location} {named}."]
    kind = account.kind
    if kind is CheckpointKind.CONTINUOUS:
        said.append("It is a continuous query of pyspark-kafka; its batches are epochs.")
    elif kind is CheckpointKind.SPARK_CONTINUOUS:
        said.append("It is a query of Spark's own continuous trigger; its batches are epochs.")
    elif kind is CheckpointKind.MICRO_BATCH:
        said.append("It runs in micro-batches.")
        if account.owner:
            said.append("It was a continuous query of pyspark-kafka before.")
    said.extend(_describe_source(source) for source in account.sources)
    if account.states:
        states = listed(
            [
                f"{state.name or 'an operator'} in {state.directory}, {counted(state.partitions, 'partition')}"
                for state in account.states
            ],
            printable,
            separator="; ",
        )
        said.append(f"It keeps state: {states}.")
    if account.transactions:
        said.append(f"It writes exactly once, with {printable(account.transactions)}.")
    return said


def describe_standing(account: CheckpointSummary) -> list[str]:
    """Return the position of the query."""
    if account.last_begun is None:
        return ["No batch has begun."]
    said = []
    kept = counted(account.begun, "batch", "batches")
    numbers = f"{account.first}" if account.first == account.last_begun else f"{account.first} to {account.last_begun}"
    said.append(f"The checkpoint keeps {kept}, {numbers}; older ones are removed by the query as it runs.")
    last = account.batches[-1] if account.batches else None
    if last is not None and last.batch_id == account.last_begun and last.planned_at_ms is not None:
        said.append(f"The last one was planned at {timestamp_text(last.planned_at_ms)}.")
    if account.last_finished is None:
        said.append("None of them is known to be finished.")
    else:
        said.append(f"Batch {account.last_finished} is the last one that is finished.")
    return said


def describe_restart(account: CheckpointSummary) -> list[str]:
    """Return the effect of a restart."""
    if account.not_whole:
        # In spite of the logs, which may belong to two places.
        return ["No query starts here: a fork or a rewind of the checkpoint was not finished.", account.not_whole]
    unfinished, last = account.unfinished, account.last_finished
    if account.last_begun is None:
        kept = any(source.position is not None for source in account.sources)
        return [
            "A restart begins where the query was going to begin, which the checkpoint keeps."
            if kept
            else "A restart is the first run: it begins at the query's startingOffsets."
        ]
    if account.kind is CheckpointKind.SPARK_CONTINUOUS:
        return [f"A restart begins at the end of epoch {last}." if last is not None else "A restart is the first run."]
    if unfinished is None:
        return [f"A restart plans batch {account.last_begun + 1}, which begins where batch {last} ends."]
    batch = next((each for each in account.batches if each.batch_id == unfinished), None)
    offsets = None if batch is None else batch.offsets
    size = "" if offsets is None else f": at most {counted(offsets, 'record')}" if offsets else ": no records"
    if account.kind is CheckpointKind.CONTINUOUS:
        if unfinished in account.prepared_epochs:
            said = [f"Epoch {unfinished} was to be committed and is not noted as finished."]
            said.append("A restart commits it again with the commit messages that the checkpoint keeps.")
            said.append("A sink that has it already does nothing.")
            return said
        said = [f"Epoch {unfinished} has begun and is not finished, and its commit messages are gone."]
        said.append("A continuous query refuses to start: run the query once with trigger(availableNow=True).")
        return said
    said = [f"Batch {unfinished} has begun and is not finished."]
    said.append(f"A restart runs it again, from the same start to the same ends{size}.")
    if any(source.other is not None for source in account.sources):
        said.append("Its other sources decide for themselves what they read again.")
    said.append(
        "A sink that is neither idempotent nor exactly once may then have rows of it twice; `verify` asks the brokers "
        "what an exactly-once sink has."
    )
    return said


def describe_batch(batch: BatchSummary) -> str:
    """Return one line about a batch."""
    if batch.problem:
        return f"Batch {batch.batch_id}: cannot be read. {printable(batch.problem)}"
    said = [f"Batch {batch.batch_id}:"]
    if batch.planned_at_ms is not None:
        said.append(f"planned {timestamp_text(batch.planned_at_ms)},")
    if batch.took_ms is not None:
        said.append(f"finished after {batch.took_ms / 1000:.1f} s,")
    elif batch.finished:
        said.append("finished,")
    else:
        said.append("not finished,")
    if batch.moved:
        said.append("written by a fork or a rewind: it reads nothing, and the query continues where it ends")
    elif batch.offsets_by_topic is None:
        said.append("its start is not kept")
    elif batch.offsets == 0:
        said.append("no records")
    else:
        topics = sorted((topic, rows) for topic, rows in batch.offsets_by_topic.items() if rows)
        of = listed([f"{rows:,} of {printable(topic)}" for topic, rows in topics], noun="topics")
        said.append(f"at most {batch.offsets:,} records" + (f" ({of})" if len(topics) > 1 else ""))
    if batch.new_partitions:
        said.append(f"and {counted(batch.new_partitions, 'new partition')}")
    if batch.watermark_ms is not None:
        said.append(f", watermark {timestamp_text(batch.watermark_ms)}")
    return " ".join(said).replace(" ,", ",") + "."


def _describe_source(source: SourceSummary) -> str:
    if source.other is not None:
        text = source.other if len(source.other) <= _MAX_OTHER else f"{source.other[:_MAX_OTHER]}…"
        return f"Source {printable(source.source)} is not Kafka's; its offset is {printable(text)}."
    offset = source.end or source.position
    if offset is None:
        return f"Source {printable(source.source)} has no offset yet."
    by = {True: ", read by pyspark-kafka", False: ", in the form of Spark's connector", None: ""}[source.spaced]
    return f"Source {printable(source.source)} is Kafka's{by}: {_topics_text(offset)}."


def _topics_text(offset: KafkaSourceOffset) -> str:
    nested = offset.to_dict()
    if not nested:
        return "no partition"
    return listed(
        [f"{printable(topic)} with {counted(len(numbers), 'partition')}" for topic, numbers in nested.items()],
        noun="topics",
    )
