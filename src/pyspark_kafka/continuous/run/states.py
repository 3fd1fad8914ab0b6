"""The driver's side of states: which versions a run begins with, and which belong to an epoch."""

from __future__ import annotations

import json
import logging
import uuid
from functools import partial
from typing import TYPE_CHECKING

from pyspark_kafka.checkpoint.state_names import CommittedHeads, StateVersion, directory_of
from pyspark_kafka.connector.engine.checks import check_instance
from pyspark_kafka.continuous.state.version_files import EPOCHS_KEPT, VersionFiles
from pyspark_kafka.continuous.state.versions import StatePlan, StateVersions, fingerprint_of
from pyspark_kafka.errors import CheckpointError, ContractError, StateError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_kafka.checkpoint import CheckpointFiles
    from pyspark_kafka.checkpoint.continuous_files import WaitingStep
    from pyspark_kafka.connector import ContinuousStream, InputPartition
    from pyspark_kafka.continuous.epochs.coordinator import LaneReport
    from pyspark_kafka.continuous.epochs.epoch_files import EpochFiles
    from pyspark_kafka.continuous.task.stages import MapWithState

_LOG = logging.getLogger(__name__)

# States that are removed after an epoch: thousands of topics may have been deleted at once.
_REMOVED_AT_ONCE = 4
# Versions that the driver looks for before a run.
_MAX_LOOKED_FOR = 100


