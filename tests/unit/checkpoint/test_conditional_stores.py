"""How the settings of a location are given to the client of its store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyspark_kafka.checkpoint import CheckpointFiles, conditional_stores
from pyspark_kafka.checkpoint.conditional_stores import HadoopStore, cloud_settings, conditional_store, has_client
from pyspark_kafka.errors import CheckpointError


def settings(location: str, root: str = "bucket/query", region: str | None = None) -> dict[str, Any]:
    found = cloud_settings(location, root, region)
    client = found.pop("client_options")
    # Every call has a limit.
    assert client.pop("timeout").total_seconds() <= 30
    assert client.pop("connect_timeout").total_seconds() <= 30
    return {**found, **{name: value for name, value in client.items() if value}}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without it, boto3 is asked for credentials.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")


@pytest.mark.parametrize(
    ("location", "wanted"),
    [
        ("s3://bucket/query", {}),
        ("s3://key:a%2Fsecret@bucket/query", {"access_key_id": "key", "secret_access_key": "a/secret"}),
        ("s3://bucket/query?endpoint_override=host:9000", {"endpoint": "https://host:9000"}),
        (
            "s3://bucket/query?scheme=http&endpoint_override=host%3A9000",
            {"endpoint": "http://host:9000", "allow_http": True},
        ),
        ("s3://bucket/query?force_virtual_addressing=true", {"virtual_hosted_style_request": True}),
        ("gs://bucket/query", {}),
        ("gs://anonymous@bucket/query", {"skip_signature": True}),
        (
            "gs://bucket/query?scheme=http&endpoint_override=localhost:4443",
            {"base_url": "http://localhost:4443", "allow_http": True},
        ),
        ("abfs://bucket@account.dfs.core.windows.net/query", {"account_name": "account"}),
        (
            "abfss://bucket:a%2Bkey@account.dfs.core.windows.net/query",
            {"account_name": "account", "account_key": "a+key"},
        ),
        ("abfs://account:key@bucket/query", {"account_name": "account", "account_key": "key"}),
        (
            "abfs://account@bucket/query?tenant_id=t&client_id=c&client_secret=s",
            {"account_name": "account", "tenant_id": "t", "client_id": "c", "client_secret": "s"},
        ),
        ("abfs://account@bucket/query?credential_kind=cli", {"account_name": "account", "use_azure_cli": True}),
        (
            "abfs://devstoreaccount1:k@bucket/query?blob_storage_authority=127.0.0.1:10000&enable_tls=false",
            {
                "account_name": "devstoreaccount1",
                "account_key": "k",
                "endpoint": "http://127.0.0.1:10000/devstoreaccount1",
                "allow_http": True,
            },
        ),
    ],
)
def test_settings_of_a_location_are_those_of_pyarrow(location: str, wanted: dict[str, Any]) -> None:
    assert settings(location) == wanted


def test_region_of_a_bucket_is_the_one_that_pyarrow_has_found() -> None:
    assert settings("s3://bucket/query", region="eu-west-3") == {"region": "eu-west-3"}


def test_certificate_of_a_store_of_ones_own_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"a certificate")
    location = f"s3://bucket/query?tls_ca_file_path={tmp_path}/ca.pem"
    assert settings(location) == {"root_certificate": b"a certificate"}


def test_container_without_an_account_is_refused() -> None:
    with pytest.raises(OSError, match="names no storage account"):
        settings("abfs://bucket/query")


def test_scheme_without_a_client_has_no_store() -> None:
    assert not has_client("webhdfs")
    assert conditional_store("webhdfs://host/query", "/query", None) is None


@pytest.mark.parametrize("location", ["hdfs://somebody@host/query", "hdfs://host/query?replication=2"])
def test_settings_of_libhdfs_in_a_location_are_refused(location: str) -> None:
    pytest.importorskip("hdfs_native.fsspec", reason="the extra hdfs")
    with pytest.raises(CheckpointError, match="belong into HADOOP_USER_NAME and HADOOP_CONF_DIR") as raised:
        CheckpointFiles(location).check_decides()
    assert raised.value.condition == "CHECKPOINT_LOCATION_INVALID"


def test_query_of_an_address_is_left_out_of_errors() -> None:
    error = ValueError("PUT https://account.blob/a?sig=secret in 3 ms: 403\nsettings")
    assert conditional_stores._reason(error) == "PUT https://account.blob/a?… in 3 ms: 403"


class NameNode:
    """As `hdfs_native.Client`: a rename is refused if the name is taken, or replaces what is there.

    Attributes:
        files: by path.
        lost: whether the response to a rename is lost, so that the client repeats it.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.lost = False

    def create(self, path: str) -> NameNode:
        self._open = path
        self.files[path] = b""
        return self

    def read(self, path: str = "") -> NameNode:
        if path not in self.files:
            raise FileNotFoundError(path)
        self._open = path
        return self

    def __enter__(self) -> NameNodeFile:
        return NameNodeFile(self.files, self._open)

    def __exit__(self, *_: object) -> None:
        """A file is closed."""

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        if target in self.files and not overwrite:
            raise FileExistsError(target)
        self.files[target] = self.files.pop(source)
        if self.lost:
            raise FileExistsError(target)

    def get_file_info(self, path: str) -> object:
        if path not in self.files:
            raise FileNotFoundError(path)
        return object()

    def delete(self, path: str) -> bool:
        return self.files.pop(path, None) is not None


class NameNodeFile:
    """A file that is open."""

    def __init__(self, files: dict[str, bytes], path: str) -> None:
        self._files, self._path = files, path

    def __len__(self) -> int:
        return len(self._files[self._path])

    def read(self, size: int) -> bytes:
        return self._files[self._path][:size]

    def write(self, data: bytes) -> None:
        self._files[self._path] += data


def test_file_of_hdfs_is_created_once_and_replaced_whole() -> None:
    node = NameNode()
    store = HadoopStore(node)
    assert store.create("/query/offsets/0", b"first")
    assert not store.create("/query/offsets/0", b"second")
    assert store.read("/query/offsets/0", 100) == b"first"
    store.replace("/query/offsets/0", b"third")
    assert store.read("/query/offsets/0", 3) == b"thi"
    assert list(node.files) == ["/query/offsets/0"]
    store.delete(["/query/offsets/0", "/query/offsets/1"])
    assert store.read("/query/offsets/0", 3) is None


def test_rename_whose_response_was_lost_counts_as_done() -> None:
    node = NameNode()
    node.lost = True
    assert HadoopStore(node).create("/query/offsets/0", b"ours")
    assert node.files == {"/query/offsets/0": b"ours"}
