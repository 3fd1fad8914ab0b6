"""The contracts of `pyspark_kafka.connector` as pytest cases, for sources and sinks of your own.

    from pyspark_kafka.testing.conformance import SourceContract

    class TestNumbers(SourceContract):
        def table(self):
            return Numbers()

        def add_rows(self, count):
            ...

pytest runs every case of the class that you inherit from. A case that fails names the rule that is broken.

- `SourceContract`: replay, offsets, limits, the available-now trigger, early closing, kills.
- `ContinuousSourceContract`: positions of readers that never end, epochs, waiting, kills.
- `SinkContract`: repeated commits, aborts, kills.

The modules: `source`, `continuous`, `sink`; `killed` ends work as by kill -9, `leaks` finds what work leaves behind,
`answers` checks types of return values.

Invariant: the cases use the contracts alone, so they hold for any source or sink.
"""

from pyspark_kafka.testing.conformance.continuous import ContinuousSourceContract
from pyspark_kafka.testing.conformance.sink import SinkContract
from pyspark_kafka.testing.conformance.source import SourceContract

__all__ = ["ContinuousSourceContract", "SinkContract", "SourceContract"]
__dir__ = __all__.copy
