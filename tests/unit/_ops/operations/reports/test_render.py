"""What a page says about a query."""

from __future__ import annotations

import re

import pytest

from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.operations.reports.page import render_page
from pyspark_kafka._ops.operations.reports.render import ReportData, build_page
from pyspark_kafka._ops.operations.reports.timeline import BatchStats

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
_MINUTE = 60_000
_HOSTILE = "</script><script>alert(1)</script>"


def report(**changed: object) -> ReportData:
    given: dict[str, object] = {
        "title": "Query q",
        "place": "checkpoint /c",
        "batches": [
            BatchStats(0, 0, 2_000, True, 100, {"addBatch": 1_500}, "run"),
            BatchStats(1, 10 * _MINUTE, 10 * _MINUTE + 4_000, True, 900, {"addBatch": 3_000, "walCommit": 10}, "run"),
        ],
        "made_ms": 11 * _MINUTE,
        "positions": {TopicPartition("t", 0): 950, TopicPartition("t", 1): 50},
        "rows": {TopicPartition("t", 0): 950, TopicPartition("t", 1): 50},
    }
    return ReportData(**{**given, **changed})  # type: ignore[arg-type]


def test_page_has_the_figures_of_the_batches() -> None:
    page = build_page(report())
    assert {each.name: each.value for each in page.tiles} == {
        "batches": "2",
        "rows": "1,000",
        "rows per second, first to last": "1.66",
        "median time of a batch": "3 s",
        "last batch": "56 s ago",
        "records behind": "unknown",
    }


def test_page_has_no_number_of_rows_if_none_is_known() -> None:
    page = build_page(report(batches=[BatchStats(0, 0, 2_000, True, None)], rows={}))
    tiles = {each.name: each.value for each in page.tiles}
    assert (tiles["rows"], tiles["rows per second, first to last"]) == ("unknown", "unknown")


def test_page_names_gaps_and_skew() -> None:
    page = build_page(report())
    told = " ".join(page.sentences)
    assert "The longest pause was 9 m 58 s" in told
    assert "batch 1 then read 900 rows" in told
    assert "Partition t-0 has 95% of all rows" in told
    gaps, partitions = page.tables
    assert [row[1:] for row in gaps.rows] == [("9 m 58 s", "0", "1", "900", "no")]
    assert [row[:3] for row in partitions.rows] == [("t", "0", "950"), ("t", "1", "50")]


def test_page_names_a_batch_in_which_the_driver_may_have_been_killed() -> None:
    times = [(number * 1_000, number * 1_000 + 500) for number in range(4)] + [(5_000, 76_000), (77_000, 77_500)]
    batches = [BatchStats(number, *times[number], True, 50) for number in range(6)]
    page = build_page(report(batches=batches))
    assert any(each.startswith("Batch 4 took 1 m 11 s, from ") for each in page.sentences)
    (row,) = page.tables[0].rows
    assert (row[2], row[3], row[5]) == ("4", "4", "perhaps")


def stopped(after_ms: int = 67 * _MINUTE, **changed: object) -> ReportData:
    """Return the report of a query whose last batch ended that long ago, after a batch every 10 s."""
    batches = [BatchStats(number, number * 10_000, number * 10_000 + 900, True, 50) for number in range(5)]
    return report(**{"batches": batches, "made_ms": 40_900 + after_ms, **changed})


def test_headline_says_that_a_query_with_records_behind_seems_to_be_down() -> None:
    page = build_page(stopped(behind={P0: 1_200, P1: 0}))
    assert page.headline == "The query seems to be down: no batch for 1 h 7 m, and 1,200 records behind"
    assert page.sentences[0].startswith("Usually a batch begins every 10 s. A stopped query, a finished availableNow")
    assert f'<p class="headline">{page.headline}</p>' in render_page(page)


def test_headline_of_a_query_whose_records_are_unknown_says_only_what_is_known() -> None:
    for behind in (None, {P0: 0}):
        page = build_page(stopped(behind=behind))
        assert page.headline == "No batch for 1 h 7 m"
        assert page.sentences[0].startswith(
            "Usually a batch begins every 10 s. The query is down, or has ended, or had"
        )


def test_headline_names_a_batch_that_has_not_finished() -> None:
    batches = [BatchStats(0, 0, 900, True, 50), BatchStats(1, 10_000, None, False, 50)]
    page = build_page(report(batches=batches, made_ms=10_000 + 5 * _MINUTE))
    assert page.headline == "Batch 1 has not finished for 5 m"
    assert page.sentences[0] == "Usually a batch begins every 10 s. The batch is slow, or the query ended within it."


def test_page_has_no_headline_if_no_records_wait() -> None:
    page = build_page(stopped(behind={P0: 0, P1: 0}))
    assert (page.headline, page.sentences[0]) == ("", "No batch for 1 h 7 m, and no records wait.")


