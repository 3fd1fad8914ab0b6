"""The files of Spark's state stores that are the state of a batch at its start. Pure.

A state store has a directory with a file for each version. Batch N reads version N and writes version N + 1:

| File | Content |
| --- | --- |
| `V.delta`, `V.changelog` | the changes from version V - 1 to V |
| `V.snapshot`, `V.zip` | all of version V; a zip refers to other files in the directory |

Source: Spark `HDFSBackedStateStoreProvider`, `RocksDBFileManager`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

_VERSION = re.compile(r"([0-9]{1,18})(_[0-9A-Za-z-]+)?\.(delta|changelog|snapshot|zip)(\.crc)?")
_WHOLE = ("snapshot", "zip")
# Files that an operator writes once, for all batches from this one on.
_NOTED = re.compile(r"/_metadata/v[0-9]+/([0-9]{1,18})(?:\.crc)?$")


@dataclass(slots=True)
class _Store:
    whole: set[int] = field(default_factory=set)
    changes: set[int] = field(default_factory=set)
    named: bool = False

    def has(self, version: int) -> bool:
        base = max((each for each in self.whole if each <= version), default=0)
        return all(each in self.changes for each in range(base + 1, version + 1))


@dataclass(frozen=True, slots=True)
class StateFiles:
    """The files of all a query's states, by whether a version needs them.

    Attributes:
        version: the version.
        kept: files of the version and of earlier ones, and files without a version.
        later: files of later versions.
        missing: the directories that lack the version.
        by_unique_id: whether versions have ids of their own, which the commit log names.
    """

    version: int
    kept: tuple[str, ...]
    later: tuple[str, ...]
    missing: tuple[str, ...]
    by_unique_id: bool


def judge_state(files: Collection[str], version: int) -> StateFiles:
    """Return the files of `state/` that belong to a version, and whether it is complete.

    Args:
        files: the names of all files below `state/`, with this directory.
        version: the version that the next batch reads, which is its number.
    """
    stores: dict[str, _Store] = defaultdict(_Store)
    kept: list[str] = []
    later: list[str] = []
    for name in sorted(files):
        directory, _, base = name.rpartition("/")
        found = _VERSION.fullmatch(base)
        noted = _NOTED.search(name)
        if found is not None:
            number, unique, kind, checksum = found.groups()
            store = stores[directory]
            store.named = store.named or unique is not None
            if checksum is None:
                (store.whole if kind in _WHOLE else store.changes).add(int(number))
            (kept if int(number) <= version else later).append(name)
        else:
            # Written when that batch was planned: earlier states do not have it.
            (later if noted is not None and int(noted[1]) >= max(version, 1) else kept).append(name)
    missing = tuple(directory for directory, store in sorted(stores.items()) if not store.has(version))
    return StateFiles(version, tuple(kept), tuple(later), missing, any(store.named for store in stores.values()))


def version_of(name: str) -> int | None:
    """Return the version of a state file, by its name in its directory; None without a version."""
    found = _VERSION.fullmatch(name)
    return None if found is None else int(found[1])


def whole_versions(files: Iterable[str], candidates: Iterable[int]) -> list[int]:
    """Return the versions that every state has, sorted."""
    names = list(files)
    return [version for version in sorted(candidates) if not judge_state(names, version).missing]
