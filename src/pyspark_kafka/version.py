"""The version of the package, sent to brokers and shown to users, and the address of its documentation."""

__version__ = "0.2.0"
__all__ = ["__version__"]
__dir__ = __all__.copy

DOCUMENTATION = "https://pyspark-kafka.github.io/pyspark-kafka/"


def entry_address(page: str, name: str) -> str:
    """Return the address of an entry on a page of the documentation: its heading is the name."""
    return f"{DOCUMENTATION}{page}/#{name.lower().replace('.', '')}"
