"""Read raw options against the catalogue, and collect every problem instead of stopping at the first.

`Collector` knows names, scopes, types and secrets; what options mean together is checked by `read`, `write`,
`connection`, `security`, `login`, `tls` and `range_edges`, which report to the same collector.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_kafka._client.options.catalogue import OPTIONS
from pyspark_kafka._client.options.catalogue.option import READS, Option, Scope, Status
from pyspark_kafka._client.options.values.secret import Secret
from pyspark_kafka.errors import OptionError

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

# Keys that Spark passes to a Python data source in addition to the user's options: `load(path)` and `save(path)` add
# path and paths, `CREATE TABLE` adds the table's properties (and each option a second time as `option.<name>`). The
# others are options of the stream writer that some hosts leave among the options.
_HOST_KEYS = frozenset(
    key.lower()
    for key in (
        "path",
        "paths",
        "checkpointLocation",
        "queryName",
        "outputMode",
        "provider",
        "owner",
        "location",
        "external",
        "is_managed_location",
        "comment",
        "collation",
        "version",
        "table_type",
    )
)
_HOST_PREFIXES = ("option.", "spark.sql.")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with the options."""

    condition: str
    message: str
    hint: str = ""
    option: str = ""

    def __str__(self) -> str:
        return f"[{self.condition}] {self.message}" + (f" Hint: {self.hint}" if self.hint else "")


class Collector:
    """The given options of one query in one scope: typed values, notes and problems.

    Runs on: driver, once per query. It is not kept; the frozen results are.
    """

    def __init__(self, raw: Mapping[str, Any], scope: Scope, among: frozenset[Scope] | None = None) -> None:
        """Read every given option, each on its own.

        Args:
            raw: the options as the user gave them.
            scope: what they are read as.
            among: the kinds of query that are possible, if the kind is not known yet; None: `scope` only.
        """
        self.scope = scope
        self._among = among or frozenset({scope})
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self._values: dict[str, Any] = {}
        self._failed: set[str] = set()
        for name, value in _merge_cases(raw, self.problems).items():
            self._read(name, value)
        self._check_conflicts()

    def __getitem__(self, name: str) -> Any:
        """Return an option's value, or its default if it is not given or is invalid."""
        option = OPTIONS[name]
        return self._values.get(option.name, option.default)

    def given(self, name: str) -> bool:
        """Whether the user gave the option and its value is valid."""
        return name in self._values

    @property
    def is_empty(self) -> bool:
        """Whether the user gave no option at all."""
        return not self._values and not self._failed

    def attempted(self, name: str) -> bool:
        """Whether the user gave the option at all; its value may be invalid."""
        return name in self._values or name in self._failed

    def fields(self, *sections: str) -> dict[str, Any]:
        """Return the fields of value classes that the options of this scope set.

        An option that is not given leaves its field out, so that the default of the class applies.

        Args:
            sections: the value classes by their names in `values.VALUE_CLASSES`.

        Returns:
            Values by field name, for the constructor of the class.
        """
        values: dict[str, Any] = {}
        for option in OPTIONS:
            if self.scope not in option.scopes:
                continue
            targets = (option.field, *option.also) if self.given(option.name) else option.also
            for section, _, name in (target.partition(".") for target in targets):
                if section in sections:
                    values[name] = self[option.name]
        return values

    def report(self, condition: str, message: str, hint: str = "", option: str = "") -> None:
        """Add a problem."""
        self.problems.append(Problem(condition, message, hint, option))

    def raise_problems(self) -> None:
        """Fail if there is any problem.

        Raises:
            OptionError: with all problems; if there is only one, with its condition.
        """
        if not self.problems:
            return
        parameters = {
            "options": ", ".join(dict.fromkeys(problem.option for problem in self.problems if problem.option))
        }
        if len(self.problems) == 1:
            (problem,) = self.problems
            raise OptionError(problem.message, condition=problem.condition, hint=problem.hint, parameters=parameters)
        listed = " ".join(f"({number}) {problem}" for number, problem in enumerate(self.problems, 1))
        raise OptionError(
            f"{len(self.problems)} problems with the options of this {self._called}; nothing was done. {listed}",
            condition="OPTIONS_INVALID",
            hint="Correct all of them.",
            parameters=parameters,
            problems=[(problem.message, problem.hint) for problem in self.problems],
        )

    @property
    def _called(self) -> str:
        if len(self._among) == 1:
            return str(self.scope)
        return "read" if self._among <= READS else "query"

    def _read(self, name: str, value: Any) -> None:
        option = OPTIONS.get(name)
        if option is None or self.scope not in option.scopes | option.no_effect_in:
            # Before options of other scopes: some keys belong to the host in one scope and to us in another.
            if _is_host_key(name):
                return
            if option is None:
                self._report_unknown(name)
                return
        self._failed.add(option.name)
        if self._usable(option):
            raw = _to_text(value)
            if raw is None:
                self.report("OPTION_INVALID", f"Option '{option.name}' has no value.", option=option.name)
                return
            if _LONE_SURROGATE.search(raw):
                # The error of an encoder would hold all of the value, and what stands beside it.
                self.report("OPTION_INVALID", f"Option '{option.name}' is not text in UTF-8.", option=option.name)
                return
            self._parse(option, raw)

    def _usable(self, option: Option) -> bool:
        if option.status is Status.LATER:
            self.report(
                "OPTION_NOT_SUPPORTED",
                f"Option '{option.name}' is not supported yet; it is refused rather than ignored.",
                option.doc,
                option.name,
            )
        elif option.status is Status.REFUSED:
            self.report("OPTION_REFUSED", f"Option '{option.name}' cannot be set.", option.doc, option.name)
        elif self.scope not in option.scopes | option.no_effect_in:
            allowed = " and ".join(sorted(scope.value for scope in option.scopes))
            self.report(
                "OPTION_NOT_APPLICABLE",
                f"Option '{option.name}' has no meaning in a {self.scope}; it is an option of {allowed}.",
                _SCOPE_HINTS.get((option.name, self.scope), ""),
                option.name,
            )
        else:
            return True
        return False

    def _parse(self, option: Option, raw: str) -> None:
        if option.parse is not None:
            try:
                value = option.parse(raw)
            except ValueError as error:
                # A parser of a secret never repeats it.
                self.report("OPTION_INVALID", f"Option '{option.name}' {error}.", option=option.name)
                return
            if isinstance(value, Secret):
                value = value.for_option(option.name)
            if self.scope in option.scopes:
                self._values[option.name] = value
                self._failed.discard(option.name)
        if self.scope in option.no_effect_in:
            reason = option.doc if option.status is Status.NO_EFFECT else f"it is not an option of a {self.scope}"
            self.notes.append(f"Option '{option.name}' has no effect: {reason}.")

    def _report_unknown(self, name: str) -> None:
        # The value is not repeated: a misspelled name may be the name of a password.
        nearest = OPTIONS.nearest(name, self._among)
        self.report(
            "OPTION_UNKNOWN",
            f"Option '{name}' is not known in a {self._called}.",
            f"Did you mean '{nearest}'?" if nearest else "Options of Kafka clients have the prefix 'kafka.'.",
            name,
        )

    def _check_conflicts(self) -> None:
        seen: set[frozenset[str]] = set()
        for option in OPTIONS:
            together = frozenset(name for name in option.conflicts if self.attempted(name))
            if option.name in together and len(together) > 1 and together not in seen:
                seen.add(together)
                names = [name for name in option.conflicts if name in together]
                self.report(
                    "OPTION_CONFLICT",
                    f"Options {_join(names)} are given; only one of {_join(option.conflicts)} can be.",
                    "Remove all but one.",
                    names[0],
                )


