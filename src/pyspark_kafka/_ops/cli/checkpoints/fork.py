"""The work of `pyspark-kafka checkpoint fork` and `rewind`."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_kafka._ops.cli.checkpoints.show import SHOWN_PARTITIONS, or_dash
from pyspark_kafka._ops.cli.common.arguments import connection_of, is_connected
from pyspark_kafka._ops.cli.common.heartbeat import progress
from pyspark_kafka._ops.cli.common.outcome import ExitStatus, Interrupted
from pyspark_kafka._ops.cli.common.output import number_columns, print_json, print_rows, say, warn
from pyspark_kafka._ops.operations.checkpoints.forking.apply import apply_fork, check_target
from pyspark_kafka._ops.operations.checkpoints.forking.backups import check_backup, check_belongs, is_marked, restore
from pyspark_kafka._ops.operations.checkpoints.forking.explain import describe_plan
from pyspark_kafka._ops.operations.checkpoints.forking.log_bounds import fetch_log_bounds
from pyspark_kafka._ops.operations.checkpoints.forking.places import AfterBatch, AtTime, parse_offsets, parse_time
from pyspark_kafka._ops.operations.checkpoints.forking.plan import METADATA, ForkRequest, plan_fork
from pyspark_kafka._ops.operations.checkpoints.forking.positions import partitions_of
from pyspark_kafka._ops.operations.checkpoints.forking.rewind import apply_rewind, check_finished, check_quiet
from pyspark_kafka._ops.operations.checkpoints.forking.snapshot import read_snapshot
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import files_of, read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.unfinished import read_unfinished
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.checkpoint.files import DirectoryNames
from pyspark_kafka.errors import AccessError, ConnectorError, DeadlineError, OptionError, TransportError

if TYPE_CHECKING:
    from pyspark_kafka._ops.operations.checkpoints.forking.log_bounds import LogBounds
    from pyspark_kafka._ops.operations.checkpoints.forking.places import Place
    from pyspark_kafka._ops.operations.checkpoints.forking.plan import ForkPlan


@dataclass(frozen=True, slots=True)
class ForkArguments:
    """The arguments that `fork` and `rewind` share.

    Attributes:
        at, batch, offsets: the place; one of them.
        drop_state: whether a state may be dropped.
        apply: whether files are written.
        as_json: whether to print JSON.
        connection: the arguments of `connection_of`.
    """

    at: str | None
    batch: int | None
    offsets: str | None
    drop_state: bool
    apply: bool
    as_json: bool
    connection: tuple[Any, Any, Any, Any]

    def place(self, now_ms: int) -> Place:
        """Return the place.

        Raises:
            OptionError: none is named, or several are, or it is malformed.
        """
        if sum(each is not None for each in (self.at, self.batch, self.offsets)) != 1:
            raise OptionError(
                "A place is named by one of --at, --batch and --offsets.",
                condition="ARGUMENT_INVALID",
                hint='Write --at "2 hours ago", --batch 17, or --offsets \'{"orders":{"0":23}}\'.',
            )
        if self.at is not None:
            return parse_time(self.at, now_ms)
        if self.batch is not None:
            return AfterBatch(self.batch)
        return parse_offsets(_text_of(self.offsets or ""))


def run_fork(source: str, target: str, request: ForkArguments) -> ExitStatus:
    """Plan a fork, show the plan, and write the new checkpoint if requested.

    Raises:
        ConnectorError: it cannot be planned or written.
        Interrupted: the user has pressed Ctrl-C after the plan was made.
    """
    files, target_files = files_of(source), files_of(target)
    plan, failure = _planned(files, request, in_place=False)
    check_target(files, target_files)
    try:
        if request.apply:
            with progress(f"Writing {target_files.shown}", quiet_s=0) as step:
                apply_fork(plan, files, target_files, step.update)
        _show(plan, request, failure, {"target": target_files.shown})
        if not request.as_json:
            done = f"Written: {target_files.shown}. Start the program with this checkpointLocation."
            say(done if request.apply else "Nothing was written. Pass --yes to write it.")
    except KeyboardInterrupt:
        raise Interrupted(_left_at(target_files, plan) if request.apply else "Nothing was written.") from None
    return ExitStatus.WELL if failure is None else ExitStatus.INCOMPLETE


def _left_at(target: CheckpointFiles, plan: ForkPlan) -> str:
    """Return the remains of a fork that was interrupted in its writes: the target may not be its own yet."""
    try:
        data = target.read(METADATA)
    except (ConnectorError, KeyboardInterrupt):
        return (
            f"Whether the fork is finished is not known: if {target.shown}/{METADATA} says that it is not, remove that "
            "directory."
        )
    if data == plan.metadata:
        return f"The fork is finished: {target.shown}."
    if read_unfinished(data) is not None:
        return f"The checkpoint is as it was. The fork in {target.shown} is not finished: remove that directory."
    return "Nothing was written."


def run_rewind(checkpoint: str, request: ForkArguments, *, force: bool) -> ExitStatus:
    """Plan a rewind, show the plan, and carry it out if requested.

    Raises:
        ConnectorError: it cannot be planned or carried out.
    """
    files = files_of(checkpoint)
    plan, failure = _planned(files, request, in_place=True)
    backup = _backup_beside(files)
    needed = "--yes"
    if not force:
        try:
            check_quiet(files, removes=bool(plan.removals))
        except ConnectorError as error:
            if request.apply:
                raise
            warn(str(error))
            needed = "--yes, and --force if it is stopped already,"
    if request.apply:
        with progress(f"Rewinding {files.shown}", quiet_s=0) as step:
            apply_rewind(plan, files, backup, step.update)
    _show(plan, request, failure, {"backup": backup.shown if request.apply else None})
    if not request.as_json:
        if request.apply:
            say(f"Done. The former checkpoint is {backup.shown}; to undo this, pass --restore {backup.shown}.")
        else:
            say("The query must be stopped: one that waits for records cannot be seen from here.")
            say(f"Nothing was changed. Pass {needed} to do it; a full copy is made beside the checkpoint first.")
    return ExitStatus.WELL if failure is None else ExitStatus.INCOMPLETE


def run_restore(checkpoint: str, backup: str, request: ForkArguments, *, force: bool) -> ExitStatus:
    """Make a checkpoint what a backup is, if requested.

    Raises:
        ConnectorError: the backup is none, or one of another query, or the checkpoint is in use.
    """
    files, copy = files_of(checkpoint), files_of(backup)
    content = _content_of(copy)
    check_backup(files, copy)
    if not force:
        check_belongs(files, copy)
        # No query runs on an unfinished one.
        if read_unfinished(files.read(METADATA)) is None:
            check_quiet(files, removes=True)
    former = _backup_beside(files)
    has_copied = False
    if request.apply:
        with progress(f"Restoring {files.shown}", quiet_s=0) as step:
            has_copied = restore(files, copy, step.update, former=former)
    told = {
        "location": files.shown,
        "backup": copy.shown,
        "former": former.shown if has_copied else None,
        "applied": request.apply,
    }
    if request.as_json:
        print_json(told)
        return ExitStatus.WELL
    say(content)
    say(
        f"{files.shown} is what it was."
        if request.apply
        else "Nothing was changed. Pass --yes to put the backup in the place of what is there now, of which a copy is "
        "made first."
    )
    if has_copied:
        say(f"What was there is {former.shown}; to undo this, pass --restore {former.shown}.")
    return ExitStatus.WELL


def _content_of(backup: CheckpointFiles) -> str:
    """Return the content of a backup.

    Raises:
        ConnectorError: it cannot be read, and nothing says that it is what a rewind or a restore has copied.
    """
    try:
        snapshot = read_snapshot(read_checkpoint(backup))
    except ConnectorError as error:
        # What a restore takes away may be damaged, or without a batch, and must be there to undo it.
        if not is_marked(backup):
            raise
        return f"The content of the backup is damaged or incomplete, and is put back as it is: {error.message}"
    return f"The backup is of query {snapshot.query_id}, up to batch {snapshot.last_number}."


def _backup_beside(files: CheckpointFiles) -> CheckpointFiles:
    """Return the place for a backup of this second; the second one in it has a number."""
    at = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    for number in range(1, 100):
        ending = at if number == 1 else f"{at}-{number}"
        backup = CheckpointFiles(files.beside(f"{files.base_name}-backup-{ending}"))
        if backup.scan() == DirectoryNames():
            break
    return backup


def _planned(files: CheckpointFiles, request: ForkArguments, *, in_place: bool) -> tuple[ForkPlan, str | None]:
    """Return the plan, and why no request was sent although brokers are named."""
    now_ms = time.time_ns() // 1_000_000
    place = request.place(now_ms)
    check_finished(files)
    snapshot = read_snapshot(read_checkpoint(files), place.batch_id if isinstance(place, AfterBatch) else None)
    bounds: LogBounds | None = None
    failure: str | None = None
    if is_connected(*request.connection):
        connection = connection_of(*request.connection)
        timestamp_ms = place.timestamp_ms if isinstance(place, AtTime) else None
        try:
            with progress("Asking the brokers", quiet_s=0):
                bounds = fetch_log_bounds(connection, partitions_of(snapshot), timestamp_ms)
        except (TransportError, DeadlineError, AccessError) as error:
            if not isinstance(place, AfterBatch):
                raise
            failure = str(error)
    wanted = ForkRequest(place, in_place, request.drop_state, str(uuid.uuid4()), now_ms)
    return plan_fork(snapshot, wanted, bounds), failure


def _show(plan: ForkPlan, request: ForkArguments, failure: str | None, more: dict[str, Any]) -> None:
    if request.as_json:
        print_json(plan_to_json(plan) | more | {"applied": request.apply, "problem": failure})
        return
    rows = [
        (
            each.source,
            each.topic_partition.topic,
            str(each.topic_partition.partition),
            or_dash(each.now),
            str(each.to),
            f"{each.read_again:,}",
            f"{each.skipped:,}",
            "?" if each.earliest is None else f"{each.lost:,}",
        )
        for each in plan.positions.moves[:SHOWN_PARTITIONS]
    ]
    numbers = number_columns("partition", "from", "to", "read again", "skipped", "lost")
    print_rows(("source", "topic", *numbers), rows)
    if len(plan.positions.moves) > SHOWN_PARTITIONS:
        say(f"{len(plan.positions.moves) - SHOWN_PARTITIONS:,} more partitions; --json has them.")
    say(*describe_plan(plan))
    if failure is not None:
        warn(f"Not found out, whether the brokers still have these records: {failure}")


def plan_to_json(plan: ForkPlan) -> dict[str, Any]:
    """Return a plan as values for JSON. The keys are public."""
    moves = plan.positions.moves
    return {
        "location": plan.snapshot.location,
        "former_query_id": plan.snapshot.query_id,
        "query_id": plan.query_id,
        "next_batch": plan.next_batch,
        "state": plan.state.value,
        "read_again": sum(each.read_again for each in moves),
        "skipped": sum(each.skipped for each in moves),
        "lost": sum(each.lost for each in moves),
        "partitions": [
            {
                "source": each.source,
                "topic": each.topic_partition.topic,
                "partition": each.topic_partition.partition,
                "from": each.now,
                "to": each.to,
                "read_again": each.read_again,
                "skipped": each.skipped,
                "lost": None if each.earliest is None else each.lost,
            }
            for each in moves
        ],
        "other_sources": list(plan.positions.others),
        "sentences": describe_plan(plan),
    }


def _text_of(given: str) -> str:
    """Return the text if it is JSON, else the JSON of the file that it names."""
    if given.lstrip()[:1] == "{":
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise OptionError(
            f"--offsets '{given[:100]}' is neither JSON nor a file that can be read.",
            condition="ARGUMENT_INVALID",
            hint='Write \'{"orders":{"0":23,"1":-2}}\', or the name of a file that has this.',
        ) from error
