"""Plays any number of histories of the model test.

python -m perf.model --histories 1000000   from a random seed, which it prints
python -m perf.model --seed 485            one history, line by line
python -m perf.model --mutants             intentional defects: which ones the test detects
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import random
import sys
import time
from collections import Counter

from tests.model.history import Failed, run

CHUNK = 250


def _chunk(first: int) -> tuple[Counter[str], int, str]:
    seen: Counter[str] = Counter()
    calls = 0
    for seed in range(first, first + CHUNK):
        try:
            history = run(seed)
        except Failed as failed:
            return seen, calls, str(failed)
        seen += history.seen
        calls += history.calls
    return seen, calls, ""


def histories(count: int, first: int, workers: int) -> int:
    """Plays ``count`` histories and prints the progress; returns the exit code."""
    started, done, calls = time.monotonic(), 0, 0
    seen: Counter[str] = Counter()
    print(f"seeds {first} to {first + count - 1}", flush=True)
    with multiprocessing.Pool(workers) as pool:
        for counts, chunk_calls, failure in pool.imap_unordered(_chunk, range(first, first + count, CHUNK)):
            if failure:
                print(f"\n{failure}")
                return 1
            done, calls, seen = done + CHUNK, calls + chunk_calls, seen + counts
            if done % (CHUNK * 20) == 0:
                print(f"{done:>9} histories, {calls:>11} AWS calls, {time.monotonic() - started:7.0f} s", flush=True)
    print(f"\n{done} histories, {calls} AWS calls, {time.monotonic() - started:.0f} s: no rule broken")
    for event, times in sorted(seen.items()):
        print(f"  {times:>9}  {event}")
    in_time, late = seen["recovery known in time"], seen["recovery known late"]
    if in_time:
        print(f"recoveries known to 5 s where at most 1 % of events are lost: {in_time / (in_time + late):.2%}")
    return 0


def replay(seed: int) -> int:
    """Plays one history and prints its lines; returns the exit code."""
    try:
        print("\n".join(run(seed, traced=True).trace))
    except Failed as failed:
        print("\n".join(failed.trace))
        print(f"\n{failed}")
        return 1
    return 0


def mutants(most: int) -> int:
    """Searches for every defect of the model's list; returns the exit code, 0 if the test detects all."""
    import pytest

    from tests.model.mutants_of_verdicts import MUTANTS

    missed = 0
    for mutant, focus in MUTANTS.items():
        with pytest.MonkeyPatch.context() as patch:
            mutant(patch)
            failure = ""
            for seed in range(most):
                try:
                    run(seed, prepare=focus)
                except Failed as failed:
                    failure = str(failed).splitlines()[0]
                    break
        missed += not failure
        print(f"{mutant.__name__:<48} {failure or f'NOT DETECTED in {most} histories'}", flush=True)
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.model", description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=100_000, help="number of histories (default 100000)")
    parser.add_argument("--first", type=int, help="the first seed (default: random, so that every run is new)")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count(), help="processes (default: cores)")
    parser.add_argument("--seed", type=int, help="play this one history, line by line")
    parser.add_argument("--mutants", action="store_true", help="check which intentional defects the test detects")
    chosen = parser.parse_args()
    logging.disable(logging.ERROR)  # faults are the purpose here, and warnings about them cost time
    if chosen.seed is not None:
        return replay(chosen.seed)
    if chosen.mutants:
        return mutants(5000)
    first = random.SystemRandom().randrange(10**6, 10**12) if chosen.first is None else chosen.first
    return histories(chosen.histories, first, chosen.workers)


if __name__ == "__main__":
    sys.exit(main())
