"""Arguments that all commands share: how to connect, and how to print.

A command takes them as parameters with these types, and hands them to `settings_of`, `options_of` or `connection_of`:

    def command(
        servers: Servers = None, config: Config = None, options_file: OptionsFile = None, option: Options = None
    ) -> None:
        connection = connection_of(servers, config, options_file, option)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from typing import TypeAlias

    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
    from pyspark_kafka._client.options import ConnectionOptions
    from pyspark_kafka._ops.operations.settings import Settings

    # Of --bootstrap-servers, --config, --options and -o.
    Where: TypeAlias = tuple[str | None, Path | None, Path | None, list[str] | None]

_SERVERS = "kafka.bootstrap.servers"
# The help of a command shows its own options first. It names variables in sentences: typer cuts what is too long.
_CONNECTION: dict[str, Any] = {"rich_help_panel": "Connection", "show_envvar": False}

Servers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        "-b",
        metavar="HOSTS",
        envvar="PYSPARK_KAFKA_BOOTSTRAP_SERVERS",
        help="Where to find the cluster: host:port, several with commas between them; or the variable "
        "PYSPARK_KAFKA_BOOTSTRAP_SERVERS.",
        **_CONNECTION,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="PYSPARK_KAFKA_CONFIG",
        help="A file of Java client properties, such as security.protocol=SSL; or the variable PYSPARK_KAFKA_CONFIG.",
        **_CONNECTION,
    ),
]
OptionsFile = Annotated[
    Path | None,
    typer.Option(
        "--options",
        metavar="FILE",
        envvar="PYSPARK_KAFKA_OPTIONS",
        help="A JSON file with the options of a query: names and values of .option(); or the variable "
        "PYSPARK_KAFKA_OPTIONS.",
        **_CONNECTION,
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--option",
        metavar="NAME=VALUE",
        help="One option of a query; may be repeated. The prefix kafka. may be left out.",
        **_CONNECTION,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def is_connected(servers: str | None, config: Path | None, options_file: Path | None, option: list[str] | None) -> bool:
    """Return whether the user has named a cluster: commands that can do without one then also query its brokers.

    Raises:
        OptionError: as `collect_options`.
    """
    from pyspark_kafka._ops.cli.common.query_options import collect_options  # noqa: PLC0415 - the client only when needed

    raw = collect_options(config, options_file, option or [], servers)
    return any(name.strip().lower() in (_SERVERS, _SERVERS.removeprefix("kafka.")) for name in raw)


def options_of(
    servers: str | None, config: Path | None, options_file: Path | None, option: list[str] | None
) -> dict[str, Any]:
    """Return the options of any query from all places, by the names of the catalogue; not resolved yet.

    Raises:
        OptionError: no broker is named, or a file cannot be read.
    """
    from pyspark_kafka._ops.cli.common.query_options import collect_options  # noqa: PLC0415 - the client only when needed
    from pyspark_kafka._ops.operations.settings import with_prefixes  # noqa: PLC0415

    raw = with_prefixes(collect_options(config, options_file, option or [], servers))
    if not any(name.strip().lower() == _SERVERS for name in raw):
        raise OptionError(
            "No broker is named.",
            condition="OPTION_MISSING",
            hint="Pass --bootstrap-servers host:port, set PYSPARK_KAFKA_BOOTSTRAP_SERVERS, or put bootstrap.servers "
            "into the file of --config.",
        )
    return raw


def settings_of(
    servers: str | None, config: Path | None, options_file: Path | None, option: list[str] | None
) -> Settings:
    """Resolve the options of any query from all places; a later place takes precedence.

    Raises:
        OptionError: no broker is named, or with all problems at once; values of secrets are never repeated.
    """
    from pyspark_kafka._ops.operations.settings import resolve_settings  # noqa: PLC0415 - the client only when needed

    return resolve_settings(options_of(servers, config, options_file, option))


def connection_of(
    servers: str | None, config: Path | None, options_file: Path | None, option: list[str] | None
) -> ConnectionOptions:
    """Resolve how to connect, as `settings_of` does."""
    return settings_of(servers, config, options_file, option).connection


def connect(where: Where) -> KafkaClient:
    """Return a client of the cluster that the arguments name; notes on options are printed on standard error.

    Raises:
        OptionError: as `settings_of`.
    """
    from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient  # noqa: PLC0415
    from pyspark_kafka._ops.cli.common.output import warn  # noqa: PLC0415 - the client only when needed

    settings = settings_of(*where)
    warn(*settings.notes)
    return KafkaClient(settings.connection)
