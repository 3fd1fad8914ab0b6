"""`pyspark-kafka transactions` against scripted brokers: texts, exit codes, what must not be done."""

from __future__ import annotations

import io
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.protocol.admin import DescribeTransactionsRequest, ListTransactionsRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from rich.console import Console
from typer.testing import Result

from kit.fakes.tcp_cluster import TcpCluster
from kit.fakes.transactions import coordinator, describing, listing
from kit.programs.cli import invoke
from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._client.client.transactions.inspection import TransactionDescription, TransactionState
from pyspark_kafka._client.client.transactions.open_transaction import OpenTransaction
from pyspark_kafka._client.client.transactions.owner import TransactionalId
from pyspark_kafka._connector.sink.commit_marker import CommitMarker
from pyspark_kafka._ops.cli.transactions import text as transaction_text
from pyspark_kafka._ops.cli.transactions.text import partitions_text
from pyspark_kafka.errors import DeadlineError, printable


@pytest.fixture
def cluster() -> Iterator[TcpCluster]:
    with TcpCluster() as cluster:
        cluster.script(FindCoordinatorRequest, coordinator(0))
        yield cluster


def run(cluster: TcpCluster, command: str, *options: str, answer: str = "") -> Result:
    host, port = cluster.address(0)
    return invoke("transactions", command, "--bootstrap-servers", f"{host}:{port}", *options, answer=answer)


def test_listing_without_open_transactions_is_one_sentence_and_an_empty_list_for_programs(cluster: TcpCluster) -> None:
    cluster.script(ListTransactionsRequest, listing())
    done = run(cluster, "list")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "No open transaction, among the transactional ids that this user may describe.\n"
    assert run(cluster, "list", "--all").stdout.startswith("No transaction, among the")
    assert run(cluster, "list", "--json").stdout == "[]\n"


_NOT_WRITTEN = "its markers are not written yet"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("Empty", "The transactional id 'a' has no open transaction (state Empty)."),
        ("CompleteAbort", "The transactional id 'a' has no open transaction (state CompleteAbort)."),
        ("PrepareCommit", f"not aborted (state PrepareCommit). It is being committed already; {_NOT_WRITTEN}."),
        ("PrepareAbort", f"not aborted (state PrepareAbort). It is being aborted already; {_NOT_WRITTEN}."),
        ("NewerThanUs", "not aborted (state Unknown). This version of pyspark-kafka does not know the state."),
    ],
)
def test_abort_leaves_alone_transactions_that_it_cannot_abort(cluster: TcpCluster, state: str, said: str) -> None:
    # The fake brokers do not know InitProducerId: to ask would be an error.
    cluster.script(DescribeTransactionsRequest, describing({"a": state}))
    done = run(cluster, "abort", "a", "--yes")
    assert (done.exit_code, done.stderr) == (1, "")
    assert done.stdout.endswith(f"{said} Nothing was done.\n")


def test_a_transaction_that_went_on_while_the_user_was_asked_is_left_alone(cluster: TcpCluster) -> None:
    cluster.script(DescribeTransactionsRequest, describing({"a": "Ongoing"}), describing({"a": "CompleteCommit"}))
    done = run(cluster, "abort", "a", answer="y\n")
    assert done.exit_code == 1
    assert done.stdout.endswith(
        "The transaction has changed meanwhile (now: state CompleteCommit, epoch 3). Nothing was done; list it again.\n"
    )
    cluster.script(DescribeTransactionsRequest, describing({"a": "Ongoing"}), describing({}, {"a": 105}))
    assert "(now: gone)" in run(cluster, "abort", "a", "--yes").stdout


