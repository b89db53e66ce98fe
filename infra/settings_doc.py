"""docs/settings.md, generated: ``python -m infra.settings_doc`` writes it.

Defaults come from cdk.json, and what is allowed from the refusals of :mod:`infra.settings`. What a setting means to
whoever chooses it stands here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from infra import ROOT
from infra.settings import PREFIX, read_settings, written_context
from troop.errors import SettingsError

PATH = ROOT / "docs" / "settings.md"

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "The deployment": {
        "deployment": "The stack's name, by which the commands find it (`troop -d NAME`). Another name is another "
        "deployment, with tables, salt and switch of its own.",
        "stage": "Which of the stages is deployed; null for none, just the defaults. `make deploy STAGE=prod` sets it.",
        "stages": "Named sets of settings over the defaults ([more](deploying.md#stages)). Keys are those of this "
        "page, without `troop:`.",
        "bundle": "For which machine the functions' packages are chosen. Leave it: `auto` is `lambda`, except where "
        "`AWS_ENDPOINT_URL` names AWS on this machine, which takes `machine`.",
    },
    "What chaos decides by": {
        "leashed": "Whether chaos decides and records only. It counts until somebody has used the switch (`troop "
        "unleash`, `troop leash`); from then on the switch does.",
        "participation": "`opt-out`: every unit takes part unless it is opted out. `opt-in`: none does until it is "
        "opted in.",
        "probability": "Of a termination, for each unit and business day: 1 is one a day, 0.2 one a week on average, "
        "0 none. An owner's `probability` counts more.",
        "min_healthy": "How many healthy instances in service a group must have, at least, to take part. An owner's "
        "`min_healthy` counts more.",
        "lowest_min_healthy": "The least `min_healthy` that owners can set. A lower one, in the table or in a tag, "
        "counts as this; `troop group` then names this setting as its source. At most `troop:min_healthy`.",
        "min_days_between": "Business days from one termination of a unit to its next; 0 and 1 both allow one on "
        "every business day. An owner's `min_days_between` counts more.",
        "method": "`crash`: EC2 ends the instance without a shutdown of its operating system, as if the machine had "
        "died ([what data it can lose](chaos.md#what-a-crash-can-lose)). `drain`: Auto Scaling terminates it, through "
        "lifecycle hooks and the load balancers' draining. An owner's `method` counts more.",
        "max_per_day": "Terminations a day, of the whole deployment, those on demand included; the day is the "
        "calendar's own.",
        "max_in_flight": "Terminations at one time, of the whole deployment, whose groups have not recovered yet.",
        "on_demand": "Whether the API takes requests to terminate an instance (`troop terminate`). IAM says who may "
        "make them.",
        "recovery_timeout_minutes": "Minutes that a group has to be whole again. After them it is `UNRECOVERED`, and "
        "its unit is left alone until somebody opts it in.",
        "units": "Which groups belong together, by patterns of their names: all that match share one unit's policy, "
        "roll and history. The first pattern that matches counts; a group's tag `troop:unit` counts more.",
        "calendars": "When chaos may happen: calendars by name, of which `default` is every group's that names no "
        "other (`calendar`).",
        "tick_minutes": "Minutes between two ticks in the hours of a calendar. What is due waits for the next tick; "
        "every tick writes a decision for every unit, so fewer minutes cost more.",
    },
    "What is kept": {
        "retain_data": "Whether tables, buckets, the salt and logs outlive the deployment (`make destroy`), and "
        "tables are protected from deletion. With false they go with it.",
        "decision_retention_days": "For how many days it can be asked why a unit was left alone. Events and changes "
        "are kept for good.",
        "log_retention_days": "For how many days all logs are kept: of functions, workflows, and the API's requests. "
        "The numbers are those that CloudWatch Logs knows.",
        "results_retention_days": "For how many days the results and reports of benchmarks are kept. What was "
        "uploaded for them to install is kept for 30 days.",
    },
    "What operators see": {
        "runbook_url": "Where your people read [the runbook](runbook.md). Alarms name it with `#` and a paragraph "
        "behind it; dashboards link to it where it begins with `https://`.",
        "dashboards": "Whether the deployment has its two. An account has three for nothing, and pays for each further "
        "one.",
        "daily_cost_alarm": "An alarm is on when benchmarks and fleets have cost this much or more within a day: US "
        "dollars, in China yuan. What still runs counts, too.",
        "api_access_logs": "Whether API Gateway logs each request, those that IAM refuses included. It can do that "
        "only where a setting of the account names a role for **all APIs of the region**: with true, the deployment "
        "makes a role and puts it there, in the place of one that may be there, and both stay when the deployment "
        "goes. With false the API's function still logs each request that reaches it, with its caller.",
    },
    "Benchmarks": {
        "benchmarks": "Whether the deployment has the half that runs [benchmarks](benchmarks.md) and fleets. With "
        "false there is no network, and no role that may launch anything.",
        "network": "Where fleets are launched: null for a VPC that the deployment makes, or one of yours, with its "
        "subnets ([more](deploying.md#benchmarks)).",
        "zones": "Availability zones of the deployment's own VPC, with a subnet in each; no more than the region has "
        "for your account. Not looked at with `troop:network`.",
        "allowed_buckets": "S3 buckets that nodes may read. A benchmark's or fleet's file has to name a bucket, too "
        "(`buckets`).",
        "max_nodes": "The most nodes that one run can have at one time. The limit also holds for one standing fleet.",
        "max_nodes_total": "The most nodes of all open runs and standing fleets together. A run holds its largest "
        "number of nodes from its admission until its teardown ends; a fleet holds its size.",
        "max_run_cost": "What one run or standing fleet can cost, in US dollars (in China, yuan); `none` for no limit "
        "([more](costs.md#limits)). Troop refuses what it expects to cost more, and stops what has cost more.",
        "instance_types": "The instance types that nodes can have, as patterns: `c7g.*` matches all sizes of c7g. "
        "IAM enforces them, too: the launching role cannot start another type.",
    },
}
"""Heading -> key -> what it means, in Markdown."""

_ALLOWED = {
    "stage": "null, or the name of one of `troop:stages`",
    "stages": "an object of stages by name: a letter, then letters, digits and hyphens, at most 20 in all",
    "calendars": "an object of calendars by name, see [below](#a-calendar)",
}
"""Where a refusal tells less, or of the stages of the day."""

_SHOWN_BELOW = {"calendars": "[below](#a-calendar)", "stages": "[three](deploying.md#stages)"}

CALENDAR = {
    "time_zone": (
        "required",
        "an IANA time zone, such as Europe/Vienna",
        "Whose clock all times and days are read on.",
    ),
    "open": ("required", "a time of day as HH:MM", "When the window opens."),
    "close": (
        "required",
        "a time of day as HH:MM, up to 24:00, more than 15 minutes after `open`",
        "When it closes. No roll falls due in its last 15 minutes.",
    ),
    "weekdays": ("MON to FRI", "a list of MON, TUE, WED, THU, FRI, SAT, SUN", "The working week."),
    "country": (
        "null",
        "an ISO 3166 code, such as US, AT or IL",
        "Whose public holidays are days off; null: no country's.",
    ),
    "subdivision": ("null", "a code of the country's, such as CA", "Whose regional holidays are days off, too."),
    "extra_dates": (
        "none",
        'a list of objects such as `{"date": "2026-12-24", "name": "Christmas Eve"}`',
        "Further days off.",
    ),
    "freezes": (
        "none",
        'a list of objects such as `{"from": "2026-11-26", "to": "2026-11-30", "reason": "peak sales"}`',
        "Days without chaos, both ends included. They are business days all the same (`troop:min_days_between`).",
    ),
}
"""Field -> default, what is allowed, what it means."""

_HEAD = """\
# Settings