_SCOPE_HINTS = {
    ("topic", Scope.BATCH_READ): "To read topics, set subscribe.",
    ("topic", Scope.STREAM_READ): "To read topics, set subscribe.",
    ("subscribe", Scope.BATCH_WRITE): "To write to a topic, set topic.",
    ("subscribe", Scope.STREAM_WRITE): "To write to a topic, set topic.",
    **dict.fromkeys(
        ((name, Scope.STREAM_READ) for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")),
        "A stream has no end. Remove it, or read a batch with spark.read.",
    ),
}


def _join(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _merge_cases(raw: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Return each option once, in the user's spelling: Spark's maps do not distinguish `Topic` from `topic`."""
    merged: dict[str, tuple[str, Any]] = {}
    for given, value in raw.items():
        name = given.strip()
        key = name.lower()
        if key in merged and merged[key][1] != value:
            option = OPTIONS.get(key)
            canonical = option.name if option else name
            problems.append(
                Problem("OPTION_CONFLICT", f"Option '{canonical}' is given twice with different values.", "", canonical)
            )
        merged[key] = (name, value)
    return dict(merged.values())


def _is_host_key(name: str) -> bool:
    key = name.lower()
    return key in _HOST_KEYS or key.startswith(_HOST_PREFIXES)


def _to_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    # Python callers may pass True or 5, as to DataFrameReader.option.
    return str(value).lower() if isinstance(value, bool) else str(value)
