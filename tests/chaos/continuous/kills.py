"""What is done to a continuous query: each kill waits until two more epochs are committed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from chaos.continuous.striking import (
    DRIVER_POINTS,
    RECOVERY_POINTS,
    STATE_POINTS,
    TAKEOVER_POINTS,
    TASK_POINTS,
    TRANSACTION_POINTS,
)
from chaos.continuous.world import Killed, KillWorld

RANDOM_MOMENT = "at a random moment"
EXECUTOR = "executor"
# For longer than the driver waits for a word of it, and then it continues where it was.
FROZEN = "task's Python worker, by SIGSTOP"
# A driver waits for tasks that start, however long: a worker that stands still then must continue.
_FROZEN_S = 60.0
WORKER, PROGRAM, WITH_SPARK = "task's Python worker", "driver program", "driver program and its Spark"
IN_TASKS = {**TASK_POINTS, **STATE_POINTS, **TRANSACTION_POINTS}
POINTS = {**IN_TASKS, **DRIVER_POINTS, **RECOVERY_POINTS, **TAKEOVER_POINTS}
# Nobody comes to these but after another kill.
_LEADS_TO = {
    "task_started": "task_row",
    "before_tasks": "task_row",
    "before_fence": "task_row",
    "after_fence": "task_row",
    "before_recommit": "after_prepare",
    "before_recommit_log": "before_commit_log",
}


@dataclass(frozen=True)
class Kill:
    """One kill, or two of which the second is in the recovery from the first.

    Attributes:
        who: dies.
        point: where; empty for a random moment.
    """

    who: str
    point: str = ""

    @property
    def count(self) -> int:
        """How many processes die."""
        return 2 if self.point in _LEADS_TO else 1


AT_LEAST_ONCE = [
    *(Kill(WORKER, point) for point in TASK_POINTS),
    *(Kill(PROGRAM, point) for point in (*DRIVER_POINTS, *RECOVERY_POINTS)),
    Kill(WORKER),
    Kill(WORKER),
]
EXACTLY_ONCE = [
    *AT_LEAST_ONCE,
    *(Kill(WORKER, point) for point in TRANSACTION_POINTS),
    *(Kill(PROGRAM, point) for point in TAKEOVER_POINTS),
]

WITH_STATE = [*EXACTLY_ONCE, *(Kill(WORKER, point) for point in STATE_POINTS)]


def plan(kinds: Sequence[Kill], kills: int, rng: random.Random, executors: int = 0, frozen: int = 0) -> Iterator[Kill]:
    """Return kills, each as often as the others, in random order, until that many have died.

    Args:
        kinds: the kills.
        kills: how many.
        rng: what is random.
        executors: of them, how many of executors, evenly between the others.
        frozen: of them, how many that stand still only, likewise.
    """
    done = 0
    dear = rng.sample([Kill(EXECUTOR)] * executors + [Kill(FROZEN)] * frozen, executors + frozen)
    count = len(dear)
    while True:
        for kill in rng.sample(kinds, len(kinds)):
            if done >= kills:
                return
            if dear and done * (count + 1) >= kills * (count - len(dear) + 1):
                done += 1
                yield dear.pop()
            done += kill.count
            yield kill


def do(world: KillWorld, kill: Kill) -> None:
    """Kill, start again what must be started again, and wait until epochs are committed.

    A program that has a Spark of its own is followed by one that is a client of the server.
    """
    died: list[tuple[Killed, float]] = []
    frozen: threading.Timer | None = None
    if not kill.point:
        time.sleep(world.rng.uniform(0, 0.5))
        if kill.who == FROZEN:
            frozen = threading.Timer(_FROZEN_S, _resume, [world.strike_worker(signal.SIGSTOP)])
            frozen.start()
        else:
            world.strike_worker(signal.SIGKILL, executor=kill.who == EXECUTOR)
        died.append((Killed(kill.who, RANDOM_MOMENT), time.time()))
    else:
        chain = [_LEADS_TO[kill.point], kill.point] if kill.point in _LEADS_TO else [kill.point]
        world.arm(*chain)
        for point in chain:
            moment = world.await_struck(point)
            who = WORKER if point in IN_TASKS else WITH_SPARK if world.has_own_spark else PROGRAM
            died.append((Killed(who, POINTS[point]), moment))
            if who != WORKER:
                world.await_program_end()
                world.start()
    try:
        seconds = world.await_flow(died[-1][1])
    finally:
        if frozen is not None:
            frozen.cancel()
            frozen.function(*frozen.args)
    for each, moment in died:
        each.seconds = died[-1][1] + seconds - moment
    world.killed += [each for each, _ in died]


def _resume(pid: int) -> None:
    # Spark may have killed it meanwhile.
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def rows_of(killed: Sequence[Killed]) -> list[list[object]]:
    """Return the rows of a table: who, where, how often, median and maximum of the time to two epochs."""
    order = {where: number for number, where in enumerate([*POINTS.values(), RANDOM_MOMENT])}
    groups: dict[tuple[str, str], list[float]] = {}
    for each in killed:
        groups.setdefault((each.who, each.where), []).append(each.seconds)
    rows: list[list[object]] = []
    for (who, where), seconds in sorted(groups.items(), key=lambda item: (item[0][0], order.get(item[0][1], 99))):
        ranked = sorted(seconds)
        rows.append([who, where, len(ranked), f"{ranked[len(ranked) // 2]:.1f} s", f"{ranked[-1]:.1f} s"])
    return rows
