"""Names of the states of a continuous query: versions, their directories, and the text that a sink keeps. Pure.

The files themselves: `pyspark_kafka.continuous.state.version_files`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

# Below the checkpoint.
STATES = "continuous/state"
_FORM = re.compile(r"([0-9]{1,19})-([0-9a-z]{1,32})\.([0-9]{1,9})")
_CAPITAL = re.compile("%..|[A-Z]")
# Names of files have at most 255 bytes.
_MAX_NAME_LENGTH = 200


@dataclass(frozen=True, slots=True)
class StateVersion:
    """The state of one key group as it is after an epoch.

    Attributes:
        epoch: in which it was written.
        writer: run and attempt that wrote it: a task that should be gone writes files of its own.
        parts: the number of files with the changes of the epoch.
    """

    epoch: int
    writer: str
    parts: int

    @property
    def stem(self) -> str:
        """Return how the names of its files begin."""
        return f"{self.epoch}-{self.writer}"

    @property
    def text(self) -> str:
        """Return it as text."""
        return f"{self.stem}.{self.parts}"

    @staticmethod
    def parse(text: str) -> StateVersion:
        """Return the version of its text.

        Raises:
            ValueError: it is none.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a version of a state")
        return StateVersion(int(found[1]), found[2], int(found[3]))


@dataclass(frozen=True, slots=True)
class CommittedHeads:
    """The newest versions of one key group, as a sink keeps them with the position of the key group.

    Attributes:
        fingerprint: of the columns of all states: another program must not take the bytes for its own.
        heads: the text of the version of each step; None for a state that never had a value.
    """

    fingerprint: str
    heads: tuple[str | None, ...]

    @staticmethod
    def of(fingerprint: str, steps: int, key_group: str, heads: Mapping[str, str]) -> CommittedHeads:
        """Return the heads of a key group, from heads by directory."""
        return CommittedHeads(fingerprint, tuple(heads.get(directory_of(step, key_group)) for step in range(steps)))

    def text(self) -> str:
        """Return it as text: ASCII, no spaces, less than 70 characters for each step."""
        return ",".join((self.fingerprint, *(head or "-" for head in self.heads)))

    @staticmethod
    def parse(text: str) -> CommittedHeads:
        """Return it from its text.

        Raises:
            ValueError: the text is malformed.
        """
        fingerprint, *heads = text.split(",")
        for head in heads:
            if head != "-":
                StateVersion.parse(head)
        return CommittedHeads(fingerprint, tuple(None if head == "-" else head for head in heads))


def directory_of(step: int, key_group: str) -> str:
    """Return the state directory of a step and a key group, below the directory of all states.

    Capitals are escaped: some file systems have one directory for `A` and `a`.
    """
    name = _without_capitals(quote(key_group, safe=""))
    if len(name) > _MAX_NAME_LENGTH:
        name = f"{name[:_MAX_NAME_LENGTH]}-{hashlib.sha256(key_group.encode()).hexdigest()[:16]}"
    # Files whose names begin with a dot are not listed.
    return f"{step}/{'%2E' + name[1:] if name.startswith('.') else name}"


def check_directory(directory: str) -> None:
    """Check that `directory_of` can have returned a directory.

    Raises:
        ValueError: it has capitals, as earlier versions of this package wrote them: its state would not be found.
    """
    if directory != _without_capitals(directory):
        raise ValueError(f"directory {directory} has capitals, as an earlier version of pyspark-kafka has written it")


def _without_capitals(quoted: str) -> str:
    return _CAPITAL.sub(lambda found: found[0] if len(found[0]) > 1 else f"%{ord(found[0]):X}", quoted)
