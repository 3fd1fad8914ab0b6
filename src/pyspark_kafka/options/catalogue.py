"""The one table of all options. Layer: options."""

from __future__ import annotations

from dataclasses import replace

from pyspark_kafka.options.client_properties import USED_PROPERTIES
from pyspark_kafka.options.other_properties import OTHER_PROPERTIES
from pyspark_kafka.options.parity import parity_of
from pyspark_kafka.options.spark_options import SPARK_OPTIONS
from pyspark_kafka.options.table import OptionTable

OPTIONS = OptionTable(
    replace(option, parity=parity_of(option)) for option in (*SPARK_OPTIONS, *USED_PROPERTIES, *OTHER_PROPERTIES)
)
