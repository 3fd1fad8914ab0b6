"""The entry point of the program `pyspark-kafka`, and `python -m pyspark_kafka` where its script is not on the PATH."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the program; without what its extra installs, print a sentence with the command, and end with 2."""
    try:
        from pyspark_kafka._ops.cli.main import main as run  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in {"typer", "rich"}:
            raise
        from pyspark_kafka.errors import MissingDependencyError  # noqa: PLC0415 - as above
        from pyspark_kafka.version import install_command  # noqa: PLC0415 - as above

        missing = MissingDependencyError(
            f"The program pyspark-kafka needs the package '{package}', which is not installed. Nothing was done.",
            condition="CLI_PACKAGE_MISSING",
            hint=f"Run {install_command('cli')}.",
        )
        sys.stderr.write(f"{missing}\n")
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
