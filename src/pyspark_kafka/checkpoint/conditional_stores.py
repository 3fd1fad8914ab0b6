"""Stores that decide which of several writers of a file comes first: object stores and HDFS, each by its own client.

`pyarrow.fs` has no write on a condition, and its moves replace what is there. Without such a client, `files.py` writes
as it can, and two drivers can both succeed.
"""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

# The extra of this package that has the client, by the scheme of a location.
EXTRAS = {
    "s3": "object-stores",
    "gs": "object-stores",
    "gcs": "object-stores",
    "abfs": "object-stores",
    "abfss": "object-stores",
    "hdfs": "hdfs",
}
# Of one call, with all its retries; then the run fails, and starts again.
_PATIENCE = timedelta(seconds=30)
_CALL_TIMEOUT = timedelta(seconds=20)
# The same of a name node: the time after which a silent one is left for another.
_HADOOP_PATIENCE = {
    "dfs.client.failover.max.attempts": "5",
    "dfs.client.failover.sleep.max.millis": "5000",
    "dfs.client.socket-timeout": "20000",
}
_CHUNK = 1024 * 1024
_QUERY = re.compile(r"\?[^\s:]+")


class ConditionalStore(Protocol):
    """A store that keeps files whole, and of several that create one file lets exactly one succeed.

    Paths are paths of `pyarrow.fs`. Any thread; every method blocks, at most about half a minute.

    Raises:
        OSError: from every method: the store cannot be reached, or refuses the call.
    """

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """Return the content of a file, cut off behind `max_bytes` bytes; None if there is no such file."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, or replace it; readers see the previous or the new content."""

    def create(self, path: str, data: bytes) -> bool:
        """Write a file; return False if there is one already."""

    def move(self, source: str, target: str) -> None:
        """Rename a file, over a file of the new name."""

    def delete(self, paths: Sequence[str]) -> None:
        """Remove files; a missing file is not an error."""


