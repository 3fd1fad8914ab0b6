"""Keys and values with types: the options of formats, the registry and the schemas together, to what tasks need.

`reading` plans a read: its `ReadFormats` are plain data that a task decodes with. `given_schema` reads the schema of an
option, `column_formats` makes a column of a schema, `arrow_types` has the types that Spark has, and compares them.
`writing` plans a write: its `WriteFormats` have the ids to write, of schemas that the columns fit; `registered_text`
has the text of a schema as a registry takes it. `values` and `column_functions` are the functions that
`pyspark_kafka.formats` has for users.

Invariant: schemas are looked up on the driver, once, when a query is planned; a plan pickles and holds no connection.
Nothing here is imported where keys and values are bytes. Layer: above client and formats, below source and sink.
"""
