"""`troop bench run`: from the file to the results, and all that can come in between."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.bench.against import against
from cli.client.api import Answer
from cli.shared import show, watching
from cli.shared.errors import Exit
from tests.unit.cli.bench_runs import ENDED, ESTIMATE, ID, ONE, ROW, START, TEXT, going, run_document, run_out
from tests.unit.cli.conftest import FakeApi, Run

STEPS = ("launch", "boot", "measure", "collect", "teardown")
LOOKS = (
    run_document("launch"),
    run_document(*STEPS[:3]),
    run_document(*STEPS, "over", results=[ROW], **ENDED),
)


def test_from_the_file_to_the_table_of_results(run: Run, api: FakeApi, file: Path) -> None:
    going(api, *LOOKS)
    result = run("bench", "run", str(file), "--size", "smoke", "--set", "parameters.threads=8", "--key", "k1")
    assert result.exit_code == 0, result.output
    body = {
        "definition": yaml.safe_load(TEXT),
        "size": "smoke",
        "set": {"parameters.threads": 8},
        "files": {"read.py": base64.b64encode(b"print()\n").decode()},
    }
    assert api.calls[:2] == [(*ESTIMATE, body), (*START, {**body, "key": "k1"})]
    copied, first, *lines = result.stdout.splitlines()
    assert copied == "copied to nodes, 8 bytes in all: read.py (8 bytes)"
    assert first == "expected to cost $0.13, at most $1.50"
    assert lines[0].startswith(f"started: {ID}, reads in size smoke: 1 node")
    assert [line.split()[-1] for line in lines[1:6]] == [*STEPS]
    row = next(line for line in lines if "measure" in line and "drivers" in line)
    for shown in ("120,000", "400", "timeout 3, http-503 2", "2.20", "12.3 ms", "11.0 ms", "102 ms", "1,234 ms"):
        assert shown in row
    assert f"{ID} SUCCEEDED (nothing is left of 1 resource)" in result.stdout
    assert f"get its report with: troop bench report {ID}" in lines


HITTING = TEXT.replace(
    "    timeout: 10m\n", "    timeout: 10m\n    start_together: true\n    faults: [{at: 1m, unit: web}]\n"
)
PERMIT = ("POST", "terminations")


def test_run_that_hits_units_is_permitted_first(run: Run, api: FakeApi, file: Path) -> None:
    file.write_text(HITTING)
    going(api, *LOOKS)
    api.refusals[PERMIT] = [Answer(201, {"benchmark": "k1", "units": ["web"], "until": "2026-11-20T16:00:00.000Z"})]
    result = run("bench", "run", str(file), "--key", "k1")
    assert result.exit_code == 0, result.output
    requests = [call for call in api.calls if call[0] == "POST"]
    assert [call[:2] for call in requests] == [ESTIMATE, PERMIT, START]
    assert requests[1][2] == {"benchmark": "k1", "units": ["web"]}


def test_a_setting_that_is_off_is_no_lack_of_rights(run: Run, api: FakeApi, file: Path) -> None:
    file.write_text(HITTING)
    going(api, *LOOKS)
    message = "this deployment lets no benchmark hit units: its setting troop:under_load is false"
    api.refusals[PERMIT] = [Answer(403, {"statusCode": 403, "message": message})]
    result = run("bench", "run", str(file))
    assert (result.exit_code, "right to terminate" in result.stderr) == (Exit.REFUSED, False)
    assert message in result.stderr


def test_caller_who_may_not_terminate_starts_no_run_that_hits_units(run: Run, api: FakeApi, file: Path) -> None:
    file.write_text(HITTING)
    going(api, *LOOKS)
    message = "User: arn:aws:iam::111122223333:user/ada is not authorized to perform: execute-api:Invoke"
    api.refusals[PERMIT] = [Answer(403, {"Message": message})]
    result = run("bench", "run", str(file))
    assert result.exit_code == Exit.FORBIDDEN
    assert "the benchmark hits web, which needs the right to terminate on demand: permission denied" in result.stderr
    assert "POST/terminations" in "".join(result.stderr.split())
    assert START not in [call[:2] for call in api.calls]


def test_point_without_an_operation_is_named(run: Run, api: FakeApi, file: Path) -> None:
    steps = (*STEPS, "measure.1", "measure.2.between", "measure.2", "measure.3")
    rows = [ROW | {"phase": "measure", "point": point} for point in (1, 3)]
    over = run_document(*steps, "over", results=rows, **ENDED)
    over["cells"][0]["status"] = "SUCCEEDED"
    going(api, *LOOKS[:-1], over)
    result = run("bench", "run", str(file))
    assert result.exit_code == 0, result.output
    assert "c001: measure.2 measured nothing" in " ".join(result.stderr.split())


def test_success_without_an_operation_says_so(run: Run, api: FakeApi, file: Path) -> None:
    over = run_document(*STEPS, "over", results=[], **ENDED)
    over["cells"][0]["status"] = "SUCCEEDED"
    going(api, *LOOKS[:-1], over)
    result = run("bench", "run", str(file))
    assert result.exit_code == 0, result.output
    assert "c001 measured nothing: no script recorded an operation in a measured time" in result.stderr


def test_candidate_is_summed_up_against_its_baseline_from_the_record() -> None:
    rates = {"1.3": (970.0, 1080.0), "1.2": (1000.0, 1100.0)}
    view = {
        "cells": [
            {
                "cell": f"c{number:03d}",
                "status": "SUCCEEDED",
                "variant": {"scale": None, "values": {}, "repetition": number},
                "results": [
                    ROW
                    | {
                        "phase": "measure",
                        "point": point,
                        "parameters": dict(sorted({"version": version, "threads": 1}.items(), reverse=number > 1)),
                        "per_second": each[number - 1],
                    }
                    for point, (version, each) in enumerate(rates.items(), 1)
                ],
            }
            for number in (1, 2)
        ]
    }
    assert against(view, {"parameters.version": "1.2"}) == (
        "Throughput against version=1.2: 2.4\N{NO-BREAK SPACE}% less, within the noise (0.904 to 1.054, 2 pairs)."
    )
    assert against({"cells": view["cells"][:0]}, {"parameters.version": "1.2"}) == ""


def test_a_run_with_a_baseline_ends_with_the_answer_and_where_its_details_are(
    run: Run, api: FakeApi, file: Path
) -> None:
    file.write_text(f"{TEXT}\nbaseline: {{parameters.threads: 16}}\n")
    rows = [
        ROW | {"phase": "measure", "point": point, "parameters": {"threads": threads}, "per_second": rate}
        for point, threads, rate in ((1, 32, 970.0), (2, 16, 1000.0))
    ]
    over = run_document(*STEPS, "over", results=rows, **ENDED)
    over["cells"][0] |= {"status": "SUCCEEDED", "variant": {"scale": None, "values": {}, "repetition": 1}}
    going(api, *LOOKS[:-1], over)
    result = run("bench", "run", str(file))
    assert result.exit_code == 0, result.output
    lines = result.stdout.replace("\N{NO-BREAK SPACE}", " ").splitlines()
    at = lines.index("Throughput against threads=16: 3.0 % less; too few pairs to exclude noise (1 pair).")
    assert lines[at + 1] == f"compare its times and cost with: troop bench compare {ID}"


def test_a_terminal_sees_all_steps_those_to_come_too(
    run: Run, api: FakeApi, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(show, "is_terminal", lambda: True)
    going(api, *LOOKS)
    result = run("bench", "run", str(file))
    assert result.exit_code == 0, result.output
    shown = [line.split()[1:3] for line in result.stdout.splitlines() if line.startswith("✓")]
    assert shown == [[step, "60"] for step in STEPS]


@pytest.mark.parametrize("status", ["FAILED", "STOPPED", "PARTIAL"])
def test_only_success_succeeds(run: Run, api: FakeApi, file: Path, status: str) -> None:
    going(api, run_document("launch", **ENDED | {"status": status}, reason="i-1 never booted"))
    result = run("bench", "run", str(file))
    assert result.exit_code == Exit.FAILED
    assert f"{ID} {status}: i-1 never booted" in result.stderr
    assert f"troop bench report {ID}" in result.stdout, "why it failed is in its report, too"


def test_resources_that_may_still_exist_are_counted(run: Run, api: FakeApi, file: Path) -> None:
    going(api, run_document("launch", gone=False, **ENDED))
    assert "1 of 1 resource may still exist" in run("bench", "run", str(file)).stdout


def test_without_waiting_it_ends_with_the_start(run: Run, api: FakeApi, file: Path) -> None:
    going(api, run_document("launch"))
    result = run("bench", "run", str(file), "--no-wait")
    assert result.exit_code == 0
    assert f"troop bench status {ID}" in result.stdout
    assert [call[:2] for call in api.calls] == [ESTIMATE, START]


def test_programs_get_one_document(api: FakeApi, ok: Callable[..., Any], file: Path) -> None:
    last = run_document("launch", results=[ROW], **ENDED)
    going(api, run_document("launch"), last)
    assert ok("bench", "run", str(file)) == last


def test_failed_request_is_repeated_with_its_key(run: Run, api: FakeApi, file: Path) -> None:
    going(api, run_document("launch", **ENDED))
    api.refusals[START] = [Answer(503, None), Answer(500, None), Answer(200, run_out())]
    assert run("bench", "run", str(file)).exit_code == 0
    keys = {call[2]["key"] for call in api.calls if call[:2] == START}
    assert len(keys) == 1


def test_with_a_key_what_cannot_be_estimated_may_be_on_record(run: Run, api: FakeApi, file: Path) -> None:
    going(api, run_document("launch", **ENDED))
    api.refusals["POST", "benchmarks/estimate"] = [Answer(403, {"message": "not allowed"})]
    api.refusals[START] = [Answer(200, run_out())]
    assert run("bench", "run", str(file), "--no-wait").exit_code == Exit.FORBIDDEN
    assert START not in [call[:2] for call in api.calls]
    result = run("bench", "run", str(file), "--no-wait", "--key", "k1")
    assert result.exit_code == 0, result.output
    assert "no cost estimate: " in result.stderr
    assert "already started: " in result.stdout


def test_refusal_of_the_deployment_is_shown_with_its_line(run: Run, api: FakeApi, file: Path) -> None:
    problem = {
        "where": "body.definition.fleets.drivers.instance_type",
        "problem": "is 'c7g.large': must be an instance type that this region offers",
        "allowed": "an instance type that this region offers",
        "loc": ["fleets", "drivers", "instance_type"],
    }
    api.refusals[START] = [Answer(400, {"statusCode": 400, "message": "m", "problems": [problem]})]
    result = run("bench", "run", str(file))
    assert result.exit_code == Exit.REFUSED
    message = f"{file}:6: fleets.drivers.instance_type is 'c7g.large': must be an instance type that this region offers"
    assert message in result.stderr


@pytest.mark.parametrize("status", [403, 409])
def test_refusal_of_the_deployment_is_shown_in_its_words(run: Run, api: FakeApi, file: Path, status: int) -> None:
    api.refusals[START] = [Answer(status, {"statusCode": status, "message": "may not read payroll"})]
    result = run("bench", "run", str(file))
    assert (result.exit_code, "may not read payroll" in result.stderr) == (Exit.REFUSED, True)


def test_forbidden_start_names_the_iam_action(run: Run, api: FakeApi, file: Path) -> None:
    api.refusals[START] = [Answer(403, {"Message": "User is not authorized"})]
    result = run("bench", "run", str(file))
    assert (result.exit_code, "execute-api:Invoke" in result.stderr) == (Exit.FORBIDDEN, True)


def test_a_wrong_file_asks_for_nothing(run: Run, api: FakeApi, file: Path) -> None:
    file.write_text(TEXT.replace("count: 2", "count: 0"))
    assert run("bench", "run", str(file)).exit_code == Exit.USAGE
    assert api.calls == []


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_says_how_to_stop_it(run: Run, api: FakeApi, file: Path) -> None:
    going(api, run_document("launch"))
    result = run("-d", "Blue", "--region", "eu-west-1", "bench", "run", str(file))
    assert result.exit_code == 130
    assert f"troop -d Blue --region eu-west-1 bench stop {ID}" in result.stderr
    assert not [call for call in api.calls if call[0] == "DELETE"]


def test_failed_poll_does_not_end_the_command(run: Run, api: FakeApi, file: Path) -> None:
    going(api)
    api.refusals[ONE] = [
        Answer(500, None),
        Answer(200, run_document("launch")),
        Answer(500, None),
        Answer(200, run_document(**ENDED)),
    ]
    assert run("bench", "run", str(file)).exit_code == 0


def test_looks_that_fail_for_good_end_with_how_to_go_on(
    run: Run, api: FakeApi, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "FAILURES", 3)
    going(api)
    api.refusals[ONE] = [Answer(500, None)]
    result = run("bench", "run", str(file))
    assert result.exit_code == Exit.API_FAILED
    assert f"the run continues: troop bench status {ID}" in result.stderr
