"""The one table of all options: name, text, parser, field, comparison with Spark's connector.

Entry point: `OPTIONS`, from which parsing, the did-you-mean hints, the documentation page and tests are made. An entry
is an `option.Option` in `spark` (names of Spark's connector and our own), `formats` and `registry` (typed keys and
values), `kafka_used`, `security_used` and `security_tokens` (client properties with an effect) or `kafka_answered` (the
other client properties); `parity` has phrases of comparisons. `parsed.parse_all` applies the table to the options of a
query; all else is data.

Invariant: no name is declared twice, and no default at all: an entry has the default of its field.
"""

from __future__ import annotations

from pyspark_kafka._client.options.catalogue.formats import FORMAT_OPTIONS
from pyspark_kafka._client.options.catalogue.kafka_answered import ANSWERED_PROPERTIES
from pyspark_kafka._client.options.catalogue.kafka_used import USED_PROPERTIES
from pyspark_kafka._client.options.catalogue.option import OptionTable
from pyspark_kafka._client.options.catalogue.registry import REGISTRY_OPTIONS
from pyspark_kafka._client.options.catalogue.security_tokens import TOKEN_PROPERTIES
from pyspark_kafka._client.options.catalogue.security_used import SECURITY_PROPERTIES
from pyspark_kafka._client.options.catalogue.spark import SPARK_OPTIONS
from pyspark_kafka._client.options.catalogue.traces import TRACE_OPTIONS

OPTIONS = OptionTable(
    (
        *SPARK_OPTIONS,
        *TRACE_OPTIONS,
        *FORMAT_OPTIONS,
        *REGISTRY_OPTIONS,
        *USED_PROPERTIES,
        *SECURITY_PROPERTIES,
        *TOKEN_PROPERTIES,
        *ANSWERED_PROPERTIES,
    )
)
