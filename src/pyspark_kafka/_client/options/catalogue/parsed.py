"""Raw options to values, each on its own: names, scopes, types, secrets; and a list of what is wrong with them.

What options mean together is checked by the modules of `options.resolve`, which add to the list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_kafka._client.options.catalogue import OPTIONS
from pyspark_kafka._client.options.catalogue.option import READS, WRITES, Option, Scope, Status
from pyspark_kafka._client.options.values.secret import Secret
from pyspark_kafka.errors import OptionError

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

# Keys that Spark passes to a Python data source in addition to the user's options: `load(path)` and `save(path)` add
# path and paths, `CREATE TABLE` adds the table's properties (and each option a second time as `option.<name>`). The
# others are options of the stream writer that some hosts leave among the options.
_HOST_KEYS = frozenset((
    "path", "paths", "checkpointlocation", "queryname", "outputmode", "provider", "owner", "location", "external",
    "is_managed_location", "comment", "collation", "version", "table_type",
))  # fmt: skip
_HOST_PREFIXES = ("option.", "spark.sql.")
_SCOPE_HINTS = {
    **dict.fromkeys((("topic", scope) for scope in READS), "To read topics, set subscribe."),
    **dict.fromkeys((("subscribe", scope) for scope in WRITES), "To write to a topic, set topic."),
    **dict.fromkeys(
        ((name, Scope.STREAM_READ) for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")),
        "A stream has no end. Remove it, or read a batch with spark.read.",
    ),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of the options."""

    condition: str
    message: str
    hint: str = ""
    option: str = ""

    def __str__(self) -> str:
        return f"[{self.condition}] {self.message}" + (f" Hint: {self.hint}" if self.hint else "")


class Problems:
    """The problems with the options of one query, in their order, and notes for its user.

    A clause follows the name of the option that is to be changed, without a full stop.

    Args:
        called: what the options are of, such as "streaming read".

    Attributes:
        notes: remarks to the user on valid options.
    """

    def __init__(self, called: str) -> None:
        self.called = called
        self.notes: list[str] = []
        self._found: list[Problem] = []

    def report(self, condition: str, message: str, hint: str = "", option: str = "") -> None:
        """Add a problem."""
        self._found.append(Problem(condition, message, hint, option))

    def invalid(self, option: str, clause: str, hint: str = "") -> None:
        """Add an option whose value is not possible."""
        self.report("OPTION_INVALID", f"Option '{option}' {clause}.", hint, option)

    def missing(self, option: str, clause: str, hint: str = "") -> None:
        """Add an option that is not given."""
        self.report("OPTION_MISSING", f"Option '{option}' {clause}.", hint, option)

    def conflict(self, option: str, clause: str, hint: str = "") -> None:
        """Add an option that does not fit another one."""
        self.report("OPTION_CONFLICT", f"Option '{option}' {clause}.", hint, option)

    def raise_all(self) -> None:
        """Fail if there is any problem.

        Raises:
            OptionError: with all problems; if there is only one, with its condition.
        """
        if not self._found:
            return
        parameters = {"options": ", ".join(dict.fromkeys(problem.option for problem in self._found if problem.option))}
        if len(self._found) == 1:
            (problem,) = self._found
            raise OptionError(problem.message, condition=problem.condition, hint=problem.hint, parameters=parameters)
        listed = " ".join(f"({number}) {problem}" for number, problem in enumerate(self._found, 1))
        raise OptionError(
            f"{len(self._found)} problems with the options of this {self.called}; nothing was done. {listed}",
            condition="OPTIONS_INVALID",
            hint="Correct all of them.",
            parameters=parameters,
            problems=[(problem.message, problem.hint) for problem in self._found],
        )


@dataclass(frozen=True, slots=True)
class Parsed:
    """The given options of one query in one scope.

    Runs on: driver, once per query. It is not kept; its result is.

    Attributes:
        scope: what they are read as.
        values: of the valid ones, by name.
        names: of all that the user gave.
    """

    scope: Scope
    values: Mapping[str, Any]
    names: frozenset[str]

    def __getitem__(self, name: str) -> Any:
        """Return an option's value, or its default if it is not given or is invalid."""
        option = OPTIONS[name]
        return self.values.get(option.name, option.default)

    def given(self, name: str) -> bool:
        """Return whether the user set the option and its value is valid."""
        return name in self.values

    def attempted(self, name: str) -> bool:
        """Return whether the user set the option at all; its value may be invalid."""
        return name in self.names

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


