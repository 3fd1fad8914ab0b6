"""The files of another checkpoint, so that a query starts at a place, and the effect on state and numbers. Pure.

Numbers never go back for one id of a query: sinks recognize committed batches by them. So the last finished batch of
the other checkpoint has the number after the last used one, for any place. Two cases cannot do that, and
get a new id instead:

- a state of Spark that is kept: batch N reads version N of the state, so the number of its batch stays;
- a state that is dropped: only batch 0 begins with an empty state. It is planned, and reads nothing.

A fork is another query, and always has a new id. So does a query whose positions are in a consumer group: it starts at
the later position of group and checkpoint, and the id is in the name of the group.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from pyspark_kafka._base.offsets import KafkaSourceOffset
from pyspark_kafka._connector.sink.driver.lane_record_file import NAME as LANE_RECORD
from pyspark_kafka._ops.operations.checkpoints.batches import COMMITS, MOVED, OFFSETS, is_batch_name
from pyspark_kafka._ops.operations.checkpoints.forking.identities import identities_at, recreated_topics
from pyspark_kafka._ops.operations.checkpoints.forking.places import AfterBatch
from pyspark_kafka._ops.operations.checkpoints.forking.positions import Positions, resolve_place
from pyspark_kafka._ops.operations.checkpoints.forking.state_files import judge_state, whole_versions
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import CheckpointKind
from pyspark_kafka.checkpoint.continuous_files import OWNER, VERSIONS, owner_bytes
from pyspark_kafka.checkpoint.initial_offset_log import encode
from pyspark_kafka.errors import CheckpointError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_kafka._ops.operations.checkpoints.forking.log_bounds import LogBounds
    from pyspark_kafka._ops.operations.checkpoints.forking.places import Place
    from pyspark_kafka._ops.operations.checkpoints.forking.snapshot import CheckpointSnapshot

METADATA = "metadata"
_CONTINUOUS_STATE = "continuous/state/"
# A sink of the toolkit notes its batches there.
_SINK_LOG = "commits-of-sink"
_COPIED = ("sources/", "sink/")


class StateHandling(Enum):
    """The treatment of a query's state."""

    NONE = "none"
    CARRIED = "carried"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """The request for another checkpoint.

    Attributes:
        place: its start.
        in_place: whether the checkpoint itself is changed.
        drop_state: whether a query with state starts with an empty state.
        new_query_id: the id to use if a new one is needed.
        now_ms: milliseconds since 1970-01-01 UTC.
    """

    place: Place
    in_place: bool
    drop_state: bool
    new_query_id: str
    now_ms: int


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """The plan of another checkpoint.

    Attributes:
        snapshot: the source checkpoint.
        request: the request.
        positions: its start.
        query_id: the id of its query.
        next_batch: the number of the first batch of that query.
        state: the treatment of the state.
        creates: files that must not exist yet, with their content, in the order of writing.
        writes: files that may exist, with their content.
        copies: unchanged files.
        removals: in place, the files to remove.
        recreated: topics that were recreated after the query read them, with offsets of the former topics.
    """

    snapshot: CheckpointSnapshot
    request: ForkRequest
    positions: Positions
    query_id: str
    next_batch: int
    state: StateHandling
    creates: Mapping[str, bytes] = field(repr=False)
    writes: Mapping[str, bytes] = field(repr=False)
    copies: tuple[str, ...] = field(repr=False, default=())
    removals: tuple[str, ...] = field(repr=False, default=())
    recreated: tuple[str, ...] = ()

    @property
    def has_new_id(self) -> bool:
        """Return whether the id differs from the id in the checkpoint."""
        return self.query_id != self.snapshot.query_id

    @property
    def metadata(self) -> bytes:
        """Return the content of the file that is written last."""
        return json.dumps({"id": self.query_id}, separators=(",", ":")).encode()


