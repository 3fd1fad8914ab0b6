"""What the handle says about runs that ended."""

from __future__ import annotations

from kit.texts import said
from pyspark_kafka.continuous.epochs.messages import Failed, decode, encode
from pyspark_kafka.continuous.run.errors import job_ended, lane_failed, task_lost
from pyspark_kafka.errors import CheckpointError, ContinuousQueryError, TransportError


def test_executors_without_the_package_are_named() -> None:
    error = job_ended(RuntimeError("…\nModuleNotFoundError: No module named 'pyspark_kafka'\n\tat org"))
    assert "Install pyspark-kafka in the Python of the executors" in str(error)
    assert "at org" not in str(error)


def test_job_that_ends_by_itself_is_named() -> None:
    error = job_ended(None)
    assert "its Spark job ended: without an error" in str(error)
    assert error.__cause__ is None


def test_lost_task_is_named_with_its_lanes_and_what_to_do() -> None:
    silent = str(task_lost(3, "it was silent for 20 s (process 7 at h:1)", {5, 2}))
    assert "task 3 is lost: it was silent for 20 s (process 7 at h:1), with lanes 2, 5." in silent
    assert "raise option taskTimeout" in silent
    paused = "its connection ended; before, this program itself was silent, as it held the interpreter"
    assert "raise option taskTimeout" in str(task_lost(3, paused))
    assert "Hint: Read the log of its executor." in str(task_lost(3, "its connection ended", {5}))


def test_error_of_a_lane_keeps_its_class_its_condition_its_hint_and_whether_it_is_retriable() -> None:
    full = CheckpointError(
        "Cannot write 5.delta: no space left.",
        condition="CHECKPOINT_IO",
        hint="Free space.",
        retriable=True,
        parameters={"name": "5.delta"},
    )
    sent = Failed(3, "CheckpointError: …", "Traceback …", '{"t":{"0":7}}', "t-0 [5, 7)", full.to_json())
    received = decode(encode(sent))
    assert isinstance(received, Failed)
    error = lane_failed(received, 5)
    assert isinstance(error, CheckpointError)
    assert (error.condition, error.retriable, error.hint) == ("CHECKPOINT_IO", True, "Free space.")
    assert error.parameters == {
        "name": "5.delta", "lane": "3", "epoch": "5", "offset": '{"t":{"0":7}}', "rows": "t-0 [5, 7)"
    }  # fmt: skip
    assert said(error) == (
        '[CHECKPOINT_IO] Lane 3 failed in epoch 5 or the one before it at {"t":{"0":7}}, with the rows of t-0 [5, 7): '
        "Cannot write 5.delta: no space left.\n\nTraceback …\nNothing of this epoch was committed. Hint: Free space."
    )


def test_error_of_another_package_in_a_lane_is_a_failure_of_its_task() -> None:
    error = lane_failed(Failed(0, "ValueError: boom", "Traceback …"), 5)
    assert type(error) is ContinuousQueryError
    assert error.condition == "CONTINUOUS_TASK_FAILED"
    assert "Lane 0 failed in epoch 5 or the one before it: ValueError: boom\n\nTraceback …\n" in str(error)


def test_error_of_this_package_that_ended_the_job_keeps_its_class_and_its_condition() -> None:
    raised = TransportError(
        "Task 0 cannot reach its driver.", condition="CONTINUOUS_DRIVER_UNREACHABLE", hint="Let it."
    )
    error = job_ended(RuntimeError(f"Job aborted\npyspark_kafka.errors.TransportError: {raised}\n\n\tat org.apache"))
    assert type(error) is TransportError
    assert (error.condition, error.hint) == ("CONTINUOUS_DRIVER_UNREACHABLE", "Let it.")
    assert "its Spark job ended: Job aborted" in str(error)
