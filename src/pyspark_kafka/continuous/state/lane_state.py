"""The states of one lane: values by key in a local store, and their versions in the checkpoint, epoch by epoch."""

from __future__ import annotations

import json
import logging
import struct
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from heapq import merge
from typing import TYPE_CHECKING, TypeAlias

from pyspark_kafka._base.threads import side_by_side
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.checkpoint.state_files import READ_AHEAD, VersionReader
from pyspark_kafka.checkpoint.state_names import CommittedHeads, StateVersion, directory_of
from pyspark_kafka.continuous.state.history import StateHistory
from pyspark_kafka.continuous.state.local_directory import LocalDirectory
from pyspark_kafka.continuous.state.version_files import PendingVersions, VersionFiles, delta_bytes
from pyspark_kafka.errors import CheckpointError, StateError
from pyspark_kafka.toolkit import KeyedState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from pyspark_kafka.continuous.state.versions import StatePlan

_LOG = logging.getLogger(__name__)

# Changes of an epoch that are in memory; more are written before the epoch ends.
_MAX_CHANGED_BYTES = 8 * 1024 * 1024
# Changes of earlier epochs that are in memory; then they are merged into the local store.
_MAX_RECENT_BYTES = 8 * 1024 * 1024
# Values that were read, in two halves: the younger one becomes the older one when it is full.
_HALF_CACHE_BYTES = 8 * 1024 * 1024
_STORE_CACHE_BYTES = 8 * 1024 * 1024
_PART_BYTES = 4 * 1024 * 1024
_MAX_VALUE_BYTES = 16 * 1024 * 1024
# What Python needs for an entry beside its bytes.
_ENTRY_BYTES = 160
# Of a value that no cache has; None is the value of a key without one.
_UNREAD = b"unread"
_MAX_EXPIRED = 100_000
_PREFIX = struct.Struct(">IB")
# Values by key, by the prefix of the state: a lane may have thousands of key groups, each with a few keys.
_Changes: TypeAlias = "dict[bytes, dict[bytes, bytes | None]]"
_NONE: Mapping[bytes, bytes | None] = {}


@dataclass(slots=True)
class StateCounts:
    """The counts of one state of a lane, over its key groups.

    Attributes:
        rows: the number of values; values whose age is over count until they are removed.
        updated: values that commits since the last report have written.
        removed: keys without a value that they have written.
        size: of the files that a start reads, in bytes.
    """

    rows: int = 0
    updated: int = 0
    removed: int = 0
    size: int = 0


