"""The versions of one state of a lane: which one is the newest, when all of it is written, which files are in use.

Pure: no files, no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka.continuous.state.version_files import EPOCHS_KEPT

if TYPE_CHECKING:
    from pyspark_kafka.checkpoint.state_files import VersionChain
    from pyspark_kafka.checkpoint.state_names import StateVersion

# All of a state is written when its changes since the last time are this many files and half as large as it, or so
# many that a start would take long.
_MIN_DELTAS, _MAX_DELTAS = 32, 500


@dataclass(slots=True)
class StateHistory:
    """The state of one step and one key group.

    Attributes:
        key_group: its key group.
        directory: of its versions.
        prefix: of its keys in the local store.
        ttl_ms: of its step.
        head: its newest version; None if it never had a value.
        step: the number of its state.
        parts: the number of written files of the version that comes next.
        deltas: the number of versions since the whole state was written.
        delta_bytes: their size.
        whole_bytes: the size of the whole state when it was written.
        wholes: the epochs in which the whole state was written, as far as they are needed.
        opened_from: the least epoch of the versions with which the run began.
        rows: the number of its values, as of the last commit.
        is_stored: whether the local store may have values of it.
    """

    key_group: str
    directory: str
    prefix: bytes
    ttl_ms: int
    head: StateVersion | None
    step: int = 0
    parts: int = 0
    deltas: int = 0
    delta_bytes: int = 0
    whole_bytes: int = 0
    wholes: list[int] = field(default_factory=list)
    opened_from: int | None = None
    rows: int = 0
    is_stored: bool = False

    def opened(self, chain: VersionChain) -> None:
        """Record the files of a run's first version."""
        self.deltas = len(chain.deltas)
        if chain.whole is not None:
            self.wholes.append(chain.whole.epoch)
            self.opened_from = min([chain.whole.epoch, *(version.epoch for version in chain.deltas)])

    def advance(self, version: StateVersion) -> int:
        """Make a version the newest one; return the size of its changes if all of the state is to be written, or 0."""
        self.head = version
        self.parts = 0
        self.deltas += 1
        is_due = self.deltas >= _MAX_DELTAS or (self.deltas >= _MIN_DELTAS and self.delta_bytes * 2 >= self.whole_bytes)
        if not is_due:
            return 0
        changed_bytes = self.delta_bytes
        self.deltas = self.delta_bytes = 0
        return changed_bytes

    def whole_failed(self, changed_bytes: int) -> None:
        """Restore the size of changes if the whole state could not be written: it is due after more versions."""
        self.delta_bytes += changed_bytes

    def whole_written(self, epoch: int, first_epoch: int) -> int | None:
        """Record a whole state; return the epoch before which no file is needed any more, None for none yet.

        Files stay as long as a committed position or one of the last epochs of the checkpoint can name them. A
        position may be committed for an epoch that the checkpoint never gets: then the next run begins before the
        versions that it continues, and its files have lower numbers than theirs.

        Args:
            epoch: in which it was written.
            first_epoch: of the run.
        """
        oldest = epoch - EPOCHS_KEPT
        self.wholes.append(epoch)
        # The newest one that a kept epoch can begin with, and those after it.
        while len(self.wholes) > 1 and self.wholes[1] <= oldest:
            self.wholes.pop(0)
            self.opened_from = None
        if self.wholes[0] > oldest:
            return None
        return self.wholes[0] if self.opened_from is None else min(self.opened_from, first_epoch)
