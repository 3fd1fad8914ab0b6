"""The one table of all options: name, text, parser, field, comparison with Spark's connector. Data only.

Entry point: `OPTIONS`, from which parsing, the did-you-mean hints, the documentation page and tests are made. An entry
is in `spark` (names of Spark's connector and our own), `kafka_used` (client properties with an effect) or
`kafka_answered` (the other client properties).

Invariant: no name is declared twice, and no default at all: an entry's default is that of its field.
Layer: options.catalogue, above options.parse.
"""

from __future__ import annotations

from pyspark_kafka.options.catalogue.kafka_answered import ANSWERED_PROPERTIES
from pyspark_kafka.options.catalogue.kafka_used import USED_PROPERTIES
from pyspark_kafka.options.catalogue.option import OptionTable
from pyspark_kafka.options.catalogue.spark import SPARK_OPTIONS

OPTIONS = OptionTable((*SPARK_OPTIONS, *USED_PROPERTIES, *ANSWERED_PROPERTIES))