class CloudStore:
    """S3, Google Cloud Storage or Azure Blob Storage: the service holds the condition "if there is none" of a write.

    Args:
        scheme: of the location.
        root: bucket or container, and the path, as `pyarrow.fs` names them.
        settings: what `obstore` needs to open the bucket.

    Source: RFC 9110, If-None-Match; Google Cloud Storage, ifGenerationMatch.
    """

    def __init__(self, scheme: str, root: str, settings: Mapping[str, Any]) -> None:
        import obstore  # noqa: PLC0415 - an extra
        from obstore import store  # noqa: PLC0415 - as above

        self._calls: Any = obstore
        self._bucket = root.partition("/")[0]
        made: Any = {"s3": store.S3Store, "gs": store.GCSStore, "gcs": store.GCSStore}.get(scheme, store.AzureStore)
        with _as_os_errors():
            self._store = made(
                self._bucket,
                **settings,
                retry_config={"max_retries": 10, "retry_timeout": _PATIENCE},
            )

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """Return the content of a file, cut off behind `max_bytes` bytes; None if there is no such file."""
        content = bytearray()
        with _as_os_errors():
            try:
                for chunk in self._calls.get(self._store, self._key(path)).stream(min_chunk_size=_CHUNK):
                    content += chunk
                    if len(content) >= max_bytes:
                        break
            except FileNotFoundError:
                return None
        return bytes(content[:max_bytes])

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, or replace it; readers see the previous or the new content."""
        with _as_os_errors():
            self._calls.put(self._store, self._key(path), data)

    def create(self, path: str, data: bytes) -> bool:
        """Write a file; return False if there is one already."""
        key, writer = self._key(path), uuid.uuid4().hex
        with _as_os_errors():
            try:
                # In one request: the parts of a large upload are put together in another way by each service.
                self._calls.put(
                    self._store, key, data, mode="create", use_multipart=False, attributes={"writer": writer}
                )
            except self._calls.exceptions.AlreadyExistsError:
                # If a response is lost, the client repeats the request, and finds the file that it has written.
                with suppress(FileNotFoundError):
                    return bool(self._calls.get(self._store, key).attributes.get("writer") == writer)
                return False
        return True

    def move(self, source: str, target: str) -> None:
        """Change the name of a file; what has the other name is replaced."""
        with _as_os_errors():
            self._calls.rename(self._store, self._key(source), self._key(target), overwrite=True)

    def delete(self, paths: Sequence[str]) -> None:
        """Remove files; a missing file is not an error."""
        with _as_os_errors(), suppress(FileNotFoundError):
            # S3 removes all of them by one call.
            self._calls.delete(self._store, [self._key(path) for path in paths])

    def _key(self, path: str) -> str:
        return path[len(self._bucket) + 1 :]


class HadoopStore:
    """HDFS: its name node refuses to rename a file to a name that is taken, or replaces what is there, in one step.

    Args:
        client: `hdfs_native.Client`.

    Source: Hadoop `ClientProtocol.rename2`.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """Return the content of a file, cut off behind `max_bytes` bytes; None if there is no such file."""
        try:
            with self._client.read(path) as file:
                return bytes(file.read(min(max_bytes, len(file))))
        except FileNotFoundError:
            return None

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, or replace it; readers see the previous or the new content."""
        self._put(path, data, overwrite=True)

    def create(self, path: str, data: bytes) -> bool:
        """Write a file; return False if there is one already."""
        return self._put(path, data, overwrite=False)

    def move(self, source: str, target: str) -> None:
        """Change the name of a file; what has the other name is replaced."""
        self._client.rename(source, target, overwrite=True)

    def delete(self, paths: Sequence[str]) -> None:
        """Remove files; a missing file is not an error."""
        for path in paths:
            with suppress(FileNotFoundError):
                self._client.delete(path)

    def _put(self, path: str, data: bytes, *, overwrite: bool) -> bool:
        directory, _, name = path.rpartition("/")
        written = f"{directory}/.{name}.{uuid.uuid4().hex}.tmp"
        try:
            with self._client.create(written) as file:
                file.write(data)
            try:
                self._client.rename(written, path, overwrite=overwrite)
            except FileExistsError:
                return not self._is_there(written)
        finally:
            with suppress(OSError):
                self._client.delete(written)
        return True

    def _is_there(self, path: str) -> bool:
        try:
            self._client.get_file_info(path)
        except FileNotFoundError:
            return False
        return True


@lru_cache(maxsize=32)
def conditional_store(location: str, root: str, region: str | None) -> ConditionalStore | None:
    """Return the store of a location; None if its client is not installed, or there is none for its scheme.

    Args:
        location: the URI, with a scheme of `pyarrow.fs`.
        root: the path that `pyarrow.fs` has found in it.
        region: of a bucket of S3.

    Raises:
        OSError: the location cannot be opened.
    """
    scheme = location.partition(":")[0].lower()
    if not has_client(scheme):
        return None
    if scheme == "hdfs":
        return HadoopStore(hadoop_files(location).client)
    return CloudStore(scheme, root, cloud_settings(location, root, region))


def has_client(scheme: str) -> bool:
    """Return whether a store of this scheme can be opened by a client that is installed."""
    module = {"object-stores": "obstore", "hdfs": "hdfs_native"}.get(EXTRAS.get(scheme, ""))
    return module is not None and find_spec(module) is not None


@lru_cache(maxsize=32)
def hadoop_files(location: str) -> Any:
    """Return HDFS as `hdfs_native` offers it to `fsspec`: configured as Hadoop's own client, by `HADOOP_CONF_DIR`.

    Raises:
        OSError: the URI has a setting that only `pyarrow.fs` knows, or names an unknown server.
    """
    from hdfs_native.fsspec import HdfsFileSystem  # noqa: PLC0415 - an extra

    parts = urlsplit(location)
    if parts.username or parts.query:
        raise OSError(
            errno.EINVAL,
            "the user and the settings of HDFS belong into HADOOP_USER_NAME and HADOOP_CONF_DIR, not into the URI",
        )
    return HdfsFileSystem(host=parts.hostname, port=parts.port, skip_instance_cache=True, **_HADOOP_PATIENCE)


def cloud_settings(location: str, root: str, region: str | None) -> dict[str, Any]:
    """Return the arguments of `obstore`'s store that mean the same as a URI of `pyarrow.fs`.

    Raises:
        OSError: the URI has a setting that only `pyarrow.fs` knows.
    """
    parts = urlsplit(location)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    client: dict[str, Any] = {"timeout": _CALL_TIMEOUT, "connect_timeout": _CALL_TIMEOUT}
    if parts.scheme == "s3":
        settings = _of_s3(query, user, password, client)
        if region:
            settings["region"] = region
    elif parts.scheme in {"gs", "gcs"}:
        settings = _of_google(query, user, client)
    else:
        settings = _of_azure(parts.hostname or "", query, user, password, root, client)
    return {**settings, "client_options": client}


def _of_s3(query: Mapping[str, str], user: str, password: str, client: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    scheme = query.get("scheme", "https")
    if endpoint := query.get("endpoint_override"):
        settings["endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    client["allow_http"] = scheme == "http" or settings.get("endpoint", "").startswith("http://")
    _trust(query, client)
    if query.get("force_virtual_addressing", "").lower() in {"1", "true"}:
        settings["virtual_hosted_style_request"] = True
    if user and password:
        settings |= {"access_key_id": user, "secret_access_key": password}
    elif os.environ.get("AWS_ACCESS_KEY_ID") is None:
        # Profiles and single sign-on, as pyarrow has them; without this library: roles of machines and of pods only.
        with suppress(ImportError, ValueError):
            from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415 - an extra

            settings["credential_provider"] = Boto3CredentialProvider()
    return settings


def _of_google(query: Mapping[str, str], user: str, client: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    scheme = query.get("scheme", "https")
    if endpoint := query.get("endpoint_override"):
        settings["base_url"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    client["allow_http"] = scheme == "http"
    if user == "anonymous":
        settings["skip_signature"] = True
    return settings


def _of_azure(
    host: str, query: Mapping[str, str], user: str, password: str, root: str, client: dict[str, Any]
) -> dict[str, Any]:
    # abfs://container:key@account.dfs.core.windows.net/path, abfs://account:key@container/path
    account, _, domain = host.partition(".")
    settings: dict[str, Any] = {"account_name": account if domain else user}
    if password:
        settings["account_key"] = password
    if authority := query.get("blob_storage_authority"):
        plain = query.get("enable_tls", "true").lower() == "false"
        name = f"{settings['account_name']}{authority}" if authority.startswith(".") else authority
        path = "" if authority.startswith(".") else f"/{settings['account_name']}"
        settings["endpoint"] = f"{'http' if plain else 'https'}://{name}{path}"
        client["allow_http"] = plain
    for ours, theirs in (("tenant_id", "tenant_id"), ("client_id", "client_id"), ("client_secret", "client_secret")):
        if ours in query:
            settings[theirs] = query[ours]
    if query.get("credential_kind") == "anonymous":
        settings["skip_signature"] = True
    if query.get("credential_kind") == "cli":
        settings["use_azure_cli"] = True
    if not settings["account_name"]:
        raise OSError(errno.EINVAL, f"the location of {root.partition('/')[0]} names no storage account")
    return settings


def _trust(query: Mapping[str, str], client: dict[str, Any]) -> None:
    if path := query.get("tls_ca_file_path"):
        with open(path, "rb") as file:  # noqa: PTH123 - paths are text here, as in pyarrow.fs
            client["root_certificate"] = file.read()


@contextmanager
def _as_os_errors() -> Iterator[None]:
    from obstore import exceptions  # noqa: PLC0415 - an extra

    try:
        yield
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise PermissionError(errno.EACCES, _reason(error)) from None
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, _reason(error)) from None
    except exceptions.BaseError as error:
        raise OSError(errno.EIO, _reason(error)) from None


def _reason(error: Exception) -> str:
    # The lines after the first one repeat settings of the client; the query of an address may be a signature.
    return _QUERY.sub("?…", str(error).partition("\n")[0])
