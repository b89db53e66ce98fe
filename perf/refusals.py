"""Measures how long the API takes to refuse large requests.

    python -m perf.refusals [--repeat 3]

The API's function runs in this process and refuses every body before it calls AWS. The bodies have 2 MiB, the most that
the API accepts, or as many values as a file may have. Each line gives the processor time of the fastest request,
on one core. Exits with 1 if one takes a second, other than that of the most cells.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

MOST_SECONDS = 1.0
LARGEST = 2 * 1024 * 1024
PATH = "/benchmarks/estimate"
CELLS = "the most cells"
"""The request that may take more than a second: its work is that of the largest run that is allowed."""


def filled(begin: str, piece: str, end: str, numbered: bool = False) -> str:
    """Returns a body with as many pieces as fit; ``{n}`` in a piece stands for its number."""
    pieces, size = list[str](), len(begin) + len(end)
    while size < LARGEST:
        pieces.append(piece.replace("{n}", f"{len(pieces):x}") if numbered else piece)
        size += len(pieces[-1]) + 1
    return begin + ",".join(pieces[:-1]) + end


def bodies() -> Iterator[tuple[str, str]]:
    """Yields what is wrong, and a body."""
    from tests.unit.account.bench import FILE

    rest = json.dumps(FILE)[1:-1]
    yield "2 MiB of empty phases", filled(f'{{"definition":{{{rest},"phases":[', "{}", "]}}")
    yield "2 MiB of fleets", filled(f'{{"definition":{{{rest},"fleets":{{', '"f{n}":{}', "}}}", numbered=True)
    yield "2 MiB of unknown keys", filled(f'{{"definition":{{{rest},', '"k{n}":1', "}}", numbered=True)
    yield "2 MiB of numbers", filled('{"definition":{"parameters":{"a":[', "1", "]}}}")
    yield "2 MiB of brackets", "[" * LARGEST
    yield "2 MiB of digits", '{"definition":{"budget":' + "9" * (LARGEST - 30) + "}}"
    yield "2 MiB of text", json.dumps({"definition": FILE | {"name": "x" * (LARGEST - 1000)}, "files": {}})
    yield "2 MiB of files that are no Base64", json.dumps({"definition": FILE, "files": {"a": "!" * (LARGEST - 1000)}})
    yield "2 MiB of halves of characters", filled('{"definition":{"a":[', '"\\ud800"', "]}}")
    many: dict[str, Any] = {
        "phases": [{}] * 19_900,
        "fleets": {f"f{n}": {} for n in range(19_900)},
        "parameters": {f"P{n}": 1 for n in range(19_900)},
        "sizes": {"smoke": {f"parameters.q{n}": 1 for n in range(19_900)}},
        "scale": {f"s{n}": {f"parameters.q{k}": 1 for k in range(390)} for n in range(50)},
    }
    for key, value in many.items():
        yield f"19,900 values in {key}", json.dumps({"definition": FILE | {key: value}, "files": {"read.py": ""}})
    yield CELLS, json.dumps({"definition": FILE | many_cells(FILE["phases"][0]), "files": {"read.py": ""}})


def many_cells(phase: dict[str, Any]) -> dict[str, Any]:
    """Returns the keys of a small file of the most work: 200 cells of 50 phases in each of 20 sizes."""
    return {
        "expires_after": "168h",
        "phases": [phase | {"name": f"p{n}", "measured": "1s", "timeout": "9s"} for n in range(50)],
        "matrix": {"parameters.threads": list(range(200))},
        "sizes": {f"s{n}": {"description": str(n)} for n in range(20)},
        "parallel": 50,
    }


def request(body: str) -> dict[str, Any]:
    return {
        "resource": PATH,
        "path": PATH,
        "httpMethod": "POST",
        "headers": {"Content-Type": "application/json"},
        "multiValueHeaders": {},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "requestContext": {"requestId": "r", "stage": "v1", "identity": {"userArn": "arn:aws:iam::1:user/a"}},
        "body": body,
        "isBase64Encoded": False,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="number of repetitions, of which the fastest counts")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        from tests.unit.account.account import CONTEXT, SETTINGS
        from troop.shared.variables import Variable

        file = Path(folder) / "deployment.json"
        file.write_text(json.dumps(SETTINGS | {"benchmarks": True}))
        os.environ |= {variable.value: "unused" for variable in Variable}
        os.environ |= {Variable.DEPLOYMENT_FILE.value: str(file), "AWS_DEFAULT_REGION": "eu-central-1"}
        logging.disable(logging.CRITICAL)
        from handlers import api

        slowest = 0.0
        for name, body in bodies():
            times = []
            for _ in range(options.repeat):
                began = time.process_time()
                answer = api.handler(request(body), CONTEXT)
                times.append(time.process_time() - began)
                if answer["statusCode"] != 400:
                    sys.exit(f"{name}: {answer['statusCode']} {answer['body'][:300]}")
            slowest = max(slowest, 0 if name == CELLS else min(times))
            print(f"{name:<36}{len(body):>10,} characters{min(times):>8.2f} s{len(answer['body']):>9,} answered")
    return slowest >= MOST_SECONDS


if __name__ == "__main__":
    sys.exit(main())
