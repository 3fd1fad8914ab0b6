"""The options of a query once resolved: what the layers above work with.

Entry points: `read.BatchReadOptions`, `read.StreamReadOptions`, `write.WriteOptions`. A default stands here and nowhere
else. Frozen plain data that is pickled to executors; no parsing, no I/O. Layer: options.values, the lowest of options.
"""
