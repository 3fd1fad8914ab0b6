"""The files that only a continuous query keeps in its checkpoint: their names and their content. Pure.

| File | Content |
| --- | --- |
| `continuous/owner` | the id of the start of the query that writes the checkpoint |
| `continuous/messages/N-WRITER` | where epoch N ends, commit messages of its lanes, and the versions of its states |
| `continuous/versions/N` | the versions of all states after epoch N, and the topic-partitions that hold windows open |

Several writers may prepare an epoch; `offsets/N` names the one whose messages count. When and why the files are
written: `pyspark_kafka.continuous.epochs.epoch_files`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

OWNER = "continuous/owner"
MESSAGES = "continuous/messages"
VERSIONS = "continuous/versions"
_VERSION = 1
# In the metadata of `offsets/N`, of which Spark reads the members that it knows.
WRITER = "messages"
_MESSAGES_OF = re.compile(r"(0|[1-9][0-9]{0,18})(?:-[0-9A-Za-z]+)?")


@dataclass(frozen=True, slots=True)
class PreparedEpoch:
    """An epoch that is about to be committed.

    Attributes:
        offset: the JSON of where it ends.
        messages: the JSON of the commit messages of its lanes.
        state: the versions of states after it, as text; empty if functions keep none.
    """

    offset: str
    messages: tuple[str, ...]
    state: str = ""

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        content = {"v": _VERSION, "offset": self.offset, "messages": list(self.messages)}
        if self.state:
            content["state"] = self.state
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> PreparedEpoch:
        """Read the content of the file.

        Raises:
            ValueError: it is malformed, or of another version.
        """
        try:
            parsed = json.loads(data)
            messages, offset, version = parsed["messages"], parsed["offset"], parsed["v"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"it has no commit messages ({error})") from error
        if version != _VERSION or type(offset) is not str or type(messages) is not list:
            raise ValueError("it has no commit messages (unknown version or form)")
        if not all(type(each) is str for each in messages):
            raise ValueError("it has no commit messages (unknown version or form)")
        return cls(offset, tuple(messages), str(parsed.get("state", "")))


@dataclass(frozen=True, slots=True)
class WaitingStep:
    """A step of a continuous query with timers that wait for event time, such as open windows.

    Attributes:
        step: its place among the steps with state, from 0.
        operator: its name in the progress.
        key_group: the topic-partition that holds it back most: the lowest watermark of those with timers.
        watermark_ms: that watermark, in ms since 1970.
        timer_ms: the first timer of the topic-partition.
    """

    step: int
    operator: str
    key_group: str
    watermark_ms: int
    timer_ms: int

    def to_list(self) -> list[object]:
        """Return it as values for JSON."""
        return [self.step, self.operator, self.key_group, self.watermark_ms, self.timer_ms]

    @classmethod
    def from_list(cls, values: object) -> WaitingStep:
        """Return the step of `to_list`.

        Raises:
            ValueError: the values are of another kind.
        """
        if not isinstance(values, list) or list(map(type, values)) != [int, str, str, int, int]:
            raise ValueError("it has no waiting steps")
        return cls(*values)


def read_waiting_steps(data: bytes) -> tuple[WaitingStep, ...]:
    """Return the waiting steps in a file of `continuous/versions`; none if its writer did not note them.

    Raises:
        ValueError: it is malformed.
    """
    try:
        return tuple(map(WaitingStep.from_list, json.loads(data).get("waiting", ())))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it has no versions of states ({error})") from error


def messages_name(epoch: int, writer: object) -> str:
    """Return the file of the commit messages of an epoch.

    Args:
        epoch: its number.
        writer: the name of who has prepared it, which is used once: `WRITER` in the metadata of `offsets/N`.
    """
    named = isinstance(writer, str) and writer.isalnum()
    return f"{MESSAGES}/{epoch}-{writer}" if named else f"{MESSAGES}/{epoch}"


def epoch_of_messages(name: str) -> int | None:
    """Return the epoch of a file of commit messages by its name in their directory; None if it is something else."""
    found = _MESSAGES_OF.fullmatch(name)
    return None if found is None else int(found[1])


def owner_bytes(run_id: str) -> bytes:
    """Return the content of `OWNER`."""
    return json.dumps({"v": _VERSION, "runId": run_id}, separators=(",", ":")).encode()


def read_owner(data: bytes | None) -> str | None:
    """Return the id of the start that owns the checkpoint; None without an owner's file, as in a copy cut short."""
    try:
        return str(json.loads(data or b"")["runId"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