def test_page_has_no_headline_if_the_query_has_paused_longer_before() -> None:
    batches = [
        BatchStats(number, at, at + 900, True, 50) for number, at in enumerate((0, 10_000, 20_000, 90 * _MINUTE))
    ]
    page = build_page(report(batches=batches, made_ms=157 * _MINUTE, behind={P0: 9, P1: 0}))
    assert page.headline == ""
    assert (
        page.sentences[0] == "No batch for 1 h 6 m. Usually a batch begins every 10 s. The longest time was 1 h 29 m."
    )


def test_page_of_a_query_whose_batch_is_recent_has_no_headline() -> None:
    page = build_page(stopped(50_000, behind={P0: 9, P1: 9}))
    assert page.headline == ""
    assert not any("No batch" in each for each in page.sentences)
    assert 'class="headline"' not in render_page(page)


def test_titles_of_plots_are_text_of_the_page_that_wraps() -> None:
    page = build_page(report())
    text = render_page(page)
    for plot in page.plots.values():
        title = plot.layout.title.text
        assert text.count(title) == 1
        assert f"<h2>{title}</h2>" in text


def test_cells_of_tables_have_their_headings_for_a_phone() -> None:
    page = build_page(report())
    text = render_page(page)
    for table in page.tables:
        assert table.rows
        for row in table.rows:
            cells = [f'data-heading="{name}"' for name in table.headings]
            found = re.findall(r"<td (data-heading=\"[^\"]*\")[^>]*>([^<]*)</td>", text)
            assert set(zip(cells, row, strict=True)) <= set(found)
            assert len(found) == sum(len(each.rows) * len(each.headings) for each in page.tables)


def test_page_says_which_batch_a_restart_runs_again() -> None:
    page = build_page(report(batches=[BatchStats(4, 0, None, False, 5)]))
    assert "Batch 4 is begun and not finished" in " ".join(page.sentences)


def test_page_says_of_no_batch_that_a_rewind_has_passed_over_that_it_runs_again() -> None:
    page = build_page(report(batches=[BatchStats(4, 0, None, False, None, is_passed_over=True)]))
    assert not any("a restart runs it again" in each for each in page.sentences)


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        (None, "unknown"),
        ({}, "unknown"),
        ({P0: 0}, "unknown"),
        ({P0: 7}, "7, 1 partition unknown"),
        ({P0: 7, P1: 0}, "7"),
        ({P0: 0, P1: 0}, "0"),
    ],
)
def test_records_behind_are_not_0_where_partitions_are_unknown(
    behind: dict[TopicPartition, int] | None, said: str
) -> None:
    page = build_page(report(behind=behind, positions={P0: 1, P1: 1}))
    assert next(tile.value for tile in page.tiles if tile.name == "records behind") == said


def test_partitions_that_are_most_behind_come_first() -> None:
    behind = {TopicPartition("t", 0): 1, TopicPartition("t", 1): 7_000}
    page = build_page(report(behind=behind))
    assert [row[1] for row in page.tables[1].rows] == ["1", "0"]
    assert "behind" in page.plots
    assert next(each.value for each in page.tiles if each.name == "records behind") == "7,001"


def test_query_without_batches_has_a_page() -> None:
    page = build_page(report(batches=[], positions={}, rows={}))
    text = render_page(page)
    assert "None: no pause, and no batch, was longer" in text


def test_page_needs_nothing_from_elsewhere() -> None:
    text = render_page(build_page(report()))
    head = text[: text.index("<style>")]
    assert "src=" not in head
    assert "<link" not in text
    assert "<script src=" not in text
    for name in ("rate", "rows", "phases", "skew"):
        assert f'id="plot-{name}"' in text


def test_names_of_others_cannot_leave_their_place() -> None:
    hostile = TopicPartition(_HOSTILE, 0)
    given = report(
        title=_HOSTILE,
        place=_HOSTILE,
        sentences=(_HOSTILE,),
        warnings=(_HOSTILE,),
        positions={hostile: 1},
        rows={hostile: 1},
        behind={hostile: 1},
        batches=[BatchStats(0, 0, 1, True, 1, {_HOSTILE: 1})],
    )
    assert "<script>alert(1)" not in render_page(build_page(given))


def test_many_batches_and_partitions_make_no_larger_page() -> None:
    few = len(render_page(build_page(report())))
    partitions = {TopicPartition("topic", number): number for number in range(10_000)}
    batches = [BatchStats(number, number * 1_000, number * 1_000 + 500, True, 3) for number in range(50_000)]
    page = build_page(report(batches=batches, positions=partitions, rows=partitions, behind=partitions))
    assert "9,800 more are left out" in page.tables[1].note
    assert len(render_page(page)) < few + 300_000