class LaneState:
    """The states of all steps and key groups of one lane.

    The newest changes are in memory. When they are too large, a thread merges them into the local store, and the lane
    continues with another dictionary. The same thread writes all of a state at times. Values are read from memory, or
    from the store, through a cache. Memory: about 60 MiB at most, whatever the number of keys, plus the rows of a call.

    Runs on: executor, on the thread of the lane. Blocks on the local disk if a value is not in memory, or if changes
    come faster than they are merged; and on the checkpoint if one epoch changes more than 8 MiB.

    Args:
        plan: of the run.
        lane: the number of the lane.
        attempt: of its task.
        now_ms: the clock.

    Raises:
        StateError: a version cannot be opened, or the local store has failed.
        CheckpointError: files cannot be read or written.
    """

    def __init__(
        self, plan: StatePlan, lane: int, attempt: int, now_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    ) -> None:
        self._writer = f"{plan.run}{attempt}"
        self._now_ms = now_ms
        files = CheckpointFiles(plan.location)
        self._files = VersionFiles(files)
        self._histories: dict[tuple[int, str], StateHistory] = {}
        self._by_prefix: dict[bytes, StateHistory] = {}
        self._changes: _Changes = {}
        self._changed_bytes = 0
        # Older than `_changes`, and than one another; the second is being merged.
        self._recent: _Changes = {}
        self._recent_bytes = 0
        self._merging: _Changes = {}
        self._young: dict[bytes, bytes | None] = {}
        self._old: dict[bytes, bytes | None] = {}
        self._young_bytes = 0
        # Whether keys had values at the last commit, by prefix, as far as writers know it.
        self._known: dict[bytes, dict[bytes, bool]] = {}
        self._merges = 0
        self._first_epoch = self._epoch = -1
        # How often changes of the epoch were committed so far, and the heads that it has made.
        self._commits = 0
        self._heads_of_epoch: dict[str, str] = {}
        # For a sink that commits states with positions; by key group.
        self._fingerprint, self._steps = plan.fingerprint, range(len(plan.ttls_ms))
        self._committed: dict[str, str] = {}
        self._counts = [StateCounts() for _ in self._steps]
        self._key_groups = tuple(plan.key_groups[lane])
        self._key_group: str | None = None
        self._directory = LocalDirectory()
        self._worker = ThreadPoolExecutor(1, "continuous-state-store")
        self._merged: Future[None] | None = None
        self._wholes: list[tuple[StateHistory, int, Future[Sequence[bytes]]]] = []
        self._closing = threading.Event()
        self._opened = ExitStack()
        self._opened.callback(self._directory.remove)
        try:
            # The worker's, and the lane's: SQLite lets one read while the other one merges.
            self._store, self._reader = (
                self._opened.enter_context(
                    KeyedState(self._directory.path, cache_bytes=_STORE_CACHE_BYTES, durable=False)
                )
                for _ in range(2)
            )
            for number, key_group in enumerate(self._key_groups):
                for step, ttl_ms in enumerate(plan.ttls_ms):
                    self._add_history(number, key_group, step, ttl_ms, plan.heads)
                self._take_heads(key_group)
            self._open_all(files)
        except BaseException:
            self.close()
            raise

    def point_at(self, key_group: str | None) -> None:
        """Set the key group of the next rows; None if the lane has only one.

        Raises:
            StateError: it is not one of this lane's.
        """
        if key_group is None and len(self._key_groups) == 1:
            key_group = self._key_groups[0]
        if key_group not in self._committed:
            raise StateError(
                f"The reader says that its rows belong to key group {key_group!r}; the plan has "
                f"{', '.join(map(repr, self._key_groups))}. Nothing of this epoch was committed.",
                condition="STATE_KEY_GROUP_UNKNOWN",
                hint="Let keyGroup() of the reader return one of keyGroups() of the stream for its input partition.",
                parameters={"key_group": key_group},
            )
        self._key_group = key_group

    @property
    def key_groups(self) -> Sequence[str]:
        """Return the key groups of the lane."""
        return self._key_groups

    @property
    def key_group(self) -> str:
        """Return the key group that the next rows belong to."""
        if self._key_group is None:
            raise RuntimeError("a state was used before the first row")
        return self._key_group

    def get_all(self, step: int, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key; None for a key without a value."""
        history = self._history(step)
        prefix, young, old = history.prefix, self._young, self._old
        changes, recent, merging = (each.get(prefix, _NONE) for each in (self._changes, self._recent, self._merging))
        found: list[bytes | None] = []
        missing: dict[bytes, list[int]] = {}
        for number, each in enumerate(keys):
            if each in changes:
                found.append(changes[each])
            elif each in recent:
                found.append(recent[each])
            elif each in merging:
                found.append(merging[each])
            elif (key := prefix + each) in young:
                found.append(young[key])
            elif key in old:
                value = old[key]
                self._remember(key, value)
                found.append(value)
            else:
                missing.setdefault(key, []).append(number)
                found.append(None)
        if missing:
            stored = self._reader.get_all(missing)
            for key, numbers in missing.items():
                value = stored.get(key)
                self._remember(key, value)
                for number in numbers:
                    found[number] = value
        return self._without_expired(found, history.ttl_ms) if history.ttl_ms else found

    def put_all(
        self, step: int, keys: Sequence[bytes], values: Sequence[bytes | None], *, had: bool | None = None
    ) -> None:
        """Set the values of keys; None removes one. If a key comes twice, its last value counts.

        Args:
            step: the number of the state.
            keys: the keys.
            values: their values.
            had: whether each of the keys has a value now; None if that is not known. Then keys that were not read
                before are read at the commit, to count them.

        Raises:
            StateError: a key or a value is too large.
        """
        history = self._history(step)
        stamp = self._now_ms().to_bytes(8, "big") if history.ttl_ms else b""
        changes = self._changes.setdefault(history.prefix, {})
        if had is not None:
            # Of a key that has changed since the last commit it says nothing about that.
            self._known.setdefault(history.prefix, {}).update((each, had) for each in keys if each not in changes)
        for each, value in zip(keys, values, strict=True):
            size = _PREFIX.size + len(each) + _ENTRY_BYTES + (len(value) if value is not None else 0)
            if size > _MAX_VALUE_BYTES:
                raise _too_large(size)
            changes[each] = value if value is None else stamp + value
            # A key that changes twice counts twice: then changes are written a little sooner.
            self._changed_bytes += size
        if self._changed_bytes > _MAX_CHANGED_BYTES:
            self._changed_bytes = _bytes_of(self._changes)
            if self._changed_bytes > _MAX_CHANGED_BYTES:
                PendingVersions("", self._files, self._flush()).write()

    def keys(self, step: int, first: bytes = b"") -> Iterator[bytes]:
        """Return all keys from one on that have a value, in their order; of a state without an age."""
        prefix = self._history(step).prefix
        changed: dict[bytes, bytes | None] = {}
        for newer in (self._merging, self._recent, self._changes):
            changed.update(item for item in newer.get(prefix, _NONE).items() if item[0] >= first)
        stored = (key[_PREFIX.size :] for key, _ in self._reader.items(prefix, first))
        added = sorted(key for key, value in changed.items() if value is not None)
        return merge((key for key in stored if key not in changed), added)

    def begin_epoch(self, epoch: int) -> None:
        """Set the epoch of later changes."""
        if self._first_epoch < 0:
            self._first_epoch = epoch
        if epoch != self._epoch:
            self._epoch, self._commits, self._heads_of_epoch = epoch, 0, {}

    def end_epoch(self) -> PendingVersions:
        """Return the versions that the epoch has made. They are complete when their `write` was called.

        A lane that commits several times within an epoch calls it each time; files have the changes since the last
        call, and the text has all versions of the epoch.

        Raises:
            CheckpointError: files cannot be written.
        """
        self._raise_failures()
        deltas = self._flush()
        heads = self._heads_of_epoch
        changed: set[str] = set()
        for history in self._by_prefix.values():
            if history.parts:
                version = self._version(history.parts)
                heads[history.directory] = version.text
                changed.add(history.key_group)
                if changed_bytes := history.advance(version):
                    if self._recent:
                        self._merge_recent()
                    # Later changes are merged after it.
                    written = self._worker.submit(self._write_whole, history, version)
                    self._wholes.append((history, changed_bytes, written))
        self._commits += 1
        for key_group in changed:
            self._take_heads(key_group)
        text = json.dumps(heads, separators=(",", ":")) if heads else ""
        return PendingVersions(text, self._files, deltas)

    def take_counts(self, step: int) -> StateCounts:
        """Return the counts of a state, as of the last commit, and begin to count changes again."""
        counts = self._counts[step]
        histories = (self._histories[step, key_group] for key_group in self._key_groups)
        taken = replace(counts, size=sum(history.whole_bytes + history.delta_bytes for history in histories))
        counts.updated = counts.removed = 0
        return taken

    def rows(self, step: int, key_group: str) -> int:
        """Return the number of values in the state of a key group, as of the last commit."""
        return self._histories[step, key_group].rows

    @property
    def committed(self) -> Mapping[str, str]:
        """Return the newest versions by key group, as text for a sink that commits them with positions."""
        return self._committed

    def close(self) -> None:
        """Give up the local store. The versions stay."""
        self._closing.set()
        self._worker.shutdown(cancel_futures=True)
        self._opened.close()

    def _history(self, step: int) -> StateHistory:
        return self._histories[step, self.key_group]

    def _version(self, parts: int) -> StateVersion:
        # Each commit has names of its own: the versions of those before it are committed.
        writer = f"{self._writer}c{self._commits}" if self._commits else self._writer
        return StateVersion(self._epoch, writer, parts)

    def _take_heads(self, key_group: str) -> None:
        heads = (self._histories[step, key_group].head for step in self._steps)
        texts = tuple(None if head is None else head.text for head in heads)
        self._committed[key_group] = CommittedHeads(self._fingerprint, texts).text()

    def _add_history(self, number: int, key_group: str, step: int, ttl_ms: int, heads: Mapping[str, str]) -> None:
        directory = directory_of(step, key_group)
        text = heads.get(directory)
        head = StateVersion.parse(text) if text else None
        history = StateHistory(key_group, directory, _PREFIX.pack(number, step), ttl_ms, head, step)
        self._histories[step, key_group] = self._by_prefix[history.prefix] = history

    def _open_all(self, files: CheckpointFiles) -> None:
        """Read the versions that the run begins with: several states side by side, or several files of a single one."""
        heads = [(history, history.head) for history in self._histories.values() if history.head is not None]
        if not heads:
            return
        at_a_time = min(len(heads), READ_AHEAD)
        # One at a time makes values of files: the other ones wait for the checkpoint.
        merging = threading.Lock()
        with ThreadPoolExecutor(READ_AHEAD, "state-files") as reads:
            found = VersionReader(files, reads, READ_AHEAD // at_a_time)
            side_by_side(lambda item: self._open(*item, found, merging), heads, at_a_time, "states")
        for history, _ in heads:
            self._add_rows(history, sum(1 for _ in self._reader.items(history.prefix)))

    def _open(self, history: StateHistory, head: StateVersion, found: VersionReader, merging: threading.Lock) -> None:
        chain = found.chain(history.directory, head)
        history.is_stored = True
        for file in found.read(history.directory, chain):
            with merging:
                self._merge({history.prefix: dict(found.changes(history.directory, file))})
            if file.is_whole:
                history.whole_bytes += len(file.data)
            else:
                history.delta_bytes += len(file.data)
        history.opened(chain)
        if chain.temporary:
            # No report names them: their writer is dead, or of an ended run.
            _try_to_clean_up(partial(self._files.remove, history.directory, chain.temporary))

    def _flush(self) -> list[tuple[str, str, int, bytes]]:
        """Move the changes to the changes of earlier epochs, and return the files for the checkpoint."""
        deltas = []
        stem = self._version(0).stem
        for prefix, changes in sorted(self._changes.items(), key=_key):
            history = self._by_prefix[prefix]
            self._count(history, changes)
            for part in _parts(sorted(changes.items(), key=_key)):
                data = delta_bytes(part, history.head)
                deltas.append((history.directory, stem, history.parts, data))
                history.delta_bytes += len(data)
                history.parts += 1
            self._recent.setdefault(prefix, {}).update(changes)
        # A key that changes in several epochs counts several times: then changes are merged a little sooner.
        self._recent_bytes += self._changed_bytes
        self._changes = {}
        self._changed_bytes = 0
        if self._recent_bytes > _MAX_RECENT_BYTES:
            self._recent_bytes = _bytes_of(self._recent)
            if self._recent_bytes > _MAX_RECENT_BYTES:
                self._merge_recent()
        return deltas

    def _count(self, history: StateHistory, changes: Mapping[bytes, bytes | None]) -> None:
        """Count the changes of a commit, and forget the values that were read before them."""
        prefix, young, old = history.prefix, self._young, self._old
        recent, merging = self._recent.get(prefix, _NONE), self._merging.get(prefix, _NONE)
        known = self._known.pop(prefix, {})
        removed = before = 0
        unread: list[bytes] = []
        for each, value in changes.items():
            removed += value is None
            if each in recent:
                before += recent[each] is not None
            elif each in merging:
                before += merging[each] is not None
            else:
                key = prefix + each
                of_young, of_old = young.pop(key, _UNREAD), old.pop(key, _UNREAD)
                value_before = of_old if of_young is _UNREAD else of_young
                if each in known:
                    before += known[each]
                elif value_before is _UNREAD:
                    unread.append(key)
                else:
                    before += value_before is not None
        if unread and history.is_stored:
            before += len(self._reader.get_all(unread))
        updated = len(changes) - removed
        self._add_rows(history, updated - before)
        counts = self._counts[history.step]
        counts.updated += updated
        counts.removed += removed

    def _add_rows(self, history: StateHistory, rows: int) -> None:
        history.rows += rows
        self._counts[history.step].rows += rows

    def _merge_recent(self) -> None:
        """Have the newest changes merged into the local store; wait for those before them."""
        if self._merged is not None:
            self._merged.result()
        for prefix in self._recent:
            self._by_prefix[prefix].is_stored = True
        self._merging, self._recent, self._recent_bytes = self._recent, {}, 0
        self._merged = self._worker.submit(self._merge, self._merging)

    def _raise_failures(self) -> None:
        """Raise the error of what the worker has done; forget what is merged."""
        if self._merged is not None and self._merged.done():
            self._merged.result()
            self._merged, self._merging = None, {}
        for whole in [each for each in self._wholes if each[2].done()]:
            self._wholes.remove(whole)
            history, changed_bytes, written = whole
            try:
                expired = written.result()
            except CheckpointError as error:
                if not error.retriable:
                    raise
                # The changes since the whole state before it are there.
                _LOG.warning("All of a state is written later, because its files could not be written: %s", error)
                history.whole_failed(changed_bytes)
            else:
                newer = [each.get(history.prefix, _NONE) for each in (self._changes, self._recent, self._merging)]
                # Keys with newer changes were counted with those.
                self._add_rows(history, -sum(not any(key in each for each in newer) for key in expired))

    def _merge(self, changes: _Changes) -> None:
        updates: dict[bytes, bytes] = {}
        removed: list[bytes] = []
        for prefix, values in changes.items():
            for key, value in values.items():
                if value is None:
                    removed.append(prefix + key)
                else:
                    updates[prefix + key] = value
        if updates or removed:
            self._store.merge(self._merges, updates, remove=removed)
            self._merges += 1

    def _write_whole(self, history: StateHistory, version: StateVersion) -> Sequence[bytes]:
        """Write all of a state, and remove what no kept epoch needs; return the keys that are removed by age.

        Takes as long as the state is large. Worker.
        """
        expired: list[bytes] = []
        oldest = self._now_ms() - history.ttl_ms

        def living() -> Iterator[tuple[bytes, bytes]]:
            for key, value in self._store.items(history.prefix):
                if history.ttl_ms and int.from_bytes(value[:8], "big") < oldest:
                    # The others are gone for readers as well, and are removed the next time.
                    if len(expired) < _MAX_EXPIRED:
                        expired.append(key[_PREFIX.size :])
                else:
                    yield key[_PREFIX.size :], value

        parts = size = 0
        for part in _parts(living()):
            if self._closing.is_set():
                # Parts without an end are of no use, and do no harm.
                return ()
            size += self._files.write_whole_part(history.directory, version, parts, part)
            parts += 1
        self._files.end_whole(history.directory, version, parts)
        self._merge({history.prefix: dict.fromkeys(expired)})
        history.whole_bytes = size
        unused_before = history.whole_written(version.epoch, self._first_epoch)
        if unused_before is not None:
            # What is left is removed after the next whole state.
            _try_to_clean_up(partial(self._files.remove_before, history.directory, unused_before))
        return expired

    def _remember(self, key: bytes, value: bytes | None) -> None:
        self._young[key] = value
        self._young_bytes += len(key) + len(value or b"") + _ENTRY_BYTES
        if self._young_bytes > _HALF_CACHE_BYTES:
            self._old, self._young, self._young_bytes = self._young, {}, 0

    def _without_expired(self, values: list[bytes | None], ttl_ms: int) -> list[bytes | None]:
        oldest = self._now_ms() - ttl_ms
        return [None if value is None or int.from_bytes(value[:8], "big") < oldest else value[8:] for value in values]


def _try_to_clean_up(remove: Callable[[], None]) -> None:
    """Remove files that nobody reads; if that fails now, nobody waits for it. A missing right is an error."""
    try:
        remove()
    except CheckpointError as error:
        if not error.retriable:
            raise
        _LOG.warning("Old files of a state are left for later: %s", error)


def _bytes_of(changes: _Changes) -> int:
    return sum(
        _PREFIX.size + len(key) + len(value or b"") + _ENTRY_BYTES
        for values in changes.values()
        for key, value in values.items()
    )


def _key(item: tuple[bytes, object]) -> bytes:
    return item[0]


def _parts(changes: Iterable[tuple[bytes, bytes | None]]) -> Iterator[list[tuple[bytes, bytes | None]]]:
    """Return changes in lists of about `_PART_BYTES`."""
    part: list[tuple[bytes, bytes | None]] = []
    size = 0
    for key, value in changes:
        part.append((key, value))
        size += len(key) + len(value or b"")
        if size >= _PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _too_large(size: int) -> StateError:
    return StateError(
        f"A key with its value has {size:,} bytes; at most {_MAX_VALUE_BYTES:,} can be kept. Nothing of this epoch "
        "was committed.",
        condition="STATE_VALUE_TOO_LARGE",
        hint="Keep less for each key.",
        parameters={"size": size, "limit": _MAX_VALUE_BYTES},
    )
