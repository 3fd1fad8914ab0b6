"""Render the catalogue as the page `docs/options.md`: `python -m pyspark_kafka._client.options.page > docs/options.md`.

A test compares the page with the catalogue.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pyspark_kafka._client.options.catalogue import OPTIONS
from pyspark_kafka._client.options.catalogue.formats import FORMAT_OPTIONS
from pyspark_kafka._client.options.catalogue.option import EVERYWHERE, READS, WRITES, Option, Scope, Status
from pyspark_kafka._client.options.catalogue.registry import REGISTRY_OPTIONS

_INTRODUCTION = """# Options

<!-- Generated from the option table by `python -m pyspark_kafka._client.options.page`. Do not edit. -->

Options have the same names and meanings as in Spark's own Kafka connector. The last column names the differences from
it, or from the Java clients to which it passes properties; "there" means Spark's connector. For differences beyond
single options, see [parity](parity.md).

Properties of Kafka clients have the prefix `kafka.` and Java's names. Case does not matter. An option that is not on
this page is refused, with the nearest name that is on it; an invalid value is refused as well. All problems are
reported together, when the DataFrame is loaded or the query starts.
"""


def render_options() -> str:
    """Return the whole page as Markdown."""
    properties = [option for option in OPTIONS if option.name.startswith("kafka.")]
    typed = (*FORMAT_OPTIONS, *REGISTRY_OPTIONS)
    spark_options = [option for option in OPTIONS if option not in (*typed, *properties)]
    return "\n".join(
        (
            _INTRODUCTION,
            "## Options of reads and writes\n",
            *_used_table(spark_options),
            "\n## Typed keys and values\n",
            "Their fields become columns: [typed formats](typed-formats.md). Without these options they are bytes.\n",
            *_used_table(FORMAT_OPTIONS),
            "\n## Schema registry\n",
            "Names and meanings of Confluent's clients, behind the prefix `schema.registry.`.\n",
            *_used_table(REGISTRY_OPTIONS),
            "\n## Kafka client properties\n",
            *_used_table(properties),
            "\n## Not supported yet\n",
            "These options are refused: a query without them would do something else than intended.\n",
            *_answer_table(OPTIONS, Status.LATER, "what to use instead"),
            "\n## Refused\n",
            *_answer_table(OPTIONS, Status.REFUSED, "reason, and what to use instead"),
            "\n## Accepted without effect\n",
            "Each of them is reported once in the log.\n",
            *_answer_table(OPTIONS, Status.NO_EFFECT, "reason"),
            "",
        )
    )


def _used_table(options: Iterable[Option]) -> Iterable[str]:
    yield "| option | query | values | default | meaning | compared with Spark's connector |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for option in options:
        if option.status is Status.USED:
            doc = f"{option.doc} Never shown in logs or errors of this package." if option.secret else option.doc
            cells = (f"`{option.name}`", _queries(option), option.kind, _default(option), doc, option.parity)
            yield f"| {' | '.join(map(_escape, cells))} |"


def _answer_table(options: Iterable[Option], status: Status, heading: str) -> Iterable[str]:
    yield f"| option | {heading} | Spark's connector |"
    yield "| --- | --- | --- |"
    for option in options:
        if option.status is status:
            yield f"| `{option.name}` | {_escape(option.doc)} | {_escape(option.parity)} |"


def _queries(option: Option) -> str:
    names = {
        EVERYWHERE: "read, write",
        READS: "read",
        WRITES: "write",
        frozenset({Scope.STREAM_READ}): "streaming read",
    }
    return names.get(option.scopes) or ", ".join(sorted(scope.value for scope in option.scopes))


def _default(option: Option) -> str:
    if option.default_doc:
        return option.default_doc
    if option.default is None or option.default == ():
        return "none"
    value = str(option.default).lower() if isinstance(option.default, bool) else str(option.default)
    return f"`{value}` {option.unit}".rstrip()


def _escape(text: str) -> str:
    # Between backquotes Markdown shows `<` as it is.
    parts = text.replace("|", "\\|").replace("\n", " ").split("`")
    return "`".join(
        part if position % 2 else part.replace("<", "&lt;").replace(">", "&gt;") for position, part in enumerate(parts)
    )


if __name__ == "__main__":
    sys.stdout.write(render_options())
