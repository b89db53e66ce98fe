"""`troop --all`: many deployments at once, one of which is dead."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from typer.testing import CliRunner, Result

from cli.app import app
from cli.client import everywhere
from cli.client.api import Answer, UnreachableError
from cli.client.client import TroopClient
from cli.client.connection import Connection
from cli.client.deployment import Deployment
from cli.client.deployments_file import ListedDeployment
from cli.commands import switch, ui
from cli.shared import aws, context, show
from cli.shared.errors import CliError, Exit
from tests.unit.cli.conftest import ARN, FakeApi, Run, change, event

HALT = "20261120-224600-0a1b2c3d"
SELF = {"at": "2026-11-20T10:00:00.000Z", "why": "3 causes broke units", "events": []}
BY_ANN = {"changed_by": "arn:aws:iam::111122223333:user/ann", "reason": "mine"}


@dataclass
class Switched(FakeApi):
    """Answers PATCH /switch as the deployed API does.

    Attributes:
        lost: answers that are lost after the change is made.
        is_old: whether its version knows no ids of halts.
    """

    lost: int = 0
    is_old: bool = False

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        if (method, path) != ("PATCH", "switch") or (method, path) in self.refusals:
            return super().request(method, path, query, body)
        self.calls.append((method, path, dict(body or {})))
        changes = dict(body or {})
        halt_id, halts = changes.get("halt_id"), changes["halted"]
        if self.is_old and halt_id:
            return Answer(400, {"statusCode": 400, "message": "body: halt_id is unknown"})
        own = self.switch.get("halt_id")
        if halt_id and not halts and (self.switch.get("itself") or (self.switch["halted"] and own != halt_id)):
            return Answer(409, {"statusCode": 409, "message": "another halt"})
        if not (halt_id and halts and self.switch["halted"]):
            self.switch |= changes
            if not self.is_old:
                self.switch["halt_id"] = halt_id if halts else None
        if self.lost:
            self.lost -= 1
            raise UnreachableError("the answer is lost")
        return Answer(200, dict(self.switch))


@dataclass
class Deployments:
    """The deployments of the file: Dead, which cannot be reached, and others by their names."""

    apis: dict[str, Switched] = field(default_factory=dict)

    def connect(self, listed: ListedDeployment) -> Connection:
        if listed.name == "Dead":
            raise CliError(Exit.UNREACHABLE, "AWS cannot be reached: no route")
        outputs = {"StateTable": f"{listed.name}-State"}
        deployment = Deployment(listed.name, listed.region, "111122223333", outputs, ARN)
        api = self.apis[listed.name]
        return Connection(deployment, TroopClient(api, ARN, str(deployment), sleep=lambda _: None))

    def switches(self) -> dict[str, tuple[bool, str | None]]:
        return {name: (api.switch["halted"], api.switch.get("halt_id")) for name, api in self.apis.items()}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Deployments:
    cloud = Deployments({"Shop": Switched(), "Blog": Switched()})
    for api in cloud.apis.values():
        api.switch |= {"leashed": False, "halt_id": None}
        for path, key in (("benchmarks", "runs"), ("fleets", "fleets")):
            api.refusals["GET", path] = [Answer(200, {key: [], "cursor": None})]
    monkeypatch.setattr(everywhere, "connect", cloud.connect)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    for name in ("TROOP_DEPLOYMENTS", "TROOP_DEPLOYMENT"):
        monkeypatch.delenv(name, raising=False)
    listed("Shop", "Dead", "Blog")
    return cloud


def listed(*names: str, file: str = "deployments.yaml") -> None:
    entries = "".join(f"- {{name: {name}, region: eu-central-1}}\n" for name in names)
    Path(file).write_text(f"deployments:\n{entries}")


@pytest.fixture
def troop(cloud: Deployments, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    def troop(*words: str, typed: str | None = None) -> Result:
        monkeypatch.setattr(context, "interactive", lambda: typed is not None)
        return CliRunner().invoke(app, list(words), input=typed)

    return troop


Troop = Callable[..., Result]


def entries(result: Result) -> dict[str, Any]:
    """The entries of the one document on stdout, by deployment."""
    return {one["deployment"]: one for one in json.loads(result.stdout)["deployments"]}


def halt(troop: Troop, *words: str) -> tuple[Result, str]:
    result = troop("--all", "halt", "--json", *words)
    return result, json.loads(result.stdout)["halt_id"]


class TestAnswers:
    @pytest.mark.parametrize(
        ("words", "key"),
        [
            (("status",), "switch"),
            (("groups",), "groups"),
            (("events",), "events"),
            (("changes",), "changes"),
            (("why", "web"), "answer"),
            (("doctor",), "checks"),
            (("report",), "letter"),
        ],
    )
    def test_one_document_has_an_entry_for_each_also_for_the_dead(
        self, troop: Troop, cloud: Deployments, words: tuple[str, ...], key: str
    ) -> None:
        for api in cloud.apis.values():
            api.add("web")
        result = troop("--all", *words, "--json")
        assert result.exit_code == Exit.UNREACHABLE, result.output
        shown = entries(result)
        assert list(shown) == ["Shop", "Dead", "Blog"]
        assert (shown["Dead"]["answered"], shown["Dead"]["answer"]) == (False, None)
        assert shown["Dead"]["error"] == "AWS cannot be reached: no route"
        assert all(key in shown[name]["answer"] and shown[name]["error"] is None for name in cloud.apis)

    @pytest.mark.parametrize(
        "words", [("status",), ("groups",), ("events",), ("changes",), ("why", "web"), ("doctor",)]
    )
    def test_people_see_who_does_not_answer_and_why(
        self, troop: Troop, cloud: Deployments, words: tuple[str, ...]
    ) -> None:
        cloud.apis["Blog"].add("web")
        result = troop(*words, "--all")
        assert result.exit_code == Exit.UNREACHABLE
        assert "Dead  does not answer: AWS cannot be reached: no route" in result.stdout

    def test_all_that_answer_and_pass_are_a_success(self, troop: Troop) -> None:
        listed("Shop", "Blog", file="two.yaml")
        assert troop("--all", "--deployments", "two.yaml", "status").exit_code == Exit.OK

    def test_file_of_the_environment_gives_way_to_the_option(
        self, troop: Troop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listed("Shop", file="one.yaml")
        listed("Blog", file="two.yaml")
        monkeypatch.setenv("TROOP_DEPLOYMENTS", "one.yaml")
        assert list(entries(troop("--all", "status", "--json"))) == ["Shop"]
        assert list(entries(troop("status", "--all", "--deployments", "two.yaml", "--json"))) == ["Blog"]

    def test_overview_has_one_row_for_each(self, troop: Troop, cloud: Deployments) -> None:
        cloud.apis["Shop"].switch |= {"halted": True, **BY_ANN}
        lines = troop("--all", "status").stdout.splitlines()
        assert [line.split()[:2] for line in lines[1:3]] == [["Shop", "halted"], ["Blog", "unleashed"]]
        assert lines[1].endswith("ann: mine")

    def test_events_of_all_are_in_one_order(self, troop: Troop, cloud: Deployments) -> None:
        cloud.apis["Shop"].events = [event("a", "2026-11-20"), event("b", "2026-11-18")]
        cloud.apis["Blog"].events = [event("c", "2026-11-19")]
        lines = troop("--all", "events").stdout.splitlines()
        assert [line.split()[0] for line in lines[1:4]] == ["Shop", "Blog", "Shop"]
        by_unit = troop("--all", "events", "--sort", "unit", "--reverse").stdout.splitlines()
        assert [line.split()[0] for line in by_unit[1:4]] == ["Blog", "Shop", "Shop"]

    def test_lines_of_csv_begin_with_the_deployment(self, troop: Troop, cloud: Deployments) -> None:
        cloud.apis["Blog"].log = [change(None, halted=(False, True))]
        header, blog, dead = troop("--all", "changes", "-o", "csv").stdout.splitlines()
        assert header.startswith("deployment,unit,at,caller,changes,error")
        assert (blog.startswith("Blog,"), dead.startswith("Dead,")) == (True, True)
        assert dead.endswith("no route")
        entries = [f"- {{name: Shop, region: eu-west-{n}, stage: {stage}}}" for n, stage in enumerate("ab", 1)]
        Path("two.yaml").write_text("\n".join(["deployments:", *entries, ""]))
        header, *lines = troop("--all", "--deployments", "two.yaml", "status", "-o", "csv").stdout.splitlines()
        assert header.startswith("deployment,account,")
        assert [line.split(",111122223333")[0] for line in lines] == ["Shop (a)", "Shop (b)"]

    def test_unit_that_only_some_have_is_not_missed_by_the_others(self, troop: Troop, cloud: Deployments) -> None:
        listed("Shop", "Blog")
        cloud.apis["Blog"].add("web")
        result = troop("--all", "why", "web")
        assert result.exit_code == Exit.OK
        assert "Shop  there is no unit or group 'web' in Shop" in result.stdout
        assert troop("--all", "why", "db").exit_code == Exit.NO_SUCH_UNIT

    def test_version_without_a_part_of_the_answer_stops_only_itself(self, troop: Troop, cloud: Deployments) -> None:
        for api in cloud.apis.values():
            api.add("web")
        row = cloud.apis["Shop"].request("GET", "groups", {"limit": "1"}).body["groups"][0]
        del row["outlook"]
        cloud.apis["Shop"].refusals["GET", "groups"] = [Answer(200, {"groups": [row], "cursor": None})]
        result = troop("--all", "groups")
        assert "Shop  does not answer: this deployment is older than the command" in result.stdout
        assert "Blog" in result.stdout.splitlines()[1]

    @pytest.mark.parametrize(
        ("command", "words"),
        [("status", "unleashed  ok      unknown"), ("doctor", "groups cannot be read: no answer within 1 seconds")],
    )
    def test_units_of_a_large_account_are_unknown_and_the_rest_is_shown(
        self, troop: Troop, cloud: Deployments, monkeypatch: pytest.MonkeyPatch, command: str, words: str
    ) -> None:
        listed("Shop")
        request = cloud.apis["Shop"].request

        def hang(method: str, path: str, *more: Any) -> Answer:
            if path == "groups":
                threading.Event().wait()
            return request(method, path, *more)

        monkeypatch.setattr(cloud.apis["Shop"], "request", hang)
        monkeypatch.setattr(importlib.import_module(f"cli.commands.{command}"), "PART_SECONDS", 1)
        result = troop("--all", command)
        assert result.exit_code == Exit.OK
        assert words in result.stdout

    @pytest.mark.parametrize(("grade", "code"), [("ok", 0), ("warn", 0), ("fail", 1)])
    def test_failed_check_of_one_fails_the_doctor(
        self, troop: Troop, cloud: Deployments, grade: str, code: int
    ) -> None:
        listed("Shop", "Blog")
        check = {"name": "ticks-missing", "status": grade, "value": 3, "threshold": 0, "detail": "late", "todo": "look"}
        cloud.apis["Blog"].checks = [check]
        result = troop("--all", "doctor")
        assert result.exit_code == code
        assert ("ticks-missing" in result.stdout) is (grade != "ok")

    def test_report_of_each_is_written_under_its_label(self, troop: Troop, cloud: Deployments) -> None:
        result = troop("--all", "report", "--from", "2026-07-01", "--to", "2026-09-30")
        assert result.exit_code == Exit.UNREACHABLE
        names = ["troop-report-2026-07-01-2026-09-30-Blog", "troop-report-2026-07-01-2026-09-30-Shop"]
        assert sorted(path.stem for path in Path().glob("*.html")) == names
        assert sorted(path.stem for path in Path().glob("*.json")) == names

    def test_labels_that_make_one_name_have_reports_of_their_own(self, troop: Troop, cloud: Deployments) -> None:
        cloud.apis["shop"] = cloud.apis["Shop"]
        listed("Shop", "shop")
        assert troop("--all", "report", "--from", "2026-07-01", "--to", "2026-09-30").exit_code == Exit.OK
        name = "troop-report-2026-07-01-2026-09-30"
        assert sorted(path.stem for path in Path().glob("*.html")) == [f"{name}-Shop", f"{name}-shop_2"]


class TestPages:
    def test_first_that_answers_is_served_with_the_permissions_of_its_entry(
        self, troop: Troop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sessions: list[tuple[Any, ...]] = []
        served: list[tuple[Any, ...]] = []

        def make_session(*options: Any, shared: bool) -> boto3.Session:
            sessions.append((*options, shared))
            return boto3.Session(region_name="eu-central-1")

        monkeypatch.setattr(aws, "make_session", make_session)
        monkeypatch.setattr(ui, "_serve", lambda page, title, *_: served.append((page.label, title)))
        entries = "- {name: Dead, region: eu-central-1}\n- {name: Shop, region: eu-central-1, profile: shop}\n"
        Path("deployments.yaml").write_text(f"deployments:\n{entries}")
        assert troop("--all", "ui").exit_code == 0
        assert served == [("Shop", "2 deployments")]
        assert sessions == [("shop", "eu-central-1", None, None, True)]


class TestRefusals:
    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("--all bench list", "`troop bench` has no --all, which is of status, groups,"),
            ("group web --all", "`troop group` has no --all"),
            ("--all leash", "`troop leash` has no --all"),
            ("--all -d Shop status", "remove -d, --region and --profile, or --all"),
            ("--all status --region eu-west-1", "remove -d, --region and --profile, or --all"),
            ("--all events 2026-11-20#web", "only one deployment has an id"),
            ("--all events --follow", "only one deployment has --follow"),
            ("--all ui --port 8080", "only one deployment has --port"),
            ("--all why web --ticks", "only one deployment has --ticks"),
            ("--all report -o x.html", "only one deployment has -o"),
            ("--all --deployments none.yaml status", "none.yaml cannot be read"),
            ("--deployments deployments.yaml halt", "--deployments is of --all"),
        ],
    )
    def test_option_that_contradicts_it_is_named(self, troop: Troop, cloud: Deployments, line: str, words: str) -> None:
        result = troop(*line.split())
        assert result.exit_code == Exit.USAGE
        assert words in result.stderr
        assert [call for api in cloud.apis.values() for call in api.calls] == []

    def test_deployment_of_the_environment_does_not_contradict_it(
        self, troop: Troop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TROOP_DEPLOYMENT", "Other")
        assert list(entries(troop("--all", "status", "--json"))) == ["Shop", "Dead", "Blog"]


class TestHalt:
    def test_reaches_all_but_the_dead_and_says_so(self, troop: Troop, cloud: Deployments) -> None:
        result = troop("--all", "halt", "--reason", "outage")
        assert result.exit_code == Exit.UNREACHABLE
        (halt_id,) = {halt_id for _, halt_id in cloud.switches().values()}
        assert all(halted for halted, _ in cloud.switches().values())
        assert sorted(result.stdout.splitlines()) == [
            "Blog  halted",
            "Dead  does not answer: AWS cannot be reached: no route",
            "Shop  halted",
        ]
        first = f"halting 3 deployments; `troop resume --halt {halt_id} --all` ends this"
        assert result.stderr.startswith(first)
        assert "To halt Dead without the API: docs/guides/runbook.md#halt-without-the-api" in result.stderr

    def test_words_to_resume_name_the_file(self, troop: Troop) -> None:
        listed("Shop", file="own file.yaml")
        result, halt_id = halt(troop, "--deployments", "own file.yaml")
        assert f"`troop resume --halt {halt_id} --all --deployments 'own file.yaml'`" in result.stderr

    def test_each_is_shown_at_once_and_ctrl_c_names_the_unknown(
        self, troop: Troop, cloud: Deployments, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listed("Blog", "Shop", "Dead")
        lines: list[str] = []

        def say_and_interrupt(message: str) -> None:
            lines.append(message)
            if len(lines) == 2:
                raise KeyboardInterrupt

        monkeypatch.setattr(cloud.apis["Blog"], "request", lambda *_: threading.Event().wait())
        monkeypatch.setattr(show, "say", say_and_interrupt)
        result = troop("--all", "halt")
        halted, halt_id = cloud.switches()["Shop"]
        assert (result.exit_code, "Shop  halted" in lines, halted) == (Exit.INTERRUPTED, True, True)
        assert f"--halt {halt_id} " in result.stderr
        assert "not known to be halted: Blog, Dead; see docs/guides/runbook.md" in result.stderr

    def test_one_that_connects_after_its_time_is_verified(
        self, troop: Troop, cloud: Deployments, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listed("Shop")
        late, halted, lines = threading.Event(), threading.Event(), list[str]()
        connect, request = cloud.connect, cloud.apis["Shop"].request

        def request_late(*words: Any) -> Answer:
            answer = request(*words)
            halted.set()
            return answer

        def say(message: str) -> None:
            lines.append(message)
            late.set()
            assert halted.wait(60)

        monkeypatch.setattr(everywhere, "connect", lambda one: late.wait(60) and connect(one))
        monkeypatch.setattr(cloud.apis["Shop"], "request", request_late)
        monkeypatch.setattr(switch, "SECONDS", 0.2)
        monkeypatch.setattr(show, "say", say)
        assert troop("--all", "halt").exit_code == Exit.OK
        assert lines == ["Shop  does not answer: no answer within 0.2 seconds", "Shop  halted"]

    def test_programs_get_the_document_and_people_the_course(self, troop: Troop) -> None:
        result, _ = halt(troop)
        assert list(entries(result)) == ["Shop", "Dead", "Blog"]
        assert {"Shop  halted", "Blog  halted"} < set(result.stderr.splitlines())

    @pytest.mark.parametrize(
        ("identity", "words"),
        [
            ("", "the API:\naws --region eu-central-1"),
            (", profile: my shop", "the API:\naws --profile 'my shop' --region eu-central-1"),
            (
                ", role: 'arn:aws:iam::444455556666:role/t', external_id: x7",
                "the API: assume the role arn:aws:iam::444455556666:role/t with the external id x7, then\naws --region",
            ),
        ],
    )
    def test_one_without_an_answer_can_be_halted_by_hand(
        self, troop: Troop, cloud: Deployments, identity: str, words: str
    ) -> None:
        entry = f"- {{name: Shop, region: eu-central-1{identity}}}\n"
        Path("deployments.yaml").write_text(f"deployments:\n{entry}")
        cloud.apis["Shop"].refusals["PATCH", "switch"] = [Answer(500, {"message": "Internal server error"})]
        result = troop("--all", "halt")
        assert f"To halt Shop without {words}" in result.stderr
        assert "dynamodb update-item --table-name Shop-State" in result.stderr
        assert cloud.switches()["Shop"] == (False, None)

    @pytest.mark.parametrize("is_old", [False, True])
    def test_answer_that_it_is_not_halted_is_no_success(self, troop: Troop, cloud: Deployments, is_old: bool) -> None:
        listed("Shop")
        refusal = [Answer(400, {"message": "body: halt_id is unknown"})] if is_old else []
        cloud.apis["Shop"].refusals["PATCH", "switch"] = [*refusal, Answer(200, cloud.apis["Shop"].switch)]
        if is_old:
            del cloud.apis["Shop"].switch["halt_id"]
        result = troop("--all", "halt")
        assert (result.exit_code, "Shop  halted" in result.stdout) == (Exit.UNREACHABLE, False)
        assert "Shop  does not answer: it is not halted" in result.stdout

    def test_lost_answer_is_verified(self, troop: Troop, cloud: Deployments) -> None:
        cloud.apis["Shop"].lost = 6
        result, halt_id = halt(troop)
        assert entries(result)["Shop"]["answer"]["outcome"] == "halted"
        assert cloud.switches()["Shop"] == (True, halt_id)

    @pytest.mark.parametrize(
        ("switch", "words"),
        [
            ({"halted": True, **BY_ANN}, ("ann: mine", "that one")),
            ({"halted": True, "halt_id": HALT, **BY_ANN}, (f"ann, halt {HALT}: mine", HALT)),
            ({"halted": True, "itself": SELF}, ("2026-11-20 10:00:00 UTC: 3 causes broke units", "that one")),
        ],
    )
    def test_other_halt_is_listed_with_who_and_why_and_is_a_failure(
        self, troop: Troop, cloud: Deployments, switch: dict[str, Any], words: tuple[str, str]
    ) -> None:
        listed("Shop", "Blog")
        cloud.apis["Shop"].switch |= switch
        before = dict(cloud.apis["Shop"].switch)
        result = troop("--all", "halt", "--reason", "outage")
        by, end = words
        shop = f"Shop  halted by another ({by}): your halt does not hold here, it ends with {end}"
        assert (result.exit_code, sorted(result.stdout.splitlines())) == (Exit.FAILED, ["Blog  halted", shop])
        assert cloud.apis["Shop"].switch == before
        again, _ = halt(troop)
        assert (again.exit_code, entries(again)["Shop"]["answer"]["outcome"]) == (Exit.FAILED, "halted by another")

    @pytest.mark.parametrize(
        ("halted", "words"), [(False, "halted without the id"), (True, "halted by another (ann: mine)")]
    )
    def test_older_version_is_halted_without_the_id(
        self, troop: Troop, cloud: Deployments, halted: bool, words: str
    ) -> None:
        cloud.apis["Shop"] = Switched(is_old=True)
        cloud.apis["Shop"].switch |= {"halted": halted, **BY_ANN}
        result = troop("--all", "halt", "--reason", "outage")
        assert f"Shop  {words}" in result.stdout
        assert cloud.apis["Shop"].switch["halted"]
        assert cloud.apis["Shop"].switch["reason"] == ("mine" if halted else "outage")

    def test_older_version_that_does_not_say_is_halted_all_the_same(self, troop: Troop, cloud: Deployments) -> None:
        cloud.apis["Shop"] = Switched(is_old=True)
        cloud.apis["Shop"].refusals["GET", "switch"] = [Answer(403, {"message": "no"}, "AccessDeniedException")]
        assert "Shop  halted without the id" in troop("--all", "halt").stdout
        assert cloud.apis["Shop"].switch["halted"]


class TestResume:
    def test_one_that_is_halted_with_others_says_so(self, troop: Troop, run: Run, api: FakeApi) -> None:
        api.switch |= {"halted": True, "halt_id": HALT}
        assert f"`troop resume --all --halt {HALT}` resumes all of them" in run("resume", typed="n\n").stderr
        assert run("resume", "--halt", HALT, "--yes").exit_code == Exit.OK
        assert api.changes() == [("switch", {"halted": False, "halt_id": HALT})]

    def test_only_its_own_halt_ends(self, troop: Troop, cloud: Deployments) -> None:
        cloud.apis["Blog"].switch |= {"halted": True, **BY_ANN}
        _, halt_id = halt(troop)
        result = troop("--all", "resume", "--yes")
        assert cloud.switches() == {"Shop": (False, None), "Blog": (True, None)}
        assert result.exit_code == Exit.UNREACHABLE
        assert result.stdout.splitlines() == [
            "Shop  resumed",
            "Dead  does not answer: AWS cannot be reached: no route",
            "Blog  still halted (ann: mine)",
        ]
        assert cloud.apis["Shop"].changes()[-1] == ("switch", {"halted": False, "halt_id": halt_id})

    def test_asks_first_and_names_those_it_resumes(self, troop: Troop, cloud: Deployments) -> None:
        _, halt_id = halt(troop)
        result = troop("--all", "resume", typed="n\n")
        assert result.exit_code == Exit.NOT_CONFIRMED
        assert f"Resume Shop, Blog from the next tick on, halted by {halt_id}?" in result.stderr
        assert troop("--all", "resume").exit_code == Exit.NOT_CONFIRMED
        assert all(halted for halted, _ in cloud.switches().values())

    def test_several_ids_need_a_choice(self, troop: Troop, cloud: Deployments) -> None:
        for number, api in enumerate(cloud.apis.values()):
            api.switch |= {"halted": True, "halt_id": f"{HALT}{number}"}
        result = troop("--all", "resume", "--yes")
        assert result.exit_code == Exit.USAGE
        assert f"choose one with --halt: {HALT}0 of Shop; {HALT}1 of Blog" in result.stderr
        result = troop("--all", "resume", "--yes", "--halt", f"{HALT}1", "--json")
        assert (json.loads(result.stdout)["halt_id"], cloud.switches()["Blog"]) == (f"{HALT}1", (False, None))
        assert entries(result)["Shop"]["answer"]["outcome"] == "still halted"

    def test_halt_of_somebody_else_at_the_same_moment_stays(self, troop: Troop, cloud: Deployments) -> None:
        halt(troop)
        shop = cloud.apis["Shop"]
        first = dict(shop.switch)
        shop.switch |= {"halt_id": None, **BY_ANN}
        shop.refusals["GET", "switch"] = [Answer(200, first), Answer(200, shop.switch)]
        result = troop("--all", "resume", "--yes")
        assert "Shop  still halted (ann: mine)" in result.stdout
        assert cloud.switches() == {"Shop": (True, None), "Blog": (False, None)}

    def test_refusal_while_its_own_halt_stands_is_no_success(self, troop: Troop, cloud: Deployments) -> None:
        listed("Shop")
        halt(troop)
        cloud.apis["Shop"].refusals["PATCH", "switch"] = [Answer(409, {"message": "others are changing the switch"})]
        result = troop("--all", "resume", "--yes")
        assert result.exit_code == Exit.UNREACHABLE
        assert "others are changing the switch" in result.stdout

    def test_own_halt_of_a_deployment_stays(self, troop: Troop, cloud: Deployments) -> None:
        halt(troop)
        cloud.apis["Shop"].switch["itself"] = SELF
        assert "still halted (2026-11-20 10:00:00 UTC: 3 causes" in troop("--all", "resume", "--yes").stdout
        assert cloud.switches()["Shop"][0] is True

    def test_lost_answer_is_repeated_and_verified(self, troop: Troop, cloud: Deployments) -> None:
        halt(troop)
        cloud.apis["Shop"].lost = 6
        assert entries(troop("--all", "resume", "--yes", "--json"))["Shop"]["answer"]["outcome"] == "resumed"

    @pytest.mark.parametrize(("words", "code"), [((), Exit.OK), (("--halt", HALT), Exit.FAILED)])
    def test_without_such_a_halt_nothing_is_resumed(
        self, troop: Troop, cloud: Deployments, words: tuple[str, ...], code: Exit
    ) -> None:
        listed("Shop", "Blog")
        cloud.apis["Shop"].switch |= {"halted": True, **BY_ANN}
        result = troop("--all", "resume", "--yes", *words)
        assert result.exit_code == code
        assert result.stdout.splitlines() == ["Shop  still halted (ann: mine)", "Blog  not halted"]
        assert "no deployment is halted by" in result.stderr
        assert cloud.switches()["Shop"] == (True, None)
