"""The version of the package, sent to brokers and shown to users, its documentation, and how pip installs it."""

__version__ = "0.2.0"
__all__ = ["__version__"]
__dir__ = __all__.copy

DOCUMENTATION = "https://pyspark-kafka.github.io/pyspark-kafka/"
REPOSITORY = "https://github.com/pyspark-kafka/pyspark-kafka"
# Whether an index has the package; until then pip takes it from the repository. RELEASING.md has what changes with it.
ON_INDEX = False


def entry_address(page: str, name: str) -> str:
    """Return the address of an entry on a page of the documentation: its heading is the name."""
    return f"{DOCUMENTATION}{page}/#{name.lower().replace('.', '')}"


def install_command(extra: str = "", version: str = "") -> str:
    """Return the command that installs the package with an extra, and in a version if an index has it."""
    package = f"pyspark-kafka[{extra}]" if extra else "pyspark-kafka"
    if not ON_INDEX:
        package += f" @ git+{REPOSITORY}"
    elif version:
        package += f"=={version}"
    return f'pip install "{package}"'
