"""The errors that end a run of a continuous query, as its handle raises them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.continuous.channel.driver_side import SILENT
from pyspark_kafka.continuous.reports.run_log import numbered
from pyspark_kafka.errors import ConnectorError, ContinuousQueryError, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_kafka.continuous.epochs.messages import Failed


def run_failed(reason: str, hint: str) -> ContinuousQueryError:
    """Return the error of a run that ended for a reason of the engine.

    Args:
        reason: a clause without a full stop.
        hint: what to do, as a sentence.
    """
    return ContinuousQueryError(
        f"The run of a continuous query ended: {reason}. Uncommitted rows will be read again.",
        condition="CONTINUOUS_RUN_FAILED",
        hint=hint,
    )


def task_lost(task: int, reason: str, lanes: Iterable[int] = ()) -> ContinuousQueryError:
    """Return the error of a run whose task does not respond any more.

    Args:
        task: its number.
        reason: why it is lost, and where its process is.
        lanes: what it reads.
    """
    hint = "Read the log of its executor."
    if SILENT in reason or "interpreter" in reason:
        hint = "Find the call that holds the interpreter, or raise option taskTimeout."
    numbers = sorted(lanes)
    named = f", with {numbered('lane', numbers)}" if numbers else ""
    return run_failed(f"task {task} is lost: {reason}{named}", hint)


def job_ended(error: BaseException | None) -> ConnectorError:
    """Return the error of a run whose Spark job ended without a request.

    If the text of the job has an error of this package, its class and its condition are kept.
    """
    # The frames of the JVM tell a user nothing; the error itself is the cause.
    said = "without an error" if error is None else str(error).partition("\n\tat ")[0].strip()
    hint = "Read the log of the executor that the text names."
    if "No module named 'pyspark_kafka'" in said:
        hint = "Install pyspark-kafka in the Python of the executors; PYSPARK_PYTHON or spark.pyspark.python names it."
    failure: ConnectorError = run_failed(f"its Spark job ended: {said}", hint)
    if (raised := ConnectorError.in_text(said)) is not None:
        failure = raised.with_message(failure.message)
    failure.__cause__ = error
    return failure


def lane_failed(failed: Failed, epoch: int) -> ConnectorError:
    """Return the error of a lane whose reader, function or writer raised one.

    An error of this package keeps its class, its condition and whether it is retriable.

    Args:
        failed: what the lane said.
        epoch: the current epoch.
    """
    where = f" at {failed.offset}" if failed.offset else ""
    if failed.rows:
        where += f", with the rows of {failed.rows}"
    raised = ConnectorError.from_json(failed.error)
    text = (
        f"Lane {failed.lane} failed in epoch {epoch} or the one before it{where}: "
        f"{failed.summary if raised is None else raised.message}\n\n"
        f"{failed.traceback}\nNothing of this epoch was committed."
    )
    parameters = {"lane": failed.lane, "epoch": epoch, "offset": failed.offset, "rows": failed.rows}
    if raised is None:
        return ContinuousQueryError(
            text,
            condition="CONTINUOUS_TASK_FAILED",
            hint="Fix the error in the traceback; the next start continues at the last committed epoch.",
            parameters=parameters,
        )
    error = raised.with_message(text)
    error.parameters |= {name: printable(str(value)) for name, value in parameters.items()}
    return error
