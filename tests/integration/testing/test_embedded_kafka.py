from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.fixtures.leftovers import collect_quietly
from kit.independent_client import Record, produce
from pyspark_kafka._client.client.cluster.kafka_client import KafkaClient
from pyspark_kafka._client.options import ConnectionOptions
from pyspark_kafka.errors import BrokerError, SetupError, TransportError
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.ports import choose_ports
from pyspark_kafka.testing.readiness import find_cluster

# Starts a broker, tells the test what to look for, and continues as the test wants.
PROGRAM = """
import os, signal, sys, time
from pyspark_kafka.testing import EmbeddedKafka

# Ignored in what a shell has started in the background, and so in the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
kafka = EmbeddedKafka().start()
print(kafka.pid, kafka._process._supervisor.pid, kafka._home, flush=True)
"""
WAIT = "time.sleep(600)"
# Ends when the test closes the program, which may be dead by then.
FORKED_CHILD = "os.fork() or (os.setsid(), sys.stdin.read(), os._exit(0)); "


def port_of(bootstrap_servers: str) -> int:
    return int(bootstrap_servers.rpartition(":")[2])


def partition_counts(bootstrap_servers: str, *topics: str) -> dict[str, int]:
    options = ConnectionOptions(bootstrap_servers=(("127.0.0.1", port_of(bootstrap_servers)),))
    with KafkaClient(options) as client:
        found = client.fetch_metadata(topics or None).topics
        return {name: len(topic.partitions) for name, topic in found.items() if not topic.is_internal}


def is_alive(pid: int) -> bool:
    """Whether a process exists and has not ended; one that ended and was not waited for (a zombie) has."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(shown.stdout.strip()) and not shown.stdout.strip().startswith("Z")


def becomes_true(condition: Callable[[], bool], timeout_s: float = 120.0) -> bool:
    """Wait for a state of a process that is not ours, which sends no event to wait for."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class Program:
    """A Python program with a broker, in a process group of its own."""

    def __init__(self, then: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM + then],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        broker, supervisor, home = self.process.stdout.readline().split()
        self.broker, self.supervisor, self.home = int(broker), int(supervisor), Path(home)

    def leaves_nothing(self) -> bool:
        return becomes_true(
            lambda: not is_alive(self.broker) and not is_alive(self.supervisor) and not self.home.exists()
        )

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture(scope="module")
def _own_kafka_of_the_module() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture
def own_kafka(_own_kafka_of_the_module: EmbeddedKafka) -> EmbeddedKafka:
    """A running broker that the test may stop and kill, and need not start again."""
    return _own_kafka_of_the_module.start()


def test_a_topic_has_the_partitions_it_was_made_with(bootstrap_servers: str, make_topic: TopicMaker) -> None:
    topic = make_topic(3)
    assert partition_counts(bootstrap_servers, topic) == {topic: 3}


def test_a_topic_that_exists_is_refused(kafka: EmbeddedKafka, make_topic: TopicMaker) -> None:
    topic = make_topic()
    with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
        kafka.create_topic(topic)


def test_a_deleted_topic_is_gone(kafka: EmbeddedKafka, make_topic: TopicMaker) -> None:
    topic = make_topic()
    kafka.delete_topic(topic)
    assert topic not in partition_counts(kafka.bootstrap_servers)


def test_a_restart_keeps_address_and_topics(own_kafka: EmbeddedKafka) -> None:
    own_kafka.create_topic("kept", partitions=2)
    address, pid = own_kafka.bootstrap_servers, own_kafka.pid
    own_kafka.restart()
    assert own_kafka.pid != pid
    assert own_kafka.bootstrap_servers == address
    assert partition_counts(address, "kept") == {"kept": 2}


def test_a_killed_broker_comes_back_with_its_topics(own_kafka: EmbeddedKafka) -> None:
    own_kafka.create_topic("survivor")
    own_kafka.kill()
    assert not own_kafka.running
    own_kafka.start()
    assert partition_counts(own_kafka.bootstrap_servers, "survivor") == {"survivor": 1}


