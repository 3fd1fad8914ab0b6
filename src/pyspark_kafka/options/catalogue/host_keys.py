"""The keys that Spark itself puts among the options of a Python data source. Layer: options.catalogue."""

from __future__ import annotations

# Keys that Spark hands to a Python data source beside the user's options: `load(path)` and `save(path)` give path and
# paths, `CREATE TABLE` gives the table's properties (and each option once more as `option.<name>`). The others are
# options of the stream writer which some hosts leave among the options.
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
