"""The states of a continuous query in a checkpoint, read to their beginning as a restart reads them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_kafka.checkpoint.state_files import READ_AHEAD, VersionReader
from pyspark_kafka.checkpoint.state_names import StateVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka.checkpoint import CheckpointFiles


class StateChains:
    """Reads every file of versions; files are read ahead.

    Runs on: any program; blocks on the file system.

    Args:
        files: the reader of the files.
    """

    def __init__(self, files: VersionReader) -> None:
        self._files = files

    @staticmethod
    @contextmanager
    def of(files: CheckpointFiles) -> Iterator[StateChains]:
        """Return the reader of a checkpoint's states; its threads end with the block."""
        with ThreadPoolExecutor(READ_AHEAD, "state-files") as pool:
            yield StateChains(VersionReader(files, pool))

    def check(self, directory: str, text: str) -> None:
        """Read a version.

        Args:
            directory: of the state.
            text: of the version.

        Raises:
            StateError: a file is missing or damaged: a restart fails.
            CheckpointError: a file cannot be read.
            ValueError: the text is malformed.
        """
        chain = self._files.chain(directory, StateVersion.parse(text))
        for file in self._files.read(directory, chain):
            self._files.check(directory, file)
