"""Render the catalogue as the page `docs/options.md`: `python -m pyspark_kafka._client.options.page > docs/options.md`.

A test compares the page with the catalogue.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pyspark_kafka._client.options.catalogue import OPTIONS
from pyspark_kafka._client.options.catalogue.formats import FORMAT_OPTIONS
from pyspark_kafka._client.options.catalogue.option import Option, Status
from pyspark_kafka._client.options.catalogue.registry import REGISTRY_OPTIONS

_INTRODUCTION = """# Options

<!-- Generated from the option table by `python -m pyspark_kafka._client.options.page`. Do not edit. -->

Options have the same names and meanings as in Spark's own Kafka connector. *Spark's connector* names the differences
from it, or from the Java clients to which it passes properties; "there" means Spark's connector. For differences beyond
single options, see [parity](parity.md). `pyspark-kafka options NAME` prints an entry of this page.

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
            *_entries(spark_options, Status.USED),
            "\n## Typed keys and values\n",
            "Their fields become columns: [typed formats](typed-formats.md). Without these options they are bytes.\n",
            *_entries(FORMAT_OPTIONS, Status.USED),
            "\n## Schema registry\n",
            "Names and meanings of Confluent's clients, behind the prefix `schema.registry.`.\n",
            *_entries(REGISTRY_OPTIONS, Status.USED),
            "\n## Kafka client properties\n",
            *_entries(properties, Status.USED),
            "\n## Not supported yet\n",
            "These options are refused: a query without them would do something else than intended.\n",
            *_entries(OPTIONS, Status.LATER),
            "\n## Refused\n",
            *_entries(OPTIONS, Status.REFUSED),
            "\n## Accepted without effect\n",
            "Each of them is reported once in the log.\n",
            *_entries(OPTIONS, Status.NO_EFFECT),
            "",
        )
    )


def _entries(options: Iterable[Option], status: Status) -> Iterable[str]:
    for option in options:
        if option.status is not status:
            continue
        yield f"### `{option.name}`\n"
        if facts := option.facts:
            yield " · ".join(f"{label}: {_escape(fact)}" for label, fact in facts.items()) + "\n"
        yield _escape(option.text) + "\n"
        if option.parity:
            yield f"*Spark's connector:* {_escape(option.parity)}.\n"


def _escape(text: str) -> str:
    # Between backquotes Markdown shows `<` as it is.
    parts = text.replace("\n", " ").split("`")
    return "`".join(
        part if position % 2 else part.replace("<", "&lt;").replace(">", "&gt;") for position, part in enumerate(parts)
    )


if __name__ == "__main__":
    sys.stdout.write(render_options())
