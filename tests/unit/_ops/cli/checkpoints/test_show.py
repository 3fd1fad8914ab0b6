from __future__ import annotations

import json
from pathlib import Path

from kit.checkpoint_files import QUERY_ID, write_checkpoint
from kit.programs.cli import invoke

ENDS = [{"t": {"0": 5, "1": 3}}, {"t": {"0": 9, "1": 3}}]


def test_explain_says_where_the_query_stands_and_what_a_restart_does(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS, finished=1)
    result = invoke("checkpoint", "explain", str(tmp_path))
    assert result.exit_code == 0
    first, second, third, empty, *batches = result.output.splitlines()
    assert QUERY_ID in first
    assert "Batch 0 is the last one that is finished." in second
    assert "A restart runs it again, from the same start to the same ends: at most 4 records." in third
    assert empty == ""
    assert batches == [
        "Batch 0: planned 2026-01-01T00:00:00.000Z, finished, its start is not kept.",
        "Batch 1: planned 2026-01-01T00:00:10.000Z, not finished, at most 4 records.",
    ]


def test_explain_shows_the_batches_that_are_asked_for(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {"0": number}} for number in range(30)])

    def shown(*arguments: str) -> int:
        return invoke("checkpoint", "explain", *arguments, str(tmp_path)).output.count("\nBatch ")

    assert (shown(), shown("--batches", "3"), shown("--all")) == (10, 3, 30)


def test_explain_as_json_has_the_batches_and_positions(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS, finished=1)
    result = invoke("checkpoint", "explain", "--json", str(tmp_path))
    told = json.loads(result.stdout)
    assert (told["query_id"], told["kind"], told["unfinished"]) == (QUERY_ID, "micro_batch", 1)
    assert told["sources"][0]["position"] == {"t": {"0": 5, "1": 3}}
    assert told["sources"][0]["end_of_unfinished"] == {"t": {"0": 9, "1": 3}}
    assert [batch["offsets"] for batch in told["batches"]] == [None, 4]


def test_show_has_facts_directories_positions_and_batches(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS, finished=1)
    result = invoke("checkpoint", "show", str(tmp_path))
    assert result.exit_code == 0
    for text in (QUERY_ID, "micro-batches", "offsets", "position", "not finished"):
        assert text in result.output
    told = json.loads(invoke("checkpoint", "show", "--json", str(tmp_path)).stdout)
    assert {"directory": "offsets", "files": 2, "checksums": 0, "temporary": 0, "directories": 0} in told["directories"]


def test_show_cuts_long_lists_of_partitions_and_says_so(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, [{"t": {str(number): 1 for number in range(70)}}])
    result = invoke("checkpoint", "show", str(tmp_path))
    assert "20 more partitions; --all shows them." in result.output
    assert "more partitions" not in invoke("checkpoint", "show", "--all", str(tmp_path)).output


def test_status_is_3_if_a_file_cannot_be_read(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "offsets" / "1").write_text("v9\n{}\n{}")
    for command in ("show", "explain"):
        result = invoke("checkpoint", command, str(tmp_path))
        assert result.exit_code == 3
        assert "Not read: offsets/1 of checkpoint" in result.stderr
        assert "was written by a newer version" in result.stderr


def test_status_is_2_if_there_is_no_checkpoint(tmp_path: Path) -> None:
    for location in (str(tmp_path), str(tmp_path / "missing"), "s4://nowhere"):
        result = invoke("checkpoint", "explain", location)
        assert result.exit_code == 2
        assert result.stderr.startswith(("[CHECKPOINT_NOT_FOUND]", "[CHECKPOINT_LOCATION_INVALID]"))


def test_status_is_0_for_a_checkpoint_of_another_source(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ['{"logOffset":3}'])
    result = invoke("checkpoint", "explain", str(tmp_path))
    assert result.exit_code == 0
    assert 'Source 0 is not Kafka\'s; its offset is {"logOffset":3}.' in result.output