class QueryStates:
    """The versions of all a query's states after the last committed epoch.

    Runs on: driver, where epochs are committed; methods block on the checkpoint.

    Args:
        steps: the steps that have a state; without any, every method returns at once.
        files: the checkpoint.
        epochs: its files.
    """

    def __init__(self, steps: Sequence[MapWithState], files: CheckpointFiles, epochs: EpochFiles) -> None:
        kept = [each for step in steps for each in step.kept]
        self._ttls_ms = tuple(ttl_ms for _, ttl_ms in kept)
        self._files, self._epochs = files, epochs
        self._versions = StateVersions(tuple(schema for schema, _ in kept), {})
        self._fingerprint = fingerprint_of(self._versions.schemas)
        self._seen_lanes: set[int] = set()
        # The directories of all key groups of the plan; None before one.
        self._planned: frozenset[str] | None = None

    def open(self, next_epoch: int) -> None:
        """Open the versions of the last committed epoch.

        Raises:
            CheckpointError: the file with the versions is malformed or cannot be read.
            StateError: there is no state of that epoch, or it is of other steps.
        """
        schemas = self._versions.schemas
        if not schemas:
            return
        self._seen_lanes.clear()
        self._planned = None
        self._versions = StateVersions(schemas, {})
        if next_epoch == 0:
            return
        text = self._epochs.state_after(next_epoch - 1)
        if text is None:
            raise StateError(
                f"Checkpoint {self._files.shown} has no state of epoch {next_epoch - 1}. It was written by a query "
                "without this state, or by micro-batches. Nothing was read.",
                condition="STATE_EPOCH_MISSING",
                hint="Start the query with a new checkpointLocation, or without .mapWithState.",
                parameters={"location": self._files.shown, "epoch": next_epoch - 1},
            )
        try:
            self._versions = StateVersions.parse(text)
        except (ValueError, RecursionError) as error:
            raise CheckpointError(
                f"The versions of states after epoch {next_epoch - 1} of checkpoint {self._files.shown} are malformed: "
                f"{error}.",
                condition="CHECKPOINT_LOG_INVALID",
                hint="Restore the checkpoint from a copy, or start the query with a new checkpointLocation.",
                parameters={"location": self._files.shown, "epoch": next_epoch - 1},
            ) from error
        if self._versions.schemas != schemas:
            found, self._versions = self._versions, StateVersions(schemas, {})
            raise self._schema_changed(f"its checkpoint {self._files.shown} has ({'), ('.join(found.schemas)})")

    def take_committed(self, found: Mapping[str, str | None]) -> None:
        """Replace the checkpoint's versions by versions that lanes have committed with their positions.

        Args:
            found: by key group, as `SupportsSourceOffsets.committedStates` returns them.

        Raises:
            StateError: a position was committed without this state, or its files are not there.
        """
        heads: dict[str, str | None] = {}
        for key_group, text in found.items():
            committed = self._no_heads() if text is None else self._committed_heads(key_group, text)
            heads |= {directory_of(step, key_group): head for step, head in enumerate(committed.heads)}
        before = self._versions.heads
        self._versions = self._versions.with_heads(heads)
        new = {name: head for name, head in heads.items() if head is not None and head != before.get(name)}
        # The lanes look for the others.
        self._check_are_there(dict(list(new.items())[:_MAX_LOOKED_FOR]))

    def _no_heads(self) -> CommittedHeads:
        return CommittedHeads(self._fingerprint, (None,) * len(self._ttls_ms))

    def _committed_heads(self, key_group: str, text: str) -> CommittedHeads:
        if not text:
            raise StateError(
                f"The position of key group {key_group} was committed exactly once by a query without this state, and "
                f"checkpoint {self._files.shown} is behind it: its state does not belong to that position. Nothing was "
                "read.",
                condition="STATE_EPOCH_MISSING",
                hint="Start the query without .mapWithState, or with a new checkpointLocation.",
                parameters={"location": self._files.shown, "key_group": key_group},
            )
        try:
            found = CommittedHeads.parse(text)
        except ValueError as error:
            raise CheckpointError(
                f"The position of key group {key_group} of the query of checkpoint {self._files.shown} has a malformed "
                f"state: {error}. Nothing was read.",
                condition="CHECKPOINT_LOG_INVALID",
                hint="Use the version of pyspark-kafka that has run the query last, or start with a new "
                "checkpointLocation.",
                parameters={"location": self._files.shown, "key_group": key_group},
            ) from error
        if found.fingerprint != self._fingerprint or len(found.heads) != len(self._ttls_ms):
            raise self._schema_changed(f"the position of key group {key_group} was committed with other columns")
        return found

    def _schema_changed(self, reason: str) -> StateError:
        return StateError(
            f"The query keeps ({'), ('.join(self._versions.schemas)}) by key, and {reason}. Nothing was read.",
            condition="STATE_SCHEMA_CHANGED",
            hint="Keep the steps, the columns of the states and the column of the watermark, or start with a new "
            "checkpointLocation.",
            parameters={"location": self._files.shown},
        )

    def _check_are_there(self, heads: Mapping[str, str]) -> None:
        files = VersionFiles(self._files)
        missing: list[str] = []

        def look(directory: str, text: str) -> None:
            if not files.is_there(directory, StateVersion.parse(text)):
                missing.append(f"{directory}/{text}")

        self._files.side_by_side(*(partial(look, *item) for item in heads.items()))
        if missing:
            raise StateError(
                f"Positions of the query name versions of its state that checkpoint {self._files.shown} does not have: "
                f"{listed(sorted(missing), noun='versions')}. An older state would count records twice, so nothing was "
                "read.",
                condition="STATE_VERSION_MISSING",
                retriable=True,
                hint="Let all executors share the checkpoint's location. If files below continuous/state were removed, "
                "restore them. If they are lost, move the query to an epoch whose state is there with `pyspark-kafka "
                "checkpoint rewind`: records since then are written again.",
                parameters={"location": self._files.shown, "versions": len(missing)},
            )

    def plan(self, stream: ContinuousStream, partitions: Sequence[InputPartition]) -> StatePlan | None:
        """Return the first versions of a run's states; None without states.

        Raises:
            ContractError: two input partitions have one key group.
        """
        if not self._versions.schemas:
            return None
        key_groups: dict[int, tuple[str, ...]] = {}
        known: set[str] = set()
        for lane, partition in enumerate(partitions):
            groups = tuple(check_instance(each, str, stream, "keyGroups") for each in stream.keyGroups(partition))
            if known.intersection(groups) or len(set(groups)) != len(groups) or not groups:
                text = f"returns each key group once, and returned {groups!r} for input partition {lane}."
                raise ContractError.violated(stream, "keyGroups", text)
            known.update(groups)
            key_groups[lane] = groups
        steps = range(len(self._ttls_ms))
        self._planned = frozenset(directory_of(step, group) for step in steps for group in known)
        heads = {name: head for name, head in self._versions.heads.items() if name in self._planned}
        run = uuid.uuid4().hex[:12] + "a"
        return StatePlan(self._files.location, run, key_groups, heads, self._ttls_ms, self._fingerprint)

    def after(self, reports: Sequence[LaneReport], waiting: Sequence[WaitingStep] = ()) -> str:
        """Return the versions after the next epoch, as text for the checkpoint; empty without states.

        Args:
            reports: of its lanes.
            waiting: the steps with timers after it.

        Raises:
            StateError: a version was written where the driver does not find it.
        """
        if not self._versions.schemas:
            return ""
        for report in reports:
            if report.state and report.lane not in self._seen_lanes:
                self._check_is_there(json.loads(report.state))
                self._seen_lanes.add(report.lane)
        versions = self._versions
        if self._planned and reports:
            # A key group that is not read any more has lost its position, and loses its state.
            versions = versions.only(self._planned, reports[0].epoch)
        return versions.with_changes(report.state for report in reports).json(waiting)

    def committed(self, epoch: int, text: str) -> None:
        """Record that an epoch is committed with these versions, and remove states that no kept epoch has.

        Files that cannot be removed now are removed with a later epoch: this one is still committed.

        Raises:
            CheckpointError: the right to remove files is missing.
        """
        if not text:
            return
        versions = StateVersions.parse(text)
        due = [name for name, since in versions.gone.items() if since <= epoch - EPOCHS_KEPT][:_REMOVED_AT_ONCE]
        files = VersionFiles(self._files)
        # Not the versions of later epochs: the key group may be read again, by another driver.
        try:
            self._files.side_by_side(*(partial(files.remove_before, name, versions.gone[name] + 1) for name in due))
        except CheckpointError as error:
            if not error.retriable:
                raise
            _LOG.warning("Files of states are left for a later epoch: %s", error)
            due = []
        self._versions = versions.without(due)

    def _check_is_there(self, heads: dict[str, str]) -> None:
        directory, text = next(iter(heads.items()))
        if not VersionFiles(self._files).is_there(directory, StateVersion.parse(text)):
            raise StateError(
                f"A task has written state {text} to continuous/state/{directory} of checkpoint {self._files.shown}, "
                "and the driver does not find it there. The epoch was not committed.",
                condition="STATE_NOT_SHARED",
                # Some shares show what others have written a little later.
                retriable=True,
                hint="Set checkpointLocation to a place that driver and all executors share.",
                parameters={"location": self._files.shown, "directory": directory},
            )
