"""Generates what follows from the declarations of settings: ``python -m infra.settings_doc`` writes it.

- docs/reference/settings.md: sections, defaults and texts come from the declarations, allowed values
  from the parsers' errors.
- troop_aws/cdk.py: the types of the construct's settings.
- cdk.json: settings that it lacks, with their defaults. Its values remain, because people change them.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields

from infra import ROOT
from infra.settings import PREFIX, SETTINGS, DeploymentSettings
from troop.shared import values
from troop.shared.settings import Section, Settings
from troop.shared.stages import STAGE, STAGES

PATH = ROOT / "docs" / "reference" / "settings.md"
CONSTRUCT = ROOT / "troop_aws" / "cdk.py"
CDK = ROOT / "cdk.json"

_CALENDARS = ("[below](#a-calendar)", "an object of calendars by name, see [below](#a-calendar)")
"""Shown for the default, and for what is allowed, where the error says less."""

_STAGES = (
    (
        f"`{PREFIX}{STAGE}`",
        "`null`",
        f"null, or the name of one of `{PREFIX}{STAGES}`",
        "The stage to deploy; null uses only the defaults. `make deploy STAGE=prod` sets it.",
    ),
    (
        f"`{PREFIX}{STAGES}`",
        "[four](../guides/deploying.md#stages)",
        "an object of stages by name: a letter, then letters, digits and hyphens, at most 20 in all",
        "Named sets of settings that override the defaults ([more](../guides/deploying.md#stages)). "
        "Their keys are those of this page, without `troop:`.",
    ),
)
"""Rows of the keys that select settings, and have no value of their own in a deployment."""

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

Generated from the code by `make openapi`: change `functions/troop/shared/settings.py` or `infra/settings.py` instead.

Settings are the context of `cdk.json`. A change in that file applies to every later deployment. A setting on the
command line overrides the file and the stage, but only for one deployment. `make deploy KEEP=1 ARGS='-c
troop:probability=0.1'` changes one setting, and
[keeps those of earlier commands](../guides/deploying.md#what-a-deployment-changes). On the command line, write a
list with commas and an object as JSON:

```sh
make deploy KEEP=1 ARGS='-c troop:allowed_buckets=my-data,my-other-data'
make deploy KEEP=1 ARGS="-c 'troop:units={\\"web-v*\\": \\"web\\"}'"
```

All settings are checked before anything is deployed: an error names an unknown key or a value that is not allowed.
[deploying.md](../guides/deploying.md#2-deploy-leashed) lists the settings to consider first. An owner's policy for a
unit overrides these settings ([chaos.md](../guides/chaos.md)).
"""


_TYPES = re.compile(r"(?<=# Generated by `make openapi`:\n)(    \w+: .+\n)*")


def text() -> str:
    """Returns docs/reference/settings.md as it is committed."""
    parts = [_HEAD]
    for section in Section:
        rows = [_setting_row(key) for key, one in SETTINGS.items() if one.section is section]
        rows += [_row(*cells) for cells in _STAGES if section is Section.DEPLOYMENT]
        parts.append(f"## {section}\n\n{_table('setting', rows)}")
    calendar_fields = [_row(f"`{name}`", *cells) for name, cells in CALENDAR.items()]
    shown = json.dumps(SETTINGS["calendars"].default, indent=2)
    about = f"The default calendar:\n\n```json\n{shown}\n```\n"
    parts.append(f"## A calendar\n\n{_table('field', calendar_fields)}\n{about}\n{_RULES}")
    return "\n".join(parts)


def with_types(module: str) -> str:
    """Returns the source of the construct with the type of each setting."""
    parsed = {one.name: str(one.type) for one in (*fields(Settings), *fields(DeploymentSettings))}
    lines = [f"    {key}: {one.accepts or parsed[key]}\n" for key, one in SETTINGS.items()]
    return _TYPES.sub("".join(lines).replace("tuple[str, ...]", "Sequence[str]"), module)


def completed(written: str) -> str:
    """Returns the text of a cdk.json with the settings that it lacks, before the stage."""
    context = json.loads(written)["context"]
    missing = [key for key in SETTINGS if PREFIX + key not in context]
    lines = [f'"{PREFIX}{key}": {json.dumps(SETTINGS[key].default)},\n    ' for key in missing]
    next_key = STAGE if PREFIX + STAGE in context else "deployment"
    return written.replace(f'"{PREFIX}{next_key}"', "".join(lines) + f'"{PREFIX}{next_key}"', 1)


def allowed(key: str) -> str:
    """Returns what a setting can be: the phrase with which an unusable value is refused."""
    try:
        SETTINGS[key].parse(object())
    except values.BadValue as error:
        return str(error)
    raise AssertionError(f"{PREFIX}{key} accepts any value")


def _setting_row(key: str) -> str:
    one = SETTINGS[key]
    cells = _CALENDARS if key == "calendars" else (f"`{json.dumps(one.default)}`", allowed(key))
    return _row(f"`{PREFIX}{key}`", *cells, one.text)


def _table(first: str, rows: list[str]) -> str:
    return "\n".join([f"| {first} | default | allowed | |", "|---|---|---|---|", *rows, ""])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    for path, updated in ((CONSTRUCT, with_types), (CDK, completed)):
        path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")
