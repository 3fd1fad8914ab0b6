"""Real brokers: several as one cluster, or one behind a proxy."""
