"""The only code that imports PySpark: adapters between its data source API and the contracts of `connector/`."""
