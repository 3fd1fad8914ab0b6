"""Verifies the states of a continuous query: whether the first files of a restart exist."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from pyspark_kafka.checkpoint.continuous_files import VERSIONS
from pyspark_kafka.checkpoint.state_names import STATES, CommittedHeads, StateVersion, directory_of
from pyspark_kafka.errors import listed
from pyspark_kafka.operations.checkpoints.verify.findings import Severity
from pyspark_kafka.sink.source_positions import committed_states

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka.operations.checkpoints.verify.cluster_snapshot import ClusterSnapshot
    from pyspark_kafka.operations.checkpoints.verify.expectation import Expectation
    from pyspark_kafka.operations.checkpoints.verify.file_judge import FileJudge

_ADVICE = (
    f"Restore the directory {STATES} from a copy that is as new as the positions. Without one, rewind the checkpoint "
    "to an epoch whose state is there: records since then are written again."
)


def check_states_of_epoch(judge: FileJudge, epoch: int) -> None:
    """Add the missing versions that an epoch of the checkpoint names.

    Runs on: any program; looks for a file of each state; blocks on the file system.
    """
    data = judge.attempt(f"{VERSIONS}/{epoch}", None, lambda: judge.checkpoint.files.read(f"{VERSIONS}/{epoch}"))
    try:
        heads = dict(json.loads(data or b"{}").get("heads", {}))
    except (ValueError, TypeError, AttributeError, RecursionError):
        # A malformed file is another finding.
        return
    missing = _missing(judge, heads)
    if missing:
        text = f"Versions of states that epoch {epoch} names are not there: {listed(missing)}. A restart is refused."
        judge.findings.add(Severity.FAULT, "state-missing", f"{VERSIONS}/{epoch}", text, _ADVICE)


def check_states_of_group(judge: FileJudge, expected: Expectation, snapshot: ClusterSnapshot) -> None:
    """Add the versions that positions of an exactly-once query name and the checkpoint lacks.

    Runs on: any program; looks for a file of each state that is newer than the checkpoint; blocks on the file system.
    """
    lanes = expected.lanes
    if lanes is None or snapshot.group is None:
        return
    topic_ids = {name: state.topic_id for name, state in snapshot.topics.items() if state.topic_id is not None}
    last = judge.checkpoint.history.last_finished
    found = committed_states(expected.position, snapshot.group, lanes, topic_ids, -1 if last is None else last)
    heads: dict[str, str] = {}
    for topic_partition, text in found.items():
        if not text:
            continue
        try:
            committed = CommittedHeads.parse(text)
        except ValueError as error:
            judge.findings.add(
                Severity.FAULT,
                "group-state",
                lanes.group_id,
                f"The position in {topic_partition} has a malformed state: {error}. A restart is refused.",
                "Use the version of pyspark-kafka that has run the query last.",
            )
            continue
        for step, head in enumerate(committed.heads):
            if head is not None:
                heads[directory_of(step, str(topic_partition))] = head
    missing = _missing(judge, heads)
    if missing:
        text = (
            f"The positions of the group name versions of states that are not in the checkpoint: {listed(missing)}. It "
            "is an older copy, or files were removed. A restart is refused."
        )
        judge.findings.add(Severity.FAULT, "state-missing", lanes.group_id, text, _ADVICE)


def _missing(judge: FileJudge, heads: Mapping[str, str]) -> list[str]:
    """Return the versions whose first file is missing."""
    missing = []
    for directory, text in sorted(heads.items()):
        name = f"{STATES}/{directory}/{StateVersion.parse(text).stem}.0.delta"
        is_there = judge.attempt(name, Severity.WARNING, partial(_is_there, judge, name))
        if is_there is False:
            missing.append(f"{directory}/{text}")
    return missing


def _is_there(judge: FileJudge, name: str) -> bool:
    return judge.checkpoint.files.status(name) is not None
