"""Verifies the states of a continuous query: whether a restart can read each of their files."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from pyspark_kafka._connector.sink.source_positions import committed_states
from pyspark_kafka._ops.operations.checkpoints.state_chains import StateChains
from pyspark_kafka._ops.operations.checkpoints.verify.findings import Severity
from pyspark_kafka.checkpoint.continuous_files import VERSIONS
from pyspark_kafka.checkpoint.files import target_of_temporary
from pyspark_kafka.checkpoint.state_names import STATES, CommittedHeads, StateVersion, directory_of
from pyspark_kafka.errors import StateError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._ops.operations.checkpoints.verify.cluster_snapshot import ClusterSnapshot
    from pyspark_kafka._ops.operations.checkpoints.verify.expectation import Expectation
    from pyspark_kafka._ops.operations.checkpoints.verify.file_judge import FileJudge

_ADVICE = (
    f"Restore the directory {STATES} from a copy that is as new as the positions. Without one, rewind the checkpoint "
    "to an epoch whose state is there: records since then are written again."
)


def check_states_of_epoch(judge: FileJudge, epoch: int) -> None:
    """Add the missing and damaged versions that an epoch of the checkpoint names.

    Runs on: any program; reads every state; blocks on the file system.
    """
    data = judge.attempt(f"{VERSIONS}/{epoch}", None, lambda: judge.checkpoint.files.read(f"{VERSIONS}/{epoch}"))
    try:
        heads = dict(json.loads(data or b"{}").get("heads", {}))
        for text in heads.values():
            StateVersion.parse(text)
    except (ValueError, TypeError, AttributeError, RecursionError):
        # A malformed file is another finding.
        return
    where, text = f"{VERSIONS}/{epoch}", f"Versions of states that epoch {epoch} names are not whole"
    _check_heads(judge, heads, where, text)


def check_states_of_group(judge: FileJudge, expected: Expectation, snapshot: ClusterSnapshot) -> None:
    """Add the versions that positions of an exactly-once query name and the checkpoint lacks.

    Runs on: any program; reads every state that is newer than the checkpoint; blocks on the file system.
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
            judge.findings.add_finding(
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
    text = (
        "The checkpoint is an older copy, or files were removed: the positions of the group name versions of states "
        "that are not whole in it"
    )
    _check_heads(judge, heads, lanes.group_id, text)


def _check_heads(judge: FileJudge, heads: Mapping[str, str], where: str, missing_text: str) -> None:
    """Read versions to their beginning, and add what a restart does not find or cannot read.

    Args:
        judge: takes the findings.
        heads: the versions by directory.
        where: who names them.
        missing_text: begins the sentence about missing files; the versions follow.
    """
    missing: list[str] = []
    tell = judge.report
    with StateChains.of(judge.checkpoint.files) as chains:
        for number, (directory, text) in enumerate(sorted(heads.items())):
            tell(f"Reading states, {number} of {len(heads)}")
            place = f"{STATES}/{directory}"
            _add_temporary(judge, place)
            try:
                judge.attempt(place, Severity.WARNING, partial(chains.check, directory, text))
            except StateError as error:
                if error.condition == "STATE_VERSION_MISSING":
                    missing.append(f"{directory}/{text} ({error.parameters['name']})")
                    continue
                reason = f"{error.message} A restart fails."
                judge.findings.add_finding(Severity.FAULT, "state-damaged", place, reason, _ADVICE)
    if not missing:
        return
    if where.startswith(VERSIONS) and judge.attempt(where, None, lambda: judge.checkpoint.files.status(where)) is None:
        judge.findings.unknown.append(f"{where} was removed while its states were read: the query runs.")
        return
    text = f"{missing_text}: {listed(missing)}. A restart is refused."
    judge.findings.add_finding(Severity.FAULT, "state-missing", where, text, _ADVICE)


def _add_temporary(judge: FileJudge, place: str) -> None:
    names = judge.attempt(place, Severity.WARNING, partial(judge.checkpoint.files.scan, place))
    for name in () if names is None else sorted(names.hidden):
        if (target := target_of_temporary(name)) is not None:
            judge.findings.add_finding(
                Severity.NOTE,
                "temporary",
                f"{place}/{name}",
                f"A file that was being written as {target} was left behind: a program died while it wrote, or is "
                "writing now. No restart reads it.",
                "Start the query: it removes the file.",
            )
