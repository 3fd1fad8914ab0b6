"""What the commands of `pyspark-kafka checkpoint` print as JSON. Pure. Layer: cli.

The keys are public. Times are milliseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka.operations.checkpoints.account import (
        BatchAccount,
        CheckpointAccount,
        DirectoryAccount,
        SourceAccount,
    )


def account_to_json(account: CheckpointAccount) -> dict[str, Any]:
    """Return an account of a checkpoint as values for JSON."""
    return {
        "location": account.location,
        "query_id": account.query_id,
        "kind": None if account.kind is None else account.kind.name.lower(),
        "batches_begun": account.begun,
        "batches_finished": account.finished,
        "first_batch": account.first,
        "last_begun": account.last_begun,
        "last_finished": account.last_finished,
        "unfinished": account.unfinished,
        "sources": [_source(source) for source in account.sources],
        "states": [
            {"directory": state.directory, "name": state.name, "partitions": state.partitions}
            for state in account.states
        ],
        "prepared_epochs": list(account.prepared_epochs),
        "owner": account.owner or None,
        "batches": [_batch(batch) for batch in account.batches],
        "problems": list(account.problems),
    }


def directories_to_json(directories: Sequence[DirectoryAccount]) -> list[dict[str, Any]]:
    """Return what is in the directories of a checkpoint as values for JSON."""
    return [
        {
            "directory": each.directory,
            "files": each.files,
            "checksums": each.checksums,
            "temporary": each.temporary,
            "directories": each.directories,
        }
        for each in directories
    ]


def _source(source: SourceAccount) -> dict[str, Any]:
    return {
        "source": source.source,
        "is_kafka": source.other is None,
        "position": None if source.position is None else source.position.to_dict(),
        "end_of_unfinished": None if source.end is None else source.end.to_dict(),
        "other_offset": source.other,
        "topic_ids": dict(source.topic_ids),
    }


def _batch(batch: BatchAccount) -> dict[str, Any]:
    return {
        "batch": batch.batch_id,
        "finished": batch.finished,
        "planned_at_ms": batch.planned_at_ms,
        "finished_at_ms": batch.finished_at_ms,
        "took_ms": batch.took_ms,
        "watermark_ms": batch.watermark_ms,
        "offsets": batch.offsets,
        "offsets_by_topic": None if batch.offsets_by_topic is None else dict(batch.offsets_by_topic),
        "new_partitions": batch.new_partitions,
        "moved": batch.moved,
        "problem": batch.problem or None,
    }
