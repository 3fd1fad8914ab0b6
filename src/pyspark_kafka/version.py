"""The version of the package, for brokers and users to see. Layer: bottom."""

__version__ = "0.1.0"
