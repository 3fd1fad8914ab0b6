"""A plan of `on_cluster.py`, a program for clusters, and its result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, consume_committed, produce

PROGRAM = str(Path(__file__).with_name("on_cluster.py"))
_ROWS = 100


class ClusterPlan:
    """A plan, its topics, and what the program has noted.

    Args:
        servers: of Kafka.
        make_topic: makes the topics.
        place: a folder that the program reaches.
        checkpoints: the location of the checkpoints of its queries.
        settings: further keys of the plan.

    Attributes:
        file: the plan, for the program.
        rows: the values of the source.
    """

    def __init__(self, servers: str, make_topic: TopicMaker, place: Path, checkpoints: str, **settings: bool) -> None:
        self._servers, self._notes = servers, place / "notes"
        self._notes.mkdir()
        self._topics = {name: make_topic(partitions=2) for name in ("source", "batch", "micro", "continuous")}
        self.rows: list[bytes] = []
        self.add_rows()
        plan: dict[str, Any] = {"servers": servers, "checkpoints": checkpoints, "notes": str(self._notes)}
        plan |= {**self._topics, "held": False, "endless": False, **settings}
        path = place / "plan.json"
        path.write_text(json.dumps(plan))
        self.file = str(path)

    def add_rows(self) -> None:
        """Write records to the source."""
        more = [b"%d" % number for number in range(len(self.rows), len(self.rows) + _ROWS)]
        produce(self._servers, self._topics["source"], [Record(None, value) for value in more])
        self.rows += more

    def copied(self, query: str) -> list[bytes]:
        """Return the values that readers of committed records see of a query's output, sorted."""
        return sorted(record.value or b"" for record in consume_committed(self._servers, self._topics[query]))

    def noted(self, name: str) -> str:
        """Return a note of the program; empty if there is none."""
        path = self._notes / name
        return path.read_text() if path.exists() else ""

    def stop(self) -> None:
        """Have the continuous query stop."""
        (self._notes / "stop").touch()

    def judge(self, where: str, *, compiled: bool) -> dict[str, Any]:
        """Check that nothing is lost or duplicated, and where the package was found; return what the program found."""
        first = sorted(self.rows[:_ROWS])
        assert [self.copied(query) for query in ("batch", "micro")] == [first, first]
        assert self.copied("continuous") == sorted(self.rows)
        found: dict[str, Any] = json.loads(self.noted("found"))
        assert found["error"] == ""
        for path, is_compiled in (found["driver"], *found["tasks"]):
            assert where in path
            assert is_compiled is compiled
        executors = [each for each in found["check"] if each["step"] == "executor"]
        assert len(executors) == 2
        assert all(each["facts"]["brokers_reached"] and each["facts"]["driver"]["reached"] for each in executors)
        return found
