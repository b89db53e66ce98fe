"""Generates docs/settings.md: ``python -m infra.settings_doc`` writes it.

Defaults come from cdk.json, allowed values from the errors of :mod:`infra.settings`. This module adds what a setting
means to its users.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from infra import ROOT
from infra.settings import PREFIX, read_settings, written_context
from troop.errors import SettingsError
from troop.faults import FAULTS

PATH = ROOT / "docs" / "settings.md"

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "The deployment": {
        "deployment": "The stack's name, which commands use to find it (`troop -d NAME`). Another name is another "
        "deployment, with its own tables, salt and switch.",
        "stage": "The stage to deploy; null uses only the defaults. `make deploy STAGE=prod` sets it.",
        "stages": "Named sets of settings that override the defaults ([more](deploying.md#stages)). Their keys are "
        "those of this page, without `troop:`.",
        "bundle": "The platform for which the functions' packages are selected. Keep `auto`: it means `lambda`, or "
        "`machine` if `AWS_ENDPOINT_URL` points to local AWS.",
    },
    "The account": {
        "key": "A KMS key of yours that encrypts tables, buckets, queues, topics, logs, the salt and the functions' "
        "variables; null for keys of AWS. Its policy must admit services of AWS "
        "([more](deploying.md#a-key-of-your-own)).",
        "tags": "Tags of the stack, of its resources, and of everything that runs and fleets create, such as those "
        "that your organization demands ([more](deploying.md#rules-of-your-organization)).",
    },
    "Chaos": {
        "leashed": "Whether chaos only decides and records. It applies until somebody uses the switch (`troop "
        "unleash`, `troop leash`); from then on the switch decides.",
        "participation": "`opt-out`: every unit takes part unless it is opted out. `opt-in`: no unit takes part until "
        "it is opted in.",
        "probability": "The probability of a termination for each unit and business day: 1 is one a day, 0.2 one a "
        "week on average, 0 none. An owner's `probability` overrides it.",
        "min_healthy": "The fewest healthy instances in service with which a group takes part. An owner's "
        "`min_healthy` overrides it.",
        "lowest_min_healthy": "The lowest `min_healthy` that owners can set, at most `troop:min_healthy`. A lower "
        "value in the table or in a tag counts as this one; `troop group` then shows this setting as its source.",
        "min_days_between": "Business days from one termination of a unit to its next; 0 and 1 both allow one on "
        "every business day. An owner's `min_days_between` overrides it.",
        "method": " ".join(f"`{fault.name}`: {fault.summary}." for fault in FAULTS)
        + " See [what data a crash can lose](chaos.md#what-a-crash-can-lose). An owner's `method` overrides it.",
        "max_per_day": "The most terminations of the whole deployment in a day, on-demand ones included. The day is "
        "the calendar's local day.",
        "max_in_flight": "The most terminations of the whole deployment whose groups have not recovered yet.",
        "on_demand": "Whether the API accepts requests to terminate an instance (`troop terminate`). IAM controls who "
        "can send them.",
        "recovery_timeout_minutes": "Minutes that a group has to recover. After that it is `UNRECOVERED`, and Troop "
        "skips its unit until somebody opts it in.",
        "units": "The groups that belong together, by patterns of their names: all groups that match share one unit's "
        "policy, roll and history. The first pattern that matches counts; a group's tag `troop:unit` overrides it.",
        "calendars": "When chaos can happen: calendars by name. `default` applies to every group that names no other "
        "(`calendar`).",
        "tick_minutes": "Minutes between two ticks during the window of a calendar. A due termination waits for the "
        "next tick. Every tick writes a decision for every unit, so shorter intervals cost more.",
    },
    "Retention": {
        "retain_data": "Whether tables, buckets, the salt and logs remain after the deployment is removed (`make "
        "destroy`), and tables are protected from deletion. With false they are removed, too.",
        "decision_retention_days": "Days for which decisions are stored, which explain why Troop skipped a unit. "
        "Events and changes are stored permanently.",
        "log_retention_days": "Days for which all logs are stored: of functions, workflows, and the API's requests. "
        "These are the values that CloudWatch Logs accepts.",
        "results_retention_days": "Days for which the results and reports of benchmarks are stored. Uploaded "
        "artifacts are stored for 30 days.",
    },
    "Operation": {
        "runbook_url": "Where your operators read [the runbook](runbook.md). Alarms link to it with `#` and an "
        "anchor; dashboards link to it if it begins with `https://`.",
        "dashboards": "Whether the deployment has its two dashboards. An account has three free dashboards, and pays "
        "for each further one.",
        "daily_cost_alarm": "The cost of benchmarks and fleets within a day that turns an alarm on: US dollars, in "
        "China yuan. Running ones count, too.",
        "api_access_logs": "Whether API Gateway logs each request, including those that IAM refuses. This requires a "
        "role in an account setting that applies to **all APIs of the region**. With true, the deployment creates a "
        "role and sets it there, in place of an existing one; both remain when the deployment is removed. With false, "
        "the API's function still logs each request that reaches it, with its caller.",
    },
    "Benchmarks": {
        "benchmarks": "Whether the deployment includes the part that runs [benchmarks](benchmarks.md) and fleets. "
        "With false it has no network, and no role that can launch anything.",
        "network": "Where fleets are launched: null for a VPC that the deployment creates, or an existing VPC with "
        "its subnets ([more](deploying.md#benchmarks)).",
        "zones": "Availability zones of the VPC that the deployment creates, with a subnet in each; at most as many "
        "as your account has in the region. Ignored with `troop:network`.",
        "dns_firewall": "Whether the VPC that the deployment creates resolves only names of AWS and of the VPC, so "
        "that code on nodes cannot send data through DNS ([cost](costs.md#benchmarks-while-none-runs)). Not with "
        "`troop:network`.",
        "allowed_buckets": "S3 buckets that nodes can read. The file of a benchmark or fleet must name a bucket, too "
        "(`buckets`).",
        "allowed_images": "Machine images that a benchmark or fleet can name as `image`, besides Amazon Linux 2023, "
        "which is the default: ids of images, and names of SSM parameters that contain an id "
        "([more](benchmarks.md#images)). IAM enforces them, too.",
        "allowed_snapshots": "Snapshots of EBS whose data the volumes of a benchmark or fleet can have (`snapshot`): "
        "ids, or `*` for all snapshots of the account ([more](benchmarks.md#snapshots)). IAM enforces them, too.",
        "allowed_targets": "What nodes can reach besides S3 and each other, if the file of a benchmark or fleet names "
        "it, too (`targets`): load balancers and security groups in `troop:network`, and IPv4 addresses, each with its "
        "TCP ports ([more](benchmarks.md#targets)).",
        "own_data": "Whether benchmarks can create and delete objects below `data/` of the results bucket, to measure "
        "with them ([more](benchmarks.md#data-of-a-cell)). The file must request it, too. IAM enforces the setting.",
        "max_nodes": "The most nodes that one run can have at one time. The limit also applies to one standing fleet.",
        "max_nodes_total": "The most nodes of all open runs and standing fleets together. A run holds its largest "
        "number of nodes from its admission until its teardown ends; a fleet holds its size.",
        "max_run_cost": "What one run or standing fleet can cost, in US dollars (in China, yuan); `none` for no limit "
        "([more](costs.md#limits)). Troop refuses one that it expects to cost more, and stops one that has cost more.",
        "max_scheduled_cost": "What the runs that schedules start in one month (UTC) can cost in the worst case, in "
        "dollars (in China, yuan); `none` for no limit ([more](benchmarks.md#schedules)). Then Troop refuses starts.",
        "instance_types": "The instance types that nodes can have, as patterns: `c7g.*` matches all sizes of c7g. IAM "
        "enforces them, too: the launching role cannot start another type.",
    },
}
"""Heading -> key -> meaning, in Markdown."""

_ALLOWED = {
    "stage": "null, or the name of one of `troop:stages`",
    "stages": "an object of stages by name: a letter, then letters, digits and hyphens, at most 20 in all",
    "calendars": "an object of calendars by name, see [below](#a-calendar)",
}
"""Used where the error says less, or lists the stages of the day."""

_SHOWN_BELOW = {"calendars": "[below](#a-calendar)", "stages": "[four](deploying.md#stages)"}

CALENDAR = {
    "time_zone": (
        "required",
        "an IANA time zone, such as Europe/Vienna",
        "The time zone of all times and days.",
    ),
    "open": ("required", "a time of day as HH:MM", "When the window opens."),
    "close": (
        "required",
        "a time of day as HH:MM, up to 24:00, more than 15 minutes after `open`",
        "When the window closes. No roll is due in its last 15 minutes.",
    ),
    "weekdays": ("MON to FRI", "a list of MON, TUE, WED, THU, FRI, SAT, SUN", "The days of the working week."),
    "country": (
        "null",
        "an ISO 3166 code, such as US, AT or IL",
        "The country whose public holidays are days off; null for none.",
    ),
    "subdivision": ("null", "a code within the country, such as CA", "The region whose holidays are days off, too."),
    "categories": (
        "null",
        "a list of categories of the package `holidays` for the country, such as public, bank, government",
        "Which holidays of the country are days off; null for the public ones.",
    ),
    "extra_dates": (
        "none",
        'a list of objects such as `{"date": "12-24", "name": "Christmas Eve"}`; `date` is a [rule](#days-as-rules)',
        "Further days off. With `open`, `close` or both, inside the calendar's window, they are half days: business "
        "days with a shorter window.",
    ),
    "freezes": (
        "none",
        'a list of objects such as `{"from": "4th THU of NOV", "to": "4th THU of NOV +4", "reason": "peak sales"}`; '
        "`from` and `to` are both dates, or both [rules](#days-as-rules)",
        "Days without chaos, both ends included. They still count as business days (`troop:min_days_between`). Freezes "
        "as rules come every year, and can last over the end of the year.",
    ),
    "change_calendar": (
        "null",
        "null, or the name or ARN of an SSM Change Calendar in the deployment's region",
        "A Change Calendar that closes the window while its state is CLOSED, or while Troop cannot read it. Another "
        "account's needs its ARN, and must be shared with this account. Terminations on demand ignore it.",
    ),
}
"""Field -> default, allowed values, meaning."""

_RULES = """\
### Days as rules

