"""What an option is, and how options are looked up by name.

The entries stand in `spark_options`, `client_properties` and `other_properties`; `catalogue` puts them into the one
table that parsing, the did-you-mean list, the documentation page and tests come from. Layer: options.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Scope(str, Enum):
    """What a query does, as far as its options are concerned."""

    BATCH_READ = "batch read"
    STREAM_READ = "streaming read"
    BATCH_WRITE = "batch write"
    STREAM_WRITE = "streaming write"

    def __str__(self) -> str:
        return self.value


READS = frozenset({Scope.BATCH_READ, Scope.STREAM_READ})
WRITES = frozenset({Scope.BATCH_WRITE, Scope.STREAM_WRITE})
EVERYWHERE = READS | WRITES


class Status(str, Enum):
    """How an option is answered."""

    USED = "used"
    NO_EFFECT = "accepted, no effect"
    REFUSED = "refused"
    LATER = "not supported yet"


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        name: the canonical spelling, with the `kafka.` prefix where it has one.
        doc: what it does (USED), why it does nothing (NO_EFFECT), or why not and what instead (REFUSED, LATER).
        parse: text to value; raises ValueError with a sentence that begins with a verb and does not name the option.
        kind: what a value looks like, for the documentation.
        default: the value where the option is not given.
        default_doc: the default in words, where `default` does not tell it.
        unit: ms, bytes, offsets, …
        scopes: where the option has an effect.
        no_effect_in: where it is accepted and noted, and does nothing. In any other scope it is refused.
        secret: whether its value may never be shown.
        conflicts: options that cannot be given together with it.
        parity: how it stands to Spark's connector; said in `options.parity`.
    """

    name: str
    doc: str
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
    parity: str = ""


class OptionTable:
    """Options by name, whatever the case of its letters."""

    def __init__(self, options: Iterable[Option]) -> None:
        """Index the options; two of one name are a mistake in the table."""
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
        """Find an option; None when there is none of the name."""
        return self._by_key.get(name.lower())

    def nearest(self, name: str, scopes: frozenset[Scope]) -> str | None:
        """Give the name that the user most probably meant, of those that can be given in any of `scopes`."""
        key = name.lower()
        usable = {known: option.name for known, option in self._by_key.items() if scopes & option.scopes}
        # A client property without its prefix is the commonest slip.
        if f"kafka.{key}" in usable:
            return usable[f"kafka.{key}"]
        by_letters = {_letters(known): canonical for known, canonical in usable.items()}
        found = difflib.get_close_matches(_letters(key), by_letters, n=1, cutoff=0.75)
        return by_letters[found[0]] if found else None


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))
