"""Keys and values with types: the options of formats, the registry and the schemas together, to what tasks need.

`read_formats` plans a read: `ReadFormats` is plain data for the tasks that decode. `given_schema` reads the schema of
an option, `column_formats` makes a column of a schema, `arrow_types` has the types that Spark has, and compares them.
`write_formats` plans a write: `WriteFormats` has the schema ids to write, checked against the columns.
`registered_text` has the text of a schema as a registry takes it. `values` has the functions of `pyspark_kafka.formats`
for arrays, `value_plans` what these and the UDFs do.

Invariant: a query's schemas are looked up on the driver, once, when it is planned; a plan pickles and holds no
connection. Nothing here is imported where keys and values are bytes.
"""
