"""The version of the package, sent to brokers and shown to users. Layer: bottom."""

__version__ = "0.1.0"