def test_a_stopped_broker_leaves_its_port(own_kafka: EmbeddedKafka) -> None:
    own_kafka.stop()
    assert not own_kafka.running
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port_of(own_kafka.bootstrap_servers)), timeout=5)


def test_a_paused_broker_answers_nothing_until_it_goes_on(
    own_kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = port_of(own_kafka.bootstrap_servers)
    # A topic may take as long as a start.
    monkeypatch.setattr(own_kafka, "_start_timeout_s", 0.5)
    own_kafka.pause()
    try:
        assert find_cluster("127.0.0.1", port) is None
        with pytest.raises(TransportError, match="within 500 ms"):
            own_kafka.create_topic("late")
    finally:
        own_kafka.resume()
    assert becomes_true(lambda: find_cluster("127.0.0.1", port) is not None)


@pytest.mark.full("Life of the embedded broker")
def test_a_paused_broker_can_be_stopped(own_kafka: EmbeddedKafka) -> None:
    own_kafka.pause()
    own_kafka.stop()
    assert not own_kafka.running


def test_starting_a_broker_that_runs_changes_nothing(own_kafka: EmbeddedKafka) -> None:
    pid = own_kafka.pid
    own_kafka.start()
    assert own_kafka.pid == pid


@pytest.mark.full("Life of the embedded broker")
def test_kept_classes_are_used_and_a_file_that_holds_none_does_no_harm(
    own_kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "classes.jsa"
    archive.write_bytes(b"no archive")
    monkeypatch.setattr("pyspark_kafka.testing.embedded_kafka.class_archive", lambda *_: archive)
    own_kafka.restart()
    command = subprocess.run(
        ["ps", "-ww", "-o", "args=", "-p", str(own_kafka.pid)], capture_output=True, text=True, check=True
    )
    assert f"-XX:SharedArchiveFile={archive} " in command.stdout


def test_two_brokers_are_two_clusters(own_kafka: EmbeddedKafka, kafka: EmbeddedKafka) -> None:
    own_kafka.create_topic("mine")
    assert partition_counts(own_kafka.bootstrap_servers, "mine") == {"mine": 1}
    assert "mine" not in partition_counts(kafka.bootstrap_servers)


def test_given_properties_and_port_are_used(tmp_path: Path) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    broker = EmbeddedKafka(default_partitions=4, port=port, properties={"message.max.bytes": "123456"})
    with broker:
        assert broker.bootstrap_servers == f"127.0.0.1:{port}"
        broker.create_topic("four")
        assert partition_counts(broker.bootstrap_servers, "four") == {"four": 4}
        assert "message.max.bytes = 123456" in broker.log
    assert not list(tmp_path.iterdir())


@pytest.mark.full("Life of the embedded broker")
def test_data_in_a_directory_of_ones_own_outlive_the_broker(tmp_path: Path) -> None:
    with EmbeddedKafka(data_dir=tmp_path / "data") as broker:
        broker.create_topic("kept")
    with EmbeddedKafka(data_dir=tmp_path / "data") as broker:
        assert partition_counts(broker.bootstrap_servers) == {"kept": 1}


def test_a_port_that_is_taken_is_one_clear_error(kafka: EmbeddedKafka) -> None:
    port = port_of(kafka.bootstrap_servers)
    with pytest.raises(SetupError, match=rf"\[PORT_IN_USE\].*127\.0\.0\.1:{port}"):
        EmbeddedKafka(port=port).start()


@pytest.mark.full("Life of the embedded broker")
def test_a_chosen_port_that_gets_taken_is_chosen_again(kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = kafka._address
    choices = iter([taken])
    monkeypatch.setattr(
        "pyspark_kafka.testing.embedded_kafka.choose_ports",
        lambda port, listeners: next(choices, None) or choose_ports(port, listeners),
    )
    with EmbeddedKafka() as broker:
        assert broker.bootstrap_servers != kafka.bootstrap_servers
        assert broker.running


def test_a_broker_that_does_not_start_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    broker = EmbeddedKafka(properties={"log.segment.bytes": "none"})
    with pytest.raises(SetupError, match=r"(?s)\[BROKER_NOT_STARTED\].*Invalid value none for configuration"):
        broker.start()
    assert not list(tmp_path.iterdir())
    with pytest.raises(SetupError, match="BROKER_NOT_RUNNING"):
        broker.create_topic("any")


@pytest.mark.full("Life of the embedded broker")
def test_killed_broker_leaves_nothing_that_java_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with EmbeddedKafka() as broker:
        broker.create_topic("compressed")
        produce(broker.bootstrap_servers, "compressed", [Record(None, b"v" * 100, 0)], compression_type="lz4")
        # A library of Java's, for which brokers need a file.
        assert list(tmp_path.rglob("liblz4-java-*.so"))
        broker.kill()
    assert not list(tmp_path.iterdir())


def test_a_broker_too_slow_to_start_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SetupError, match=r"did not serve clients within 0\.1 s"):
        EmbeddedKafka(start_timeout_s=0.1).start()
    assert not list(tmp_path.iterdir())


@pytest.mark.full("Life of the embedded broker")
def test_a_broker_nobody_holds_any_more_is_ended() -> None:
    broker = EmbeddedKafka().start()
    pid, gone = broker.pid, weakref.ref(broker)
    del broker
    collect_quietly()
    assert gone() is None
    assert not is_alive(pid)


@pytest.mark.full("Life of the embedded broker")
def test_closing_twice_is_fine_and_starting_after_it_gives_an_empty_broker() -> None:
    broker = EmbeddedKafka().start()
    broker.create_topic("gone")
    broker.close()
    broker.close()
    with broker:
        assert partition_counts(broker.bootstrap_servers) == {}


@pytest.mark.full("Life of the embedded broker")
@pytest.mark.parametrize(
    ("then", "sent"),
    [
        pytest.param(WAIT, signal.SIGKILL, id="killed"),
        pytest.param(WAIT, signal.SIGTERM, id="terminated"),
        pytest.param(WAIT, signal.SIGINT, id="interrupted"),
        pytest.param("kafka.pause(); " + WAIT, signal.SIGKILL, id="killed-with-a-paused-broker"),
        pytest.param("kafka.stop(); print(flush=True); " + WAIT, signal.SIGKILL, id="killed-with-a-stopped-broker"),
        pytest.param(FORKED_CHILD + WAIT, signal.SIGKILL, id="killed-with-a-forked-child-left"),
        pytest.param("os._exit(1)", None, id="exited-hard"),
        pytest.param("", None, id="ended"),
    ],
)
def test_however_a_program_ends_its_broker_and_files_go(then: str, sent: signal.Signals | None) -> None:
    with closing(Program(then)) as program:
        if sent is not None:
            # To the program alone, as `kill` does.
            program.process.send_signal(sent)
        program.process.wait(120)
        assert program.leaves_nothing()


@pytest.mark.full("Life of the embedded broker")
def test_ctrl_c_reaches_the_application_first() -> None:
    then = """
signal.signal(signal.SIGINT, lambda *_: (print(kafka.running, flush=True), os._exit(0)))
print("waiting", flush=True)
time.sleep(600)
"""
    with closing(Program(then)) as program:
        assert program.process.stdout is not None
        assert program.process.stdout.readline() == "waiting\n"
        # A terminal's Ctrl-C goes to the whole process group.
        program.process.send_signal(signal.SIGINT)
        assert program.process.stdout.readline() == "True\n"
        program.process.wait(120)
        assert program.leaves_nothing()


@pytest.mark.full("Life of the embedded broker")
def test_a_killed_supervisor_takes_the_broker_with_it() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells a child of its parent's death")
    broker = EmbeddedKafka().start()
    home, process = broker._home, broker._process
    assert home is not None
    assert process is not None
    process._supervisor.kill()
    assert becomes_true(lambda: not is_alive(broker.pid))
    with pytest.raises(SetupError, match="SUPERVISOR_LOST"):
        broker.stop()
    broker.close()
    assert not home.exists()
