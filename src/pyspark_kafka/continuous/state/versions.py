"""Versions of states: the versions of a committed epoch, and the versions that a run begins with. Pure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_kafka.checkpoint.state_names import CommittedHeads, StateVersion, check_directory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import pyarrow as pa

    from pyspark_kafka.checkpoint.continuous_files import WaitingStep

_VERSION = 1
# The sink keeps one version for each with a position, in 4 KB.
MAX_COMMITTED_STATES = 32


@dataclass(frozen=True, slots=True)
class StatePlan:
    """The first state versions of a run; it travels with the code of the task.

    Attributes:
        location: of the checkpoint.
        run: distinguishes the files of this run from the files of others.
        key_groups: the key groups of each lane.
        heads: the text of the version to open, by directory; a state that is not here is empty.
        ttls_ms: the milliseconds without an update after which a value expires, for each step; 0 for never.
        fingerprint: of the states' columns; see `CommittedHeads`.
    """

    location: str
    run: str
    key_groups: Mapping[int, Sequence[str]]
    heads: Mapping[str, str]
    ttls_ms: Sequence[int]
    fingerprint: str = ""

    def committed(self) -> dict[str, str]:
        """Return the versions that the run begins with as text for the sink, by key group."""
        return {
            group: CommittedHeads.of(self.fingerprint, len(self.ttls_ms), group, self.heads).text()
            for groups in self.key_groups.values()
            for group in groups
        }


@dataclass(frozen=True, slots=True)
class StateVersions:
    """The versions of all a query's states after an epoch.

    Attributes:
        schemas: of each step's state, as text, in the order of the steps.
        heads: the text of the newest version, by directory; a state without a value has none.
        gone: the epoch in which a directory was left out, as its key group is not read any more; until its files are
            removed.
    """

    schemas: tuple[str, ...]
    heads: Mapping[str, str]
    gone: Mapping[str, int] = field(default_factory=dict)

    def with_changes(self, changes: Iterable[str]) -> StateVersions:
        """Return the versions after another epoch.

        Args:
            changes: what lanes have reported; empty texts change nothing.

        Raises:
            ValueError: a text is malformed.
        """
        heads = dict(self.heads)
        for text in changes:
            if text:
                heads.update(_heads(json.loads(text)))
        return StateVersions(
            self.schemas, heads, {name: since for name, since in self.gone.items() if name not in heads}
        )

    def with_heads(self, heads: Mapping[str, str | None]) -> StateVersions:
        """Return the versions with other ones for some directories; None for a state that begins empty."""
        merged = {**self.heads, **heads}
        gone = {name: since for name, since in self.gone.items() if name not in heads}
        return StateVersions(self.schemas, {name: head for name, head in merged.items() if head is not None}, gone)

    def only(self, directories: Collection[str], epoch: int) -> StateVersions:
        """Return the versions of some directories, from an epoch on; the others are gone.

        Their key groups have no position any more: if one comes back, it is read from its beginning.
        """
        heads = {name: head for name, head in self.heads.items() if name in directories}
        gone = {name: epoch for name in self.heads if name not in directories}
        gone |= {name: since for name, since in self.gone.items() if name not in directories}
        return StateVersions(self.schemas, heads, gone)

    def without(self, directories: Collection[str]) -> StateVersions:
        """Return them without the `gone` directories that are in `directories`: their files are removed."""
        gone = {name: since for name, since in self.gone.items() if name not in directories}
        return StateVersions(self.schemas, self.heads, gone)

    def json(self, waiting: Sequence[WaitingStep] = ()) -> str:
        """Return it as text.

        Args:
            waiting: the steps with timers after the same epoch; for readers of the checkpoint.
        """
        value: dict[str, object] = {"v": _VERSION, "schemas": self.schemas, "heads": self.heads}
        if waiting:
            value["waiting"] = [step.to_list() for step in waiting]
        if self.gone:
            value["gone"] = self.gone
        return json.dumps(value, separators=(",", ":"))

    @staticmethod
    def parse(text: str) -> StateVersions:
        """Return the versions of their text.

        Raises:
            ValueError: the text is malformed.
        """
        parsed = json.loads(text)
        if not isinstance(parsed, dict) or parsed.get("v") != _VERSION:
            raise ValueError("unknown version or form")
        schemas = parsed.get("schemas")
        if not isinstance(schemas, list) or not all(type(each) is str for each in schemas):
            raise ValueError("it has no schemas")
        gone = parsed.get("gone", {})
        if not isinstance(gone, dict) or not all(type(each) is int for each in gone.values()):
            raise ValueError("it has no epochs in which states were left out")
        return StateVersions(tuple(schemas), _heads(parsed.get("heads")), gone)


def schema_text(schema: pa.Schema, ttl_ms: int, key: str | None = None) -> str:
    """Return the text that must be the same in the next run.

    Args:
        schema: the columns of a state.
        ttl_ms: whether its values have an age.
        key: the key columns: keys of other columns are other bytes, and would not be found.
    """
    text = columns_text(schema)
    if key is not None:
        text += f" by {key}"
    return f"{text}; with age" if ttl_ms else text


def fingerprint_of(schemas: Iterable[str]) -> str:
    """Return the fingerprint of a query's state columns, in 12 characters."""
    return hashlib.sha256("\n".join(schemas).encode()).hexdigest()[:12]


def columns_text(schema: pa.Schema) -> str:
    """Return names and types of columns."""
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _heads(parsed: object) -> dict[str, str]:
    if not isinstance(parsed, dict) or not all(type(each) is str for each in parsed.values()):
        raise ValueError("it has no versions")
    for directory, text in parsed.items():
        check_directory(directory)
        StateVersion.parse(text)
    return parsed