- `2026-12-24` is one day.
- `12-24` is a day of every year. `02-29` is 28 February in other years.
- `4th THU of NOV` is a weekday of a month, by the first three letters: 1st, 2nd, 3rd, 4th or last.
- `holiday Thanksgiving Day` is a holiday of the calendar's `country` and `categories`, by its English name. It is not
  the weekday on which the holiday is only observed.
- `+1` at the end is a day later, and `-1` a day earlier, up to 99 days. It can follow every rule but one day.

For example, a day off after Thanksgiving, and a half day on 24 December:

```json
"extra_dates": [
  {"date": "4th THU of NOV +1", "name": "Day after Thanksgiving"},
  {"date": "12-24", "name": "Christmas Eve", "close": "12:00"}
]
```
"""

_HEAD = """\
# Settings

Generated from the code by `make openapi`: change `infra/settings_doc.py` instead.

Settings are the context of `cdk.json`. A change in that file applies to every later deployment. A setting on the
command line overrides the file and the stage, but only for one deployment. `make deploy KEEP=1 ARGS='-c
troop:probability=0.1'` changes one setting, and
[keeps those of earlier commands](deploying.md#what-a-deployment-changes). On the command line, write a list with
commas and an object as JSON:

```sh
make deploy KEEP=1 ARGS='-c troop:allowed_buckets=my-data,my-other-data'
make deploy KEEP=1 ARGS="-c 'troop:units={\\"web-v*\\": \\"web\\"}'"
```

All settings are checked before anything is deployed: an error names an unknown key or a value that is not allowed.
[deploying.md](deploying.md#2-deploy-leashed) lists the settings to consider first. An owner's policy for a unit
overrides these settings ([chaos.md](chaos.md)).
"""


def text() -> str:
    """Returns the document as it is committed."""
    context = written_context()
    parts = [_HEAD]
    for heading, settings in SECTIONS.items():
        rows = [
            _row(f"`{PREFIX}{key}`", _default(context, key), allowed(context, key), settings[key]) for key in settings
        ]
        parts.append(f"## {heading}\n\n{_table('setting', rows)}")
    fields = [_row(f"`{field}`", *cells) for field, cells in CALENDAR.items()]
    shown = json.dumps(context[f"{PREFIX}calendars"], indent=2)
    about = f"The default calendar:\n\n```json\n{shown}\n```\n"
    parts.append(f"## A calendar\n\n{_table('field', fields)}\n{about}\n{_RULES}")
    return "\n".join(parts)


def allowed(context: Mapping[str, Any], key: str) -> str:
    """Returns what a setting can be: the phrase with which an unusable value is refused."""
    if key in _ALLOWED:
        return _ALLOWED[key]
    try:
        read_settings({**context, f"{PREFIX}stages": {}, PREFIX + key: object()})
    except SettingsError as error:
        return error.allowed
    raise AssertionError(f"{PREFIX}{key} accepts any value")


def _default(context: Mapping[str, Any], key: str) -> str:
    return _SHOWN_BELOW.get(key) or f"`{json.dumps(context[PREFIX + key])}`"


def _table(first: str, rows: list[str]) -> str:
    return "\n".join([f"| {first} | default | allowed | |", "|---|---|---|---|", *rows, ""])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