def plan_fork(snapshot: CheckpointSnapshot, request: ForkRequest, bounds: LogBounds | None) -> ForkPlan:
    """Return the plan of a checkpoint from which a query starts at a place.

    Args:
        snapshot: of the checkpoint.
        request: the request.
        bounds: the logs of its partitions; None without requests to brokers.

    Raises:
        CheckpointError: the place does not exist, or the state of the query cannot be moved there; or a recreated topic
            would be read at an offset of the former one.
        OptionError: offsets are of other partitions than the query reads, or outside of the log.
    """
    positions = resolve_place(snapshot, request.place, bounds)
    if snapshot.kind is CheckpointKind.CONTINUOUS:
        plan = _plan_continuous(snapshot, request, positions)
    elif not snapshot.state_files:
        plan = _plan_next(snapshot, request, positions, StateHandling.NONE)
    elif request.drop_state:
        plan = _plan_dropped(snapshot, request, positions)
    else:
        plan = _plan_carried(snapshot, request, positions)
    return _with_sources(plan, bounds)


def _plan_next(
    snapshot: CheckpointSnapshot, request: ForkRequest, positions: Positions, state: StateHandling
) -> ForkPlan:
    """Add a finished batch after the last used number; it reads nothing, and ends at the place."""
    number = snapshot.last_number + 1
    template = (
        snapshot.last if snapshot.wanted is None or not isinstance(request.place, AfterBatch) else snapshot.wanted
    )
    ends = {source: offset.json() for source, offset in positions.offsets().items()}
    conf = {**(template.offsets.value("conf") or {}), MOVED: "true"}
    offsets = template.offsets.with_metadata(batchWatermarkMs=0, batchTimestampMs=request.now_ms, conf=conf)
    offsets = offsets.with_ends(ends)
    commit = template.commit.with_metadata(nextBatchWatermarkMs=0)
    creates: dict[str, bytes] = {}
    # Spark uses the batch before the last one as the start of the last one, so it must exist.
    has_last = request.in_place and f"{OFFSETS}/{number - 1}" in snapshot.files
    if request.in_place and not has_last and f"{COMMITS}/{number - 1}" in snapshot.files:
        # A commit without offsets would replace the batch before the last one.
        number += 1
    numbers = (number,) if has_last else (number - 1, number)
    for each in numbers:
        creates |= {f"{OFFSETS}/{each}": offsets.to_bytes(), f"{COMMITS}/{each}": commit.to_bytes()}
    keeps_id = request.in_place and snapshot.lane_record is None and snapshot.query_id is not None
    writes: dict[str, bytes] = {}
    removals = (LANE_RECORD,) if request.in_place and snapshot.lane_record is not None else ()
    if snapshot.kind is CheckpointKind.CONTINUOUS or (request.in_place and snapshot.is_owned):
        # A running continuous query ends when it notices another owner.
        writes[OWNER] = owner_bytes(request.new_query_id)
    query_id = snapshot.query_id if keeps_id and snapshot.query_id else request.new_query_id
    copies = () if request.in_place else tuple(name for name in snapshot.files if name.startswith(_COPIED))
    return ForkPlan(snapshot, request, positions, query_id, number + 1, state, creates, writes, copies, removals)


def _plan_continuous(snapshot: CheckpointSnapshot, request: ForkRequest, positions: Positions) -> ForkPlan:
    """Plan for a continuous query: the versions of its states have names of their own, so numbers continue."""
    if snapshot.last_state is None:
        return _plan_next(snapshot, request, positions, StateHandling.NONE)
    if request.drop_state:
        plan = _plan_next(snapshot, request, positions, StateHandling.DROPPED)
        text = _without_heads(snapshot, snapshot.last_state)
        carried: tuple[str, ...] = ()
    else:
        wanted = snapshot.wanted if isinstance(request.place, AfterBatch) else None
        if wanted is None or wanted.state is None:
            raise _not_carried(snapshot, request, "The checkpoint has the states after whole epochs only")
        plan = _plan_next(snapshot, request, positions, StateHandling.CARRIED)
        text = wanted.state
        # With transactions, versions of later epochs may be older than the versions of a repeated epoch.
        has_later = snapshot.lane_record is not None
        carried = tuple(
            name
            for name in snapshot.files
            if name.startswith(_CONTINUOUS_STATE) and (has_later or _epoch_of(name) <= wanted.batch_id)
        )
        _check_heads(snapshot, wanted.batch_id, text, carried)
    creates = {f"{VERSIONS}/{plan.next_batch - 1}": text.encode(), **plan.creates}
    return replace(plan, creates=creates, copies=plan.copies if request.in_place else (*plan.copies, *carried))