def test_an_abort_whose_end_is_not_heard_of_says_that_it_may_be_under_way(
    cluster: TcpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unheard(owner: TransactionalId) -> OpenTransaction:
        raise DeadlineError(f"Taking over '{owner.name}' did not finish.", condition="DEADLINE_EXCEEDED")

    monkeypatch.setattr(TransactionalId, "fence", unheard)
    cluster.script(DescribeTransactionsRequest, describing({"a": "Ongoing"}))
    done = run(cluster, "abort", "a", "--yes")
    assert done.exit_code == 4
    assert said(done.stderr) == (
        "[DEADLINE_EXCEEDED] The abort may be decided already and take effect soon; `pyspark-kafka transactions "
        "list` shows it: Taking over 'a' did not finish."
    )


def test_a_missing_right_is_one_sentence_on_stderr(cluster: TcpCluster) -> None:
    cluster.script(DescribeTransactionsRequest, describing({}, {"a": 53}))
    done = run(cluster, "abort", "a", "--yes")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("[TRANSACTIONAL_ID_AUTHORIZATION_FAILED] Describing transactional id 'a' at 127.0.")
    assert done.stderr.count("\n") == 1


def test_brokers_that_cannot_be_reached_are_one_sentence_on_stderr(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers=127.0.0.1:{port}\ndefault.api.timeout.ms=500\n")
    for command in (["list"], ["abort", "a"]):
        done = invoke("transactions", *command, "--config", str(file))
        assert (done.exit_code, done.stdout) == (4, "")
        assert done.stderr.startswith("[BOOTSTRAP_FAILED] No server of option 'kafka.bootstrap.servers' could be used")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--older-than", "soon"], "must be a time span such as"),
        (["--older-than", "5m", "--all"], "an ended transaction is not open for any time"),
    ],
)
def test_options_that_say_nothing_are_refused(cluster: TcpCluster, options: list[str], said: str) -> None:
    done = run(cluster, "list", *options)
    assert done.exit_code == 2
    # Where tests run in CI, typer draws its own errors in colours.
    assert said in " ".join(re.sub(r"\x1b\[[0-9;]*m|│", " ", done.stderr).split())
    assert cluster.connections == 0


def test_partitions_are_shown_as_ranges_and_long_lists_are_cut() -> None:
    def shown(*numbers: int) -> list[str]:
        return partitions_text(TopicPartition("t", number) for number in numbers)

    assert shown() == []
    assert shown(0, 1, 2, 4, 6, 7) == ["t 0-2, 4, 6-7"]
    assert shown(*range(0, 40, 2)) == ["t 0, 2, 4, 6, 8, 10, 12, 14, 16, 18 … of 20"]
    many = partitions_text(TopicPartition(f"t{number:02}", 0) for number in range(12))
    assert many[9:] == ["t09 0", "… and 2 more topics"]


def test_names_cannot_steer_the_terminal(cluster: TcpCluster) -> None:
    assert printable("a\x1b[31mé\n") == r"a\x1b[31mé\n"
    name = "x\x1b[31m[bold]"
    cluster.script(ListTransactionsRequest, listing((name, "Ongoing")))
    cluster.script(DescribeTransactionsRequest, describing({name: "Ongoing"}))
    done = run(cluster, "list")
    assert r"x\x1b[31m[bold]" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\x1b" not in run(cluster, "abort", name, answer="n\n").stdout


def shown_on_a_terminal(width: int, *, markers: dict[str, CommitMarker] | None = None) -> str:
    found = TransactionDescription(
        "id-of-a-sink", TransactionState.ONGOING, 7, 3, 1, "h:1", 60_000, 1_000, (TopicPartition("orders", 0),)
    )
    screen = io.StringIO()
    console = Console(file=screen, width=width, force_terminal=True, color_system=None)
    transaction_text.print_transactions([found], 63_000, markers, console)
    return screen.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")


def test_long_values_are_not_cut_into_cells_on_a_narrow_terminal() -> None:
    assert re.split(r" {2,}", shown_on_a_terminal(200).splitlines()[3].strip()) == [
        "id-of-a-sink",
        "Ongoing",
        "7, epoch 3",
        "1 (h:1)",
        "1970-01-01T00:00:01.000Z (1 m 2 s)",
        "1 m",
        "orders 0",
    ]
    markers = {"id-of-a-sink": CommitMarker("id-of-a-sink", "8c0e", 6, "f")}
    lines = [line.rstrip() for line in shown_on_a_terminal(90, markers=markers).splitlines()]
    assert lines == [
        "id-of-a-sink",
        "  state             Ongoing",
        "  producer          7, epoch 3",
        "  coordinator       1 (h:1)",
        "  open since        1970-01-01T00:00:01.000Z (1 m 2 s)",
        "  timeout           1 m",
        "  topic-partitions  orders 0",
        "  owner             query 8c0e, last committed batch 6 at 1970-01-01T00:00:00.000Z",
    ]


def test_an_age_is_counted_from_the_brokers_time(cluster: TcpCluster) -> None:
    # The scripted transaction began in 1970.
    cluster.script(ListTransactionsRequest, listing(("a", "Ongoing")))
    cluster.script(DescribeTransactionsRequest, describing({"a": "Ongoing"}))
    days = int(time.time() // 86_400)
    assert f"1970-01-01T00:00:01.000Z ({days} d" in run(cluster, "list", "--older-than", "365d").stdout
    assert "No open transaction for longer than" in run(cluster, "list", "--older-than", "36500d").stdout
