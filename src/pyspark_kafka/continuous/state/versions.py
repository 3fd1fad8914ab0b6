"""Names of versions of a state, and the versions that belong to a committed epoch. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

_FORM = re.compile(r"([0-9]{1,19})-([0-9a-z]{1,32})\.([0-9]{1,9})")
_VERSION = 1
# Names of files have at most 255 bytes.
_LONGEST_NAME = 200


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
            raise ValueError(f"{text!r} is no version of a state")
        return StateVersion(int(found[1]), found[2], int(found[3]))


@dataclass(frozen=True, slots=True)
class StateVersions:
    """The versions of all states of a query after an epoch.

    Attributes:
        schemas: of the state of each step, as text, in the order of the steps.
        heads: the text of the newest version, by directory; a state without a value has none.
    """

    schemas: tuple[str, ...]
    heads: Mapping[str, str]

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
        return StateVersions(self.schemas, heads)

    def json(self) -> str:
        """Return it as text."""
        return json.dumps({"v": _VERSION, "schemas": self.schemas, "heads": self.heads}, separators=(",", ":"))

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
        return StateVersions(tuple(schemas), _heads(parsed.get("heads")))


def schema_text(schema: pa.Schema, ttl_ms: int) -> str:
    """Return what must be the same in the next run: the columns of a state, and whether its values have an age."""
    columns = ", ".join(f"{field.name} {field.type}" for field in schema)
    return f"{columns}; with age" if ttl_ms else columns


def directory_of(step: int, key_group: str) -> str:
    """Return the directory of the state of a step and a key group, below that of all states."""
    name = quote(key_group, safe="")
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(key_group.encode()).hexdigest()[:16]}"
    # Files whose names begin with a dot are not listed.
    return f"{step}/{'%2E' + name[1:] if name.startswith('.') else name}"


def _heads(parsed: object) -> dict[str, str]:
    if not isinstance(parsed, dict) or not all(type(each) is str for each in parsed.values()):
        raise ValueError("it has no versions")
    for each in parsed.values():
        StateVersion.parse(each)
    return parsed