def _plan_dropped(snapshot: CheckpointSnapshot, request: ForkRequest, positions: Positions) -> ForkPlan:
    """Plan batch 0, which reads nothing: only batch 0 begins with an empty state."""
    if positions.others:
        raise CheckpointError(
            f"State cannot be dropped in checkpoint {snapshot.location}: the query also reads sources that are not "
            f"Kafka's ({listed(positions.others)}), and those begin again with batch 0.",
            condition="CHECKPOINT_OTHER_SOURCES",
            hint="Leave --drop-state out, or start the query with a new checkpointLocation.",
            parameters={"location": snapshot.location},
        )
    offsets = positions.offsets()
    # The end contains the start as well, for a source that does not know its checkpoint.
    ends = {source: KafkaSourceOffset(each.partitions, each.partitions).json() for source, each in offsets.items()}
    planned = snapshot.last.offsets.with_metadata(batchWatermarkMs=0, batchTimestampMs=request.now_ms).with_ends(ends)
    copies = () if request.in_place else tuple(name for name in snapshot.files if name.startswith(_COPIED))
    removals = _numbered(snapshot, 0) if request.in_place else ()
    if request.in_place:
        removals = (*removals, *snapshot.state_files, *([LANE_RECORD] if snapshot.lane_record is not None else []))
    return ForkPlan(
        snapshot, request, positions, request.new_query_id, 0, StateHandling.DROPPED,
        {f"{OFFSETS}/0": planned.to_bytes()}, {}, copies, removals,
    )  # fmt: skip


def _plan_carried(snapshot: CheckpointSnapshot, request: ForkRequest, positions: Positions) -> ForkPlan:
    """Keep the number of the batch: it is the version of the state that the next batch reads."""
    wanted = snapshot.wanted if isinstance(request.place, AfterBatch) else None
    if wanted is None:
        raise _not_carried(snapshot, request, "The checkpoint has the states after whole batches only")
    version = wanted.batch_id + 1
    judged = judge_state(snapshot.state_files, version)
    if judged.by_unique_id or wanted.commit.value("stateUniqueIds"):
        raise _not_carried(
            snapshot, request, "Versions of the state have ids of their own (spark.sql.streaming.stateStore."
            "checkpointFormatVersion is 2), which are not carried", hint_batch=False,
        )  # fmt: skip
    if judged.missing:
        whole = [
            each - 1 for each in whole_versions(snapshot.state_files, [number + 1 for number in snapshot.finished])
        ]
        where = listed(judged.missing)
        there = f"it is after batch {listed(whole[::-1])}" if whole else "it is after none of the batches"
        reason = f"The state after batch {wanted.batch_id} is not whole in {where}; {there}"
        raise _not_carried(snapshot, request, reason, hint_batch=bool(whole))
    kept = tuple(
        name
        for name in snapshot.files
        if name.startswith((f"{OFFSETS}/", f"{COMMITS}/"))
        and is_batch_name(number := name.rpartition("/")[2])
        and int(number) <= wanted.batch_id
    )
    copies = (*kept, *(name for name in snapshot.files if name.startswith(_COPIED)), *judged.kept)
    removals = (*_numbered(snapshot, wanted.batch_id + 1), *judged.later)
    has_record = [LANE_RECORD] if snapshot.lane_record is not None else []
    return ForkPlan(
        snapshot, request, positions, request.new_query_id, version, StateHandling.CARRIED, {}, {},
        () if request.in_place else copies, (*removals, *has_record) if request.in_place else (),
    )  # fmt: skip


