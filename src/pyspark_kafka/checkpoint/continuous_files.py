"""The files that only a continuous query keeps in its checkpoint: their names and their content. Pure.

| File | Content |
| --- | --- |
| `continuous/owner` | the id of the start of the query that writes the checkpoint |
| `continuous/messages/N` | where epoch N ends, the commit messages of its lanes, and the versions of its states |
| `continuous/versions/N` | the versions of all states after epoch N |

When and why they are written: `pyspark_kafka.continuous.epochs.epoch_files`. Layer: checkpoint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

OWNER = "continuous/owner"
MESSAGES = "continuous/messages"
VERSIONS = "continuous/versions"
_VERSION = 1


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


def owner_bytes(run_id: str) -> bytes:
    """Return the content of `OWNER`."""
    return json.dumps({"v": _VERSION, "runId": run_id}, separators=(",", ":")).encode()


def read_owner(data: bytes | None) -> str | None:
    """Return the id of the start that owns the checkpoint; None if nobody says that it does, as in a copy cut short."""
    try:
        return str(json.loads(data or b"")["runId"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
