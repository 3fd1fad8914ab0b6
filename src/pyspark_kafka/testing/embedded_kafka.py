"""A real Apache Kafka broker under the control of a test, a demo or a notebook.

Starts, stops, freezes and kills one broker, and creates topics on it. Reads and writes no records.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
import weakref
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.admin.topics import NewTopic, create_topics
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.options import ConnectionOptions
from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing.administration import delete_topic
from pyspark_kafka.testing.broker_config import (
    HOST,
    NODE_ID,
    QUICK_JVM_FLAGS,
    BrokerAddress,
    build_java_command,
    build_logging_text,
    build_properties,
    new_cluster_id,
    parse_cluster_id,
    to_properties_text,
)
from pyspark_kafka.testing.jars import DEFAULT_VERSION, class_archive, is_own, kafka_classpath
from pyspark_kafka.testing.java import Java, find_java
from pyspark_kafka.testing.ports import choose_ports
from pyspark_kafka.testing.readiness import find_cluster
from pyspark_kafka.testing.secured.broker_security import BrokerSecurity
from pyspark_kafka.testing.slow_step import SlowStep
from pyspark_kafka.testing.start_errors import not_started, start_failed
from pyspark_kafka.testing.supervised import SupervisedProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from pyspark_kafka.testing.secured.listeners import Listener

_FORMAT_TIMEOUT_S = 60
_POLL_S = 0.05
_COLLISION_ATTEMPTS = 5
_COLLISION_PAUSE_S = 0.5
_COLLISION_TEXTS = ("Address already in use", "Address in use", "BindException")
_LOG_TAIL_BYTES = 64 * 1024


class EmbeddedKafka:
    """One real Apache Kafka broker (KRaft) on loopback, gone when the block ends.

    The broker, its data and its files also go when this process ends in any other way, `kill -9` included. Topics are
    not created by accident (`auto.create.topics.enable=false`), and nothing is deleted by age. Ctrl-C in a terminal
    reaches the application only, which then ends the broker.

    Runs on: driver. Linux and macOS. The first start on a machine downloads the broker (44 MB).

    Example:
        with EmbeddedKafka() as kafka:
            kafka.create_topic("events", partitions=2)
            ...  # clients use kafka.bootstrap_servers

        secured = Listener("SASL_SSL", mechanisms=("SCRAM-SHA-512",))
        with EmbeddedKafka(listeners=[secured], users={"alice": "..."}) as kafka:
            spark.read.format("pyspark_kafka").options(**kafka.client_options("SASL_SSL", "alice"))

    Attributes:
        security: certificates, tokens, users and rights of its secured listeners.
    """

    def __init__(
        self,
        version: str = DEFAULT_VERSION,
        *,
        default_partitions: int = 1,
        properties: Mapping[str, str] | None = None,
        listeners: Sequence[Listener] = (),
        users: Mapping[str, str] | None = None,
        authorizer: bool = False,
        port: int | None = None,
        heap: str = "512m",
        jvm_flags: Sequence[str] = QUICK_JVM_FLAGS,
        data_dir: Path | str | None = None,
        start_timeout_s: float = 120.0,
        stop_timeout_s: float = 15.0,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        """Describe a broker; nothing is started yet.

        Args:
            version: Apache Kafka's version: 4.3.0 or 3.9.2, or any other with jars of your own (PYSPARK_KAFKA_JARS).
            default_partitions: partitions of a topic that is created without a number.
            properties: broker properties that are added to the defaults, or replace them. A PLAINTEXT listener on
                `bootstrap_servers` must stay.
            listeners: more listeners, which encrypt or authenticate; `bootstrap_servers` stays as it is. They need
                the extra `testing`.
            users: password by name, for PLAIN and SCRAM.
            authorizer: whether users need rights (`security.grant`). Clients without a name may do all.
            port: the port of clients; None takes a free one.
            heap: the JVM's largest heap, as its flag `-Xmx` wants it.
            jvm_flags: other flags of the JVM. The default starts soon; `WARM_JVM_FLAGS` of `broker_config` is for
                measuring.
            data_dir: where the records are kept, and stay; None keeps them in a temporary directory.
            start_timeout_s: seconds until a broker that does not serve clients, or does not create a topic, is an
                error.
            stop_timeout_s: seconds that an orderly stop may take before the broker is killed.
            progress: called with one line when a download begins. None: a start that takes longer than 2 s says on
                standard error what it waits for.
        """
        self._version = version
        self._default_partitions = default_partitions
        self._overrides = dict(properties or {})
        self.security = BrokerSecurity(listeners, users, authorizer=authorizer, node_id=NODE_ID)
        self._port = port
        self._heap = heap
        self._jvm_flags = tuple(jvm_flags)
        self._data_dir = None if data_dir is None else Path(data_dir).expanduser().resolve()
        self._start_timeout_s = start_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._progress = progress
        self._address: BrokerAddress | None = None
        self._home: Path | None = None
        self._process: SupervisedProcess | None = None
        self._closer: weakref.finalize[..., EmbeddedKafka] | None = None
        self._pid: int | None = None

    def __repr__(self) -> str:
        where = "not started" if self._address is None else self._address.bootstrap_servers
        return f"EmbeddedKafka({self._version}, {where})"

    def __enter__(self) -> EmbeddedKafka:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def version(self) -> str:
        """Apache Kafka's version."""
        return self._version

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, `127.0.0.1:port`; the same after a restart.

        Raises:
            SetupError: before the first start.
        """
        if self._address is None:
            raise not_started()
        return self._address.bootstrap_servers

    def address(self, listener: str = "PLAINTEXT") -> str:
        """Return the address of a listener, `127.0.0.1:port`; the same after a restart.

        Raises:
            SetupError: there is no listener of that name, or the broker has not been started.
        """
        return self.security.address(listener)

    def client_options(
        self, listener: str = "PLAINTEXT", user: str | None = None, *, mechanism: str | None = None, store: str = "PEM"
    ) -> dict[str, str]:
        """Return the options of a query on a listener: address, certificates, login; as `BrokerSecurity` does.

        Raises:
            SetupError: there is no listener or no user of that name.
        """
        return self.security.client_options(listener, user, mechanism=mechanism, store=store)

    @property
    def running(self) -> bool:
        """Whether the broker's process runs; also true while it is paused."""
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        """The process id of the broker's JVM.

        Raises:
            SetupError: before the first start.
        """
        if self._pid is None:
            raise not_started()
        return self._pid

    @property
    def log(self) -> str:
        """The end of what the broker has logged, at most 64 KiB."""
        if self._home is None:
            return ""
        try:
            with (self._home / "broker.log").open("rb") as written:
                size = written.seek(0, 2)
                written.seek(max(0, size - _LOG_TAIL_BYTES))
                return written.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def start(self) -> EmbeddedKafka:
        """Start the broker, wait until it serves clients, and return this object. Does nothing when it runs.

        After `stop` or `kill` it comes back on the same port with the same data.

        Raises:
            SetupError: no Java, no jars, a port that is taken, or a broker that does not start; the text of the last
                holds the end of its log.
        """
        if self.running:
            return self
        if self._progress is not None:
            self._start(self._progress)
            return self
        text = f"Starting Apache Kafka {self._version}"
        with SlowStep(text) as step:
            self._start(step.update, lambda: step.update(text))
        return self

    def _start(self, progress: Callable[[str], None], has_jars: Callable[[], None] = lambda: None) -> None:
        java = find_java()
        classpath = kafka_classpath(self._version, progress=progress)
        has_jars()
        first = self._process is None
        try:
            self._open(java, classpath)
        except BaseException:
            if first:
                self.close()
            raise

    def stop(self) -> None:
        """Stop the broker in order, or kill it when that takes too long. The data stay; `start` brings it back."""
        process = self._process
        if process is None:
            return
        # A paused broker does not see the request to stop.
        process.signal(signal.SIGCONT)
        process.signal(signal.SIGTERM)
        if not process.wait(self._stop_timeout_s):
            self.kill()

    def kill(self) -> None:
        """Kill the broker immediately, as a crash would. The data stay; `start` brings it back."""
        if self._process is not None:
            self._process.signal(signal.SIGKILL)
            self._process.wait(self._stop_timeout_s)

    def restart(self) -> None:
        """Stop the broker in order and start it: same port, same data.

        Raises:
            SetupError: when it does not start again.
        """
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze the broker: connections stay open and no request gets a response, until `resume`."""
        if self._process is not None:
            self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a paused broker."""
        if self._process is not None:
            self._process.signal(signal.SIGCONT)

    def close(self) -> None:
        """End the broker and remove its files, except a `data_dir`. Does nothing when there is none.

        A broker whose data are temporary is killed rather than stopped, which is quicker and loses nothing.
        """
        if self._closer is not None:
            self._closer()
        self._process = None
        self._closer = None
        self._home = None
        self._pid = None

    def create_topic(self, name: str, partitions: int | None = None, config: Mapping[str, str] | None = None) -> None:
        """Create a topic and wait until every partition has a leader, at most `start_timeout_s`.

        Args:
            name: the topic's name.
            partitions: their number; None takes the broker's default.
            config: topic properties, such as `cleanup.policy`.

        Raises:
            BrokerError: when the broker refuses it, for example because it exists.
            DeadlineError, TransportError: when it is not done in time, or the broker does not respond.
        """
        count = self._default_partitions if partitions is None else partitions
        if self._address is None:
            raise not_started()
        options = ConnectionOptions(bootstrap_servers=((HOST, self._address.port),), client_id="embedded")
        with KafkaClient(options) as client:
            # A broker on a busy machine needs for 1,000 partitions as long as for its start.
            deadline = Deadline(self._start_timeout_s * 1000)
            create_topics(client, [NewTopic(name, partitions=count, configs=dict(config or {}))], deadline)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records.

        Raises:
            BrokerError: when the broker refuses it, for example because there is none of that name.
        """
        delete_topic(self.bootstrap_servers, name)

    def _open(self, java: Java, classpath: str) -> None:
        """Do what `start` does, once Java and the jars are known."""
        process, home = self._workspace()
        started_before = self._address is not None
        for attempt in range(1, _COLLISION_ATTEMPTS + 1):
            address = self._address or choose_ports(self._port, self.security.listeners)
            command = self._configure(java, classpath, address)
            self._pid = process.start(command, home / "broker.log")
            collided = self._await_ready(process, address, home)
            if not collided:
                self._address = address
                self.security.after_start()
                return
            # Between choosing a port and the broker's taking it, or while a broker was down, something else got it.
            if attempt == _COLLISION_ATTEMPTS or (self._port is not None and not started_before):
                raise SetupError(
                    f"The embedded broker cannot listen on {HOST}:{address.port}"
                    f" or {HOST}:{address.controller_port}: a port is taken.",
                    condition="PORT_IN_USE",
                    hint="Leave the port out, and a free one is taken."
                    if self._port is not None
                    else "Start it again.",
                    parameters={"port": address.port, "controller_port": address.controller_port},
                )
            if started_before:
                time.sleep(_COLLISION_PAUSE_S)

    def _workspace(self) -> tuple[SupervisedProcess, Path]:
        """Create, once, the temporary directory and the supervisor that removes it."""
        if self._process is not None and self._home is not None:
            return self._process, self._home
        self._address = None
        home = Path(tempfile.mkdtemp(prefix="pyspark-kafka-")).resolve()
        try:
            process = SupervisedProcess(home, graceful=self._data_dir is not None)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        # Runs when this object is collected and when the interpreter ends, too.
        self._closer = weakref.finalize(self, process.close)
        self._process, self._home = process, home
        return process, home

    def _data_in(self, home: Path) -> Path:
        return self._data_dir or home / "data"

    def _configure(self, java: Java, classpath: str, address: BrokerAddress) -> list[str]:
        """Write the broker's files, format a new data directory, and return its command line."""
        process, home = self._workspace()
        data = self._data_in(home)
        ports = {"PLAINTEXT": address.port, **address.listener_ports}
        secured = self.security.prepare(home / "security", ports, address.controller_port)
        properties = home / "server.properties"
        overrides = {**secured, **self._overrides}
        content = build_properties(address, data, default_partitions=self._default_partitions, overrides=overrides)
        properties.write_text(to_properties_text(content))
        flag, text = build_logging_text(self._version)
        logging_file = home / "logging.properties"
        logging_file.write_text(text)
        # What a JVM unpacks it removes when it ends in order; a broker whose data are temporary is killed.
        temporary = home / "tmp"
        temporary.mkdir(exist_ok=True)
        flags = (
            *self._jvm_flags,
            *self.security.jvm_flags(),
            flag.format(file=logging_file),
            f"-Djava.io.tmpdir={temporary}",
        )
        archive = class_archive(self._version, java)
        if is_own(archive):
            flags += (f"-XX:SharedArchiveFile={archive}",)
        run = partial(build_java_command, java.executable, classpath, flags=flags)
        if not (data / "meta.properties").exists():
            data.mkdir(parents=True, exist_ok=True)
            arguments = ("format", "--cluster-id", new_cluster_id(), "--config", str(properties))
            command = run("kafka.tools.StorageTool", arguments, heap="128m")
            _run_format(process, command, home / "format.log")
        return run("kafka.Kafka", (str(properties),), heap=self._heap)

    def _await_ready(self, process: SupervisedProcess, address: BrokerAddress, home: Path) -> bool:
        """Wait until the broker serves clients; True when it ended because a port is taken.

        Raises:
            SetupError: when it ended otherwise, or takes too long.
        """
        cluster_id = parse_cluster_id((self._data_in(home) / "meta.properties").read_text())
        logged_before = len(self.log)
        end = time.monotonic() + self._start_timeout_s
        while time.monotonic() < end:
            code = process.exit_code()
            if code is not None:
                log = self.log[logged_before:] or self.log
                if any(text in log for text in _COLLISION_TEXTS):
                    return True
                raise start_failed(f"it ended with exit code {code}", log)
            if self._serves(address, cluster_id):
                return False
            time.sleep(_POLL_S)
        self.kill()
        raise start_failed(f"it did not serve clients within {self._start_timeout_s:g} s", self.log)

    def _serves(self, address: BrokerAddress, cluster_id: str | None) -> bool:
        # Another cluster may respond there, while this broker is about to find its port taken.
        return find_cluster(HOST, address.port) == cluster_id


def _run_format(process: SupervisedProcess, command: list[str], log: Path) -> None:
    process.start(command, log)
    in_time = process.wait(_FORMAT_TIMEOUT_S)
    if not in_time:
        process.signal(signal.SIGKILL)
    elif process.exit_code() == 0:
        return
    text = log.read_text(errors="replace")
    raise start_failed("its data directory could not be formatted" + ("" if in_time else " in time"), text)
