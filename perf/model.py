"""Plays any number of histories of the model test.

python -m perf.model --histories 1000000   from a random seed, which it prints
python -m perf.model --lasting ...         the same of histories of lasting faults
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
from functools import partial

from tests.model import history, lasting
from tests.model.history import Failed

CHUNK = 250


def _chunk(is_lasting: bool, first: int) -> tuple[Counter[str], int, list[str]]:
    run = lasting.run if is_lasting else history.run
    seen: Counter[str] = Counter()
    calls = 0
    failures = []
    for seed in range(first, first + CHUNK):
        try:
            played = run(seed)
        except Failed as failed:
            failures.append(str(failed))
            continue
        seen += played.seen
        calls += played.calls
    return seen, calls, failures


def histories(count: int, first: int, workers: int, is_lasting: bool) -> int:
    """Plays ``count`` histories, also after one that breaks a rule, and prints them; returns the exit code."""
    started, done, calls, broken = time.monotonic(), 0, 0, 0
    seen: Counter[str] = Counter()
    print(f"seeds {first} to {first + count - 1}", flush=True)
    with multiprocessing.Pool(workers) as pool:
        for counts, chunk_calls, failures in pool.imap_unordered(
            partial(_chunk, is_lasting), range(first, first + count, CHUNK)
        ):
            broken += len(failures)
            for failure in failures:
                print(f"\n{failure}", flush=True)
            done, calls, seen = done + CHUNK, calls + chunk_calls, seen + counts
            if done % (CHUNK * 20) == 0:
                print(f"{done:>9} histories, {calls:>11} AWS calls, {time.monotonic() - started:7.0f} s", flush=True)
    outcome = f"{broken} broke a rule" if broken else "no rule broken"
    print(f"\n{done} histories, {calls} AWS calls, {time.monotonic() - started:.0f} s: {outcome}")
    for event, times in sorted(seen.items()):
        print(f"  {times:>9}  {event}")
    in_time, late = seen["recovery known in time"], seen["recovery known late"]
    if in_time:
        print(f"recoveries known to 5 s where at most 1 % of events are lost: {in_time / (in_time + late):.2%}")
    return 1 if broken else 0


def replay(seed: int, is_lasting: bool) -> int:
    """Plays one history and prints its lines; returns the exit code."""
    run = lasting.run if is_lasting else history.run
    try:
        print("\n".join(run(seed, traced=True).trace))
    except Failed as failed:
        print("\n".join(failed.trace))
        print(f"\n{failed}")
        return 1
    return 0


def mutants(most: int, is_lasting: bool) -> int:
    """Searches for every defect of the model's list; returns the exit code, 0 if the test detects all."""
    import pytest

    from tests.model import mutants_of_lasting, mutants_of_verdicts

    run = lasting.run if is_lasting else history.run
    every = mutants_of_lasting.MUTANTS if is_lasting else mutants_of_verdicts.MUTANTS
    missed = 0
    for mutant, focus in every.items():
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
    parser.add_argument("--lasting", action="store_true", help="histories of lasting faults, which take minutes")
    parser.add_argument("--mutants", action="store_true", help="check which intentional defects the test detects")
    chosen = parser.parse_args()
    logging.disable(logging.ERROR)  # faults are the purpose here, and warnings about them cost time
    if chosen.seed is not None:
        return replay(chosen.seed, chosen.lasting)
    if chosen.mutants:
        return mutants(5000, chosen.lasting)
    first = random.SystemRandom().randrange(10**6, 10**12) if chosen.first is None else chosen.first
    return histories(chosen.histories, first, chosen.workers, chosen.lasting)


if __name__ == "__main__":
    sys.exit(main())
