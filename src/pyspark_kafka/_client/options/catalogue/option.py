"""The definition of an option, and the look-up of options by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pyspark_kafka._client.options.values import default_of
from pyspark_kafka.version import entry_address


class Scope(str, Enum):
    """The kind of query that options are read for."""

    BATCH_READ = "batch read"
    STREAM_READ = "streaming read"
    BATCH_WRITE = "batch write"
    STREAM_WRITE = "streaming write"

    def __str__(self) -> str:
        return self.value


STREAM_READ = frozenset({Scope.STREAM_READ})
BATCH_READ = frozenset({Scope.BATCH_READ})
READS = STREAM_READ | BATCH_READ
WRITES = frozenset({Scope.BATCH_WRITE, Scope.STREAM_WRITE})
STREAMS = frozenset({Scope.STREAM_READ, Scope.STREAM_WRITE})
BATCHES = frozenset({Scope.BATCH_READ, Scope.BATCH_WRITE})
EVERYWHERE = READS | WRITES


class Status(str, Enum):
    """The connector's handling of an option."""

    USED = "used"
    NO_EFFECT = "accepted, no effect"
    REFUSED = "refused"
    LATER = "not supported yet"


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    An option that is used either names the `field` that takes its value as it is, or the module that resolves it
    together with others.

    Attributes:
        name: the canonical spelling, including the `kafka.` prefix if it has one.
        doc: what it does (USED), why it does nothing (NO_EFFECT), or why not and what to do instead (REFUSED, LATER).
        parity: how it compares with Spark's connector; `catalogue.parity` has the phrases that recur.
        field: the field of a value class that takes the value, such as `fetch.max_wait_ms`; see
            `values.VALUE_CLASSES`.
        also: further fields that take the value, or the default if the option is not given.
        resolved_by: for a value that no field takes as it is: the module of `resolve` that makes something of it.
        parse: text to value; raises ValueError with a sentence that starts with a verb and does not name the option.
        kind: what a value looks like, for the documentation.
        default: the value if the option is not given. The field's default, if there is a field.
        default_doc: the default in words, if `default` does not say it.
        unit: ms, bytes, offsets, …
        scopes: where the option has an effect.
        no_effect_in: where it is accepted, noted in the log, and does nothing. In any other scope it is refused.
        secret: whether its value may never be shown.
        conflicts: options that cannot be given together with it.

    Raises:
        ValueError: a field that no value class has, or a second default beside the default of the field.
    """

    name: str
    doc: str
    parity: str = ""
    field: str = ""
    also: tuple[str, ...] = ()
    resolved_by: str = ""
    parse: Callable[[str], Any] | None = None
    kind: str = "text"
    default: Any = None
    default_doc: str = ""
    unit: str = ""
    scopes: frozenset[Scope] = frozenset()
    no_effect_in: frozenset[Scope] = frozenset()
    secret: bool = False
    conflicts: tuple[str, ...] = ()
    status: Status = Status.USED

    def __post_init__(self) -> None:
        for further in self.also:
            default_of(further)
        if self.field:
            if self.default is not None:
                raise ValueError(f"option '{self.name}' has a default beside the default of its field '{self.field}'")
            object.__setattr__(self, "default", default_of(self.field))

    @property
    def facts(self) -> dict[str, str]:
        """The facts of its entry on the options page, by label; empty for an unused option."""
        if self.status is not Status.USED:
            return {}
        return {"in": _queries(self.scopes), "values": self.kind, "default": self._default_text()}

    @property
    def text(self) -> str:
        """The text of its entry: its effect, or the reason for no effect. Markdown."""
        return f"{self.doc} Never shown in logs or errors of this package." if self.secret else self.doc

    @property
    def address(self) -> str:
        """The address of its entry."""
        return entry_address("options", self.name)

    def _default_text(self) -> str:
        if self.default_doc:
            return self.default_doc
        if self.default is None or self.default == ():
            return "none"
        value = str(self.default).lower() if isinstance(self.default, bool) else str(self.default)
        return f"`{value}` {self.unit}".rstrip()


def _queries(scopes: frozenset[Scope]) -> str:
    names = {EVERYWHERE: "read, write", READS: "read", WRITES: "write"}
    return names.get(scopes) or ", ".join(sorted(scope.value for scope in scopes))


class OptionTable:
    """Options by name, in any case of letters."""

    def __init__(self, options: Iterable[Option]) -> None:
        """Index the options.

        Raises:
            ValueError: two options have the same name.
        """
        self._by_key: dict[str, Option] = {}
        for option in options:
            if option.name.lower() in self._by_key:
                raise ValueError(f"option '{option.name}' is declared twice")
            self._by_key[option.name.lower()] = option

    def __iter__(self) -> Iterator[Option]:
        return iter(self._by_key.values())

    def __getitem__(self, name: str) -> Option:
        return self._by_key[name.lower()]

    def get(self, name: str) -> Option | None:
        """Return the option of a name; None if there is none."""
        return self._by_key.get(name.lower())

    def nearest(self, name: str, scopes: frozenset[Scope]) -> str | None:
        """Return the name that the user most probably meant: of an option with an effect in any of `scopes`."""
        key = name.lower()
        usable = {known: option.name for known, option in self._by_key.items() if scopes & option.scopes}
        # A client property without its prefix is the most common mistake.
        if f"kafka.{key}" in usable:
            return usable[f"kafka.{key}"]
        by_letters = {_letters(known): canonical for known, canonical in usable.items()}
        found = difflib.get_close_matches(_letters(key), by_letters, n=1, cutoff=0.75)
        return by_letters[found[0]] if found else None


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))