def parse_all(raw: Mapping[str, Any], scope: Scope, among: frozenset[Scope] = frozenset()) -> tuple[Parsed, Problems]:
    """Parse every given option, each on its own.

    Args:
        raw: the options as the user gave them.
        scope: what they are read as.
        among: the kinds of query that are possible, if the kind is not known yet; empty: `scope` only.
    """
    problems = Problems(str(scope) if len(among) < 2 else "read" if among <= READS else "query")
    values: dict[str, Any] = {}
    names: set[str] = set()
    for name, value in _merge_cases(raw, problems).items():
        option = OPTIONS.get(name)
        if option is None or scope not in option.scopes | option.no_effect_in:
            # Before options of other scopes: some keys belong to the host in one scope and to us in another.
            if _is_host_key(name):
                continue
            if option is None:
                _report_unknown(name, among or frozenset({scope}), problems)
                continue
        names.add(option.name)
        text = _usable_text(option, value, scope, problems)
        if text is None:
            continue
        if option.parse is not None:
            try:
                parsed = option.parse(text)
            except ValueError as error:
                # A parser of a secret never repeats it.
                problems.invalid(option.name, str(error))
                continue
            if scope in option.scopes:
                values[option.name] = parsed.for_option(option.name) if isinstance(parsed, Secret) else parsed
        if scope in option.no_effect_in:
            reason = option.doc if option.status is Status.NO_EFFECT else f"it is not an option of a {scope}"
            problems.notes.append(f"Option '{option.name}' has no effect: {reason}.")
    _check_conflicts(names, problems)
    return Parsed(scope, values, frozenset(names)), problems


def _usable_text(option: Option, value: Any, scope: Scope, problems: Problems) -> str | None:
    """Return the text to parse; None if the option cannot be used here, or has none."""
    name = option.name
    if option.status is Status.LATER:
        message = f"Option '{name}' is not supported yet; it is refused rather than ignored."
        problems.report("OPTION_NOT_SUPPORTED", message, option.doc, name)
    elif option.status is Status.REFUSED:
        problems.report("OPTION_REFUSED", f"Option '{name}' cannot be set.", option.doc, name)
    elif scope not in option.scopes | option.no_effect_in:
        allowed = " and ".join(sorted(scope.value for scope in option.scopes))
        message = f"Option '{name}' has no meaning in a {scope}; it is an option of {allowed}."
        problems.report("OPTION_NOT_APPLICABLE", message, _SCOPE_HINTS.get((name, scope), ""), name)
    elif value is None:
        problems.invalid(name, "has no value")
    else:
        # Python callers may pass True or 5, as to DataFrameReader.option.
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if not _LONE_SURROGATE.search(text):
            return text
        # The error of an encoder would hold the whole value, and its neighbors.
        problems.invalid(name, "is not text in UTF-8")
    return None


def _report_unknown(name: str, among: frozenset[Scope], problems: Problems) -> None:
    # The value is not repeated: a misspelled name may be the name of a password.
    nearest = OPTIONS.nearest(name, among)
    problems.report(
        "OPTION_UNKNOWN",
        f"Option '{name}' is not known in a {problems.called}.",
        f"Did you mean '{nearest}'?" if nearest else "Options of Kafka clients have the prefix 'kafka.'.",
        name,
    )


def _check_conflicts(given: set[str], problems: Problems) -> None:
    seen: set[frozenset[str]] = set()
    for option in OPTIONS:
        together = given.intersection(option.conflicts)
        if option.name in together and len(together) > 1 and frozenset(together) not in seen:
            seen.add(frozenset(together))
            names = [name for name in option.conflicts if name in together]
            message = f"Options {_join(names)} are given; only one of {_join(option.conflicts)} can be."
            problems.report("OPTION_CONFLICT", message, "Remove all but one.", names[0])


def _join(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _merge_cases(raw: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Return each option once, in the user's spelling: Spark's maps do not distinguish `Topic` from `topic`."""
    merged: dict[str, tuple[str, Any]] = {}
    for given, value in raw.items():
        name = given.strip()
        key = name.lower()
        if key in merged and merged[key][1] != value:
            option = OPTIONS.get(key)
            problems.conflict(option.name if option else name, "is given twice with different values")
        merged[key] = (name, value)
    return dict(merged.values())


def _is_host_key(name: str) -> bool:
    key = name.lower()
    return key in _HOST_KEYS or key.startswith(_HOST_PREFIXES)
