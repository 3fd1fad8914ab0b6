"""JSON Schema: the columns of documents, and rules for written documents.

`json_schema` reads a schema as columns, `schema_documents` finds its parts in others, `schema_fit` judges written
documents.

Invariant: pure; a part that no column is refuses the schema, unless the caller takes it as text.
"""
