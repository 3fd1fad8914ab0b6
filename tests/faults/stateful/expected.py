"""What each stateful query must have written, computed in plain Python from the records. Pure.

A result is a counter of rows as texts. Modes that write a window again and again, update and complete, are computed for
each micro-batch, because a state that was lost or applied twice shows in any of them.
"""

from __future__ import annotations

from collections import Counter

from faults.stateful.events import JOIN_S, STEP_S, WINDOW_S, Event, left_events, right_events

Rows = Counter[str]


def expected(query: str, batches: int) -> Rows:
    """Return the rows that a query writes over all its micro-batches.

    Args:
        query: one of `queries.py`.
        batches: how many micro-batches there are before the one that reads the last records.
    """
    left, right = left_events(batches), right_events(batches)
    if query in {"inner", "outer"}:
        return _joined(left, right, outer=query == "outer")
    computed = {"update": _updates, "complete": _completes, "dedup": _distinct, "state": _states}
    return computed.get(query, _closed)(left)


def _windows(events: list[Event]) -> Rows:
    """Count by window and key."""
    return Counter(f"{event.at_s // WINDOW_S * WINDOW_S} {event.key}" for event in events)


def _texts(counts: Rows) -> Rows:
    return Counter(f"{window} {count}" for window, count in counts.items())


def _closed(events: list[Event]) -> Rows:
    """Each window once, without late rows; that of the last records stays open."""
    return _texts(_windows([event for event in events if not event.late and not event.last]))


def _updates(events: list[Event]) -> Rows:
    """In each micro-batch the windows that it changes."""
    kept = [event for event in events if not event.late]
    written: Rows = Counter()
    for batch in sorted({event.batch for event in kept}):
        changed = _windows([event for event in kept if event.batch == batch])
        counts = _windows([event for event in kept if event.batch <= batch])
        written += _texts(Counter({window: counts[window] for window in changed}))
    return written


def _completes(events: list[Event]) -> Rows:
    """In each micro-batch all windows; nothing is ever late."""
    written: Rows = Counter()
    for batch in sorted({event.batch for event in events}):
        written += _texts(_windows([event for event in events if event.batch <= batch]))
    return written


def _distinct(events: list[Event]) -> Rows:
    return Counter(event.id for event in events if not event.late and not event.again)


def _joined(left: list[Event], right: list[Event], *, outer: bool) -> Rows:
    written: Rows = Counter()
    for event in left:
        if event.late or event.last:
            continue
        matches = [
            other
            for other in right
            if not other.late and other.name == event.name and 0 <= other.at_s - event.at_s <= JOIN_S
        ]
        written.update(f"{event.name} {other.at_s}" for other in matches)
        if outer and not matches:
            written[f"{event.name} none"] += 1
    return written


def _states(events: list[Event]) -> Rows:
    """Each row with its number within its key, and each step of a key when it is over, with its number of rows."""
    kept = [event for event in events if not event.late]
    totals = Counter(event.key for event in kept)
    written = Counter(f"row {key} {number}" for key, total in totals.items() for number in range(1, total + 1))
    steps = Counter(f"step {event.key} {event.at_s // STEP_S}" for event in kept if not event.last)
    return written + _texts(steps)