Generated from the code by `make openapi`: change `infra/settings_doc.py` instead.

Settings are the context of `cdk.json`. What you change there, the next deployment has, too; `make deploy
ARGS='-c troop:probability=0.1'` changes one for this time, and counts more than the file and the stage. On the command
line a list is written with commas, an object as JSON:

```sh
make deploy ARGS='-c troop:allowed_buckets=my-data,my-other-data'
make deploy ARGS="-c 'troop:units={\\"web-v*\\": \\"web\\"}'"
```

Everything is checked before anything is deployed: a key that does not exist and a value that is not allowed are refused
by name. [deploying.md](deploying.md#2-deploy-leashed) says which are worth a thought at first. What owners say about
their own units counts more than these ([chaos.md](chaos.md)).
"""


def text() -> str:
    """The document as it is committed."""
    context = written_context()
    parts = [_HEAD]
    for heading, settings in SECTIONS.items():
        rows = [
            _row(f"`{PREFIX}{key}`", _default(context, key), allowed(context, key), settings[key]) for key in settings
        ]
        parts.append(f"## {heading}\n\n{_table('setting', rows)}")
    fields = [_row(f"`{field}`", *cells) for field, cells in CALENDAR.items()]
    shown = json.dumps(context[f"{PREFIX}calendars"], indent=2)
    about = f"The one there is by default:\n\n```json\n{shown}\n```\n"
    parts.append(f"## A calendar\n\n{_table('field', fields)}\n{about}")
    return "\n".join(parts)


def allowed(context: Mapping[str, Any], key: str) -> str:
    """What a setting may be: the phrase with which a value that can be none is refused."""
    if key in _ALLOWED:
        return _ALLOWED[key]
    try:
        read_settings({**context, f"{PREFIX}stages": {}, PREFIX + key: object()})
    except SettingsError as error:
        return error.allowed
    raise AssertionError(f"{PREFIX}{key} takes anything")


def _default(context: Mapping[str, Any], key: str) -> str:
    return _SHOWN_BELOW.get(key) or f"`{json.dumps(context[PREFIX + key])}`"


def _table(first: str, rows: list[str]) -> str:
    return "\n".join([f"| {first} | default | allowed | |", "|---|---|---|---|", *rows, ""])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
