"""The version of the package, sent to brokers and shown to users."""

__version__ = "0.2.0"
