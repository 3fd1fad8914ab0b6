"""The keys that Spark itself puts among the options of a Python data source. Layer: options.catalogue."""

from __future__ import annotations

# Keys that Spark passes to a Python data source in addition to the user's options: `load(path)` and `save(path)` add
# path and paths, `CREATE TABLE` adds the table's properties (and each option a second time as `option.<name>`). The
# others are options of the stream writer that some hosts leave among the options.
HOST_KEYS = frozenset(
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
HOST_PREFIXES = ("option.", "spark.sql.")
