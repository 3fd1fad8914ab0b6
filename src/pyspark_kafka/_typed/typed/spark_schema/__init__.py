"""Schemas in Spark's own two languages, without Spark: columns as in SQL, and the JSON of a StructType.

Entry points: `ddl.parse_ddl`, `schema_json.parse_schema_json`. `types` has what both share.

Invariant: pure, and bounded: the size of a text, its depth and the number of its columns are limited before they cost
anything. All columns are nullable, whatever the text says.
"""
