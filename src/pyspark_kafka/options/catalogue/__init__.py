"""The one table of all options. Layer: options."""

from __future__ import annotations

from dataclasses import replace

from pyspark_kafka.options.catalogue.kafka_answered import OTHER_PROPERTIES
from pyspark_kafka.options.catalogue.kafka_used import USED_PROPERTIES
from pyspark_kafka.options.catalogue.option import OptionTable
from pyspark_kafka.options.catalogue.parity import parity_of
from pyspark_kafka.options.catalogue.spark import SPARK_OPTIONS

OPTIONS = OptionTable(
    replace(option, parity=parity_of(option)) for option in (*SPARK_OPTIONS, *USED_PROPERTIES, *OTHER_PROPERTIES)
)