def _with_sources(plan: ForkPlan, bounds: LogBounds | None) -> ForkPlan:
    """Add the files of Kafka sources: their starts, and the ids of their topics."""
    writes, copies = dict(plan.writes), list(plan.copies)
    identities = identities_at(plan.snapshot, plan.request.place, plan.positions, bounds)
    for source, offset in plan.positions.offsets().items():
        directory = f"sources/{source}"
        begins = f"{directory}/0"
        # Only read until batch 0 is committed. A fork begins there; in place it does not change.
        if not plan.request.in_place or (plan.state is StateHandling.DROPPED and plan.next_batch == 0):
            writes[begins] = encode(offset)
        ids = identities.get(source)
        if ids is not None and (not plan.request.in_place or ids != plan.snapshot.topic_ids[source]):
            writes[f"{directory}/topic-ids"] = ids.to_bytes()
    copies = [name for name in copies if name not in writes]
    return replace(plan, writes=writes, copies=tuple(copies), recreated=tuple(recreated_topics(identities, bounds)))


def _numbered(snapshot: CheckpointSnapshot, first: int) -> tuple[str, ...]:
    """Return the files of batches from a number on, in Spark's logs and in the logs of sinks."""
    found = []
    for name in snapshot.files:
        directory, _, base = name.rpartition("/")
        if directory in (OFFSETS, COMMITS, _SINK_LOG) and is_batch_name(base) and int(base) >= first:
            found.append(name)
    # The newest first: the remaining files are always a log that Spark can have written.
    return tuple(sorted(found, key=lambda name: -int(name.rpartition("/")[2])))


def _epoch_of(name: str) -> int:
    number = name.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 0


def _without_heads(snapshot: CheckpointSnapshot, text: str) -> str:
    try:
        return json.dumps({**json.loads(text), "heads": {}}, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as error:
        raise _malformed_versions(snapshot, snapshot.last.batch_id) from error


def _check_heads(snapshot: CheckpointSnapshot, epoch: int, text: str, carried: tuple[str, ...]) -> None:
    """Refuse states that miss files or have damaged files."""
    try:
        heads: Mapping[str, str] = json.loads(text)["heads"]
        stems = {directory: version.rpartition(".")[0] for directory, version in heads.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _malformed_versions(snapshot, epoch) from error
    names = set(carried)
    missing = [
        directory
        for directory, stem in stems.items()
        if directory in snapshot.broken_states
        or not names & {f"{_CONTINUOUS_STATE}{directory}/{stem}.{end}" for end in ("0.delta", "whole")}
    ]
    if missing:
        raise CheckpointError(
            f"The states after epoch {epoch} of checkpoint {snapshot.location} are not whole: files of "
            f"{listed(missing)} are missing or damaged.",
            condition="CHECKPOINT_STATE_NOT_CARRIED",
            hint="Use a later epoch, or --drop-state.",
            parameters={"location": snapshot.location, "epoch": epoch},
        )


def _malformed_versions(snapshot: CheckpointSnapshot, epoch: int) -> CheckpointError:
    return CheckpointError(
        f"{VERSIONS}/{epoch} of checkpoint {snapshot.location} is malformed: it has no versions of states.",
        condition="CHECKPOINT_LOG_INVALID",
        hint="Restore the checkpoint from a copy, or choose another epoch.",
        parameters={"location": snapshot.location},
    )


def _not_carried(
    snapshot: CheckpointSnapshot, request: ForkRequest, reason: str, *, hint_batch: bool = True
) -> CheckpointError:
    batch = "Use --batch N of a batch whose state is there, or pass" if hint_batch else "Pass"
    return CheckpointError(
        f"The query of checkpoint {snapshot.location} keeps state, and the state of the place where it is to start is "
        f"not there. {reason}. With the state of another place, results would be wrong.",
        condition="CHECKPOINT_STATE_NOT_CARRIED",
        hint=f"{batch} --drop-state to start with an empty state: sums and counts then begin at zero, duplicates of "
        "earlier records are not detected, and joins find no earlier rows.",
        parameters={"location": snapshot.location, "in_place": request.in_place},
    )
