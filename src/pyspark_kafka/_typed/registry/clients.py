"""The clients of confluent-kafka for this process's registries.

A client has no connection between two questions, so none is used on both sides of a fork; what is worth keeping is its
TLS context, which takes 50 ms to build. It is kept for seconds, so that renewed passwords and certificates apply soon.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from pyspark_kafka._client.options import Revealed, check_reference
from pyspark_kafka._typed.registry.failures import files_unusable, login_unusable, missing_package, shortened

if TYPE_CHECKING:
    from pyspark_kafka._client.options import RegistryOptions, Secret

_KEPT_S = 30.0
_MAX_KEPT = 4


class Clients:
    """Lends clients, each to one question at a time. Safe to use from threads.

    Args:
        options: of the registry.
    """

    def __init__(self, options: RegistryOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        # Each with its address, and when it was built.
        self._kept: list[tuple[str, float, Any]] = []
        self._process_id = os.getpid()

    def take_client(self, url: str) -> tuple[float, Any]:
        """Return a client of an address, and when it was built.

        Raises:
            MissingDependencyError: without the package confluent-kafka.
            OptionError: a certificate cannot be loaded, or a secret is not there.
        """
        now = time.monotonic()
        if self._process_id == os.getpid():
            with self._lock:
                self._kept = [each for each in self._kept if now - each[1] < _KEPT_S]
                for place, (address, built_at, client) in enumerate(self._kept):
                    if address == url:
                        del self._kept[place]
                        # It has its own caches, which would return old results for a changed registry.
                        client.clear_caches()
                        return built_at, client
        return now, _open_client(url, self._options)

    def put_back(self, url: str, built_at: float, client: Any) -> None:
        """Keep a client after a successful request."""
        with self._lock:
            self._kept.append((url, built_at, client))
            del self._kept[:-_MAX_KEPT]


def load_client_class() -> Any:
    """Return the class of confluent-kafka's client; its first import in a process may take seconds on a busy machine.

    Raises:
        MissingDependencyError: without the package.
    """
    try:
        from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise missing_package("confluent-kafka[schemaregistry]", "registry", "A schema registry") from error
    return SchemaRegistryClient


def _open_client(url: str, options: RegistryOptions) -> Any:
    """Return confluent-kafka's client of one address, which makes each request once.

    Raises:
        MissingDependencyError: without the package.
        OptionError: a certificate cannot be loaded, a secret is not there or of no use, or the administrator of this
            process does not allow one of them.
    """
    client_class = load_client_class()
    for name in ("ca", "certificate", "key"):
        path = getattr(options, f"{name}_location")
        if path is not None:
            check_reference("file", path, f"schema.registry.ssl.{name}.location")
    parts = urlsplit(url)
    user_info = None if options.basic_auth is None else _login(options.basic_auth)
    if parts.username is not None:
        # Not left in the address, which libraries log.
        user_info = user_info or Revealed(f"{unquote(parts.username)}:{unquote(parts.password or '')}")
        url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    settings: dict[str, Any] = {
        "url": url,
        "max.retries": 0,
        "basic.auth.user.info": user_info,
        "ssl.ca.location": options.ca_location or _system_authorities(),
        "ssl.certificate.location": options.certificate_location,
        "ssl.key.location": options.key_location,
    }
    if options.certificate_location is not None:
        # Without one, OpenSSL would prompt at the terminal for the password of an encrypted key.
        settings["ssl.key.password"] = "" if options.key_password is None else options.key_password.reveal()
    try:
        return client_class({name: value for name, value in settings.items() if value is not None})
    except (OSError, ssl.SSLError) as error:
        reason = shortened(error.strerror or error) if isinstance(error, OSError) else shortened(error)
        named = error.filename if isinstance(error, OSError) else None
    raise files_unusable(f"{named}: {reason}" if named else reason)


def _login(secret: Secret) -> Revealed:
    """Return user and password, as the client takes them: its own error would keep them.

    Raises:
        OptionError: they are not there, or have not this form.
    """
    login = secret.reveal()
    reason = "" if ":" in login else "is not user:password, as it has no colon"
    if any("\ud800" <= each <= "\udfff" for each in login):
        reason = "is not text in UTF-8"
    if reason:
        raise login_unusable("schema.registry.basic.auth.user.info", secret, reason)
    return login


def _system_authorities() -> str | None:
    """Return the authorities that this machine trusts; without them the client brings its own, of certifi."""
    paths = ssl.get_default_verify_paths()
    return paths.cafile or paths.capath


def rest_of(client: Any) -> Any:
    """Return the part of a client that makes requests: `session`, of httpx, and `base_urls`.

    The only private name of that library in this package: the session takes hooks, its `post` returns what the methods
    of the client leave out, and there is no other way to either.
    """
    return client._rest_client  # noqa: SLF001
