"""Time zones: the pinned package decides, whatever files the machine has."""

from __future__ import annotations

import json
import shutil
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import tzdata
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.app import app
from tests.unit.chaos.build import calendar
from troop.bench.records.schedule import check_zone
from troop.chaos.expected_ticks import ticks_of
from troop.shared import zones
from troop.shared.values import BadValue

FILES = Path(tzdata.__file__).parent / "zoneinfo"
WINTER = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture
def _machine(tmp_path: Path) -> Iterator[None]:
    """A machine whose zone files are wrong, and which has a zone that the package lacks."""
    for name in ("America/Vancouver", "Europe/Vienna", "Mars/Olympus"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(FILES / "Asia" / "Tokyo", tmp_path / name)
    zoneinfo.reset_tzpath(to=[tmp_path])
    zoneinfo.ZoneInfo.clear_cache()
    zones.zone.cache_clear()
    yield
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()


@pytest.mark.usefixtures("_machine")
def test_the_machines_zone_files_decide_nothing() -> None:
    assert zoneinfo.ZoneInfo("America/Vancouver").utcoffset(datetime(2026, 12, 1)) == timedelta(hours=9)  # noqa: DTZ001
    vancouver = calendar(time_zone="America/Vancouver", country=None)
    day = WINTER.date()
    nine = datetime(2026, 12, 1, 16, tzinfo=UTC)  # British Columbia stays at -07:00 from November 2026 on
    assert vancouver.window(day)[0] == nine
    assert ticks_of(vancouver, day, 15)[0] == nine
    assert vancouver.local(WINTER).utcoffset() == timedelta(hours=-7)


@pytest.mark.usefixtures("_machine")
def test_a_plan_takes_the_pinned_zones_and_says_which(tmp_path: Path) -> None:
    (tmp_path / "groups.yaml").write_text("- {name: web, desired: 3}\n")
    (tmp_path / "settings.yaml").write_text(
        "calendars: {default: {time_zone: America/Vancouver, open: '09:00', close: '15:00'}}\nprobability: 1\n"
    )
    files = ["--groups", str(tmp_path / "groups.yaml"), "--settings", str(tmp_path / "settings.yaml")]
    done = CliRunner().invoke(app, ["plan", *files, "--day", "2026-12-01", "--json"])
    document = json.loads(done.stdout)
    assert document["time_zones"] == zones.VERSION
    assert document["units"][0]["local_tick"].endswith("-07:00")


@pytest.mark.usefixtures("_machine")
@pytest.mark.parametrize("name", ["Mars/Olympus", "Factory", "", "../Europe/Vienna", "/etc/localtime", "europe/vienna"])
def test_a_zone_that_the_package_lacks_is_an_error(name: str) -> None:
    with pytest.raises(zones.UnknownZoneError, match=r"no time zone of the IANA database 20\d\d[a-z]"):
        zones.zone(name)
    with pytest.raises(BadValue):
        check_zone(name)


def test_every_name_has_a_zone_and_every_zone_is_one_object() -> None:
    assert len(zones.names()) > 500
    for name in zones.names():
        assert zones.zone(name) is zones.zone(name)
        assert zones.zone(name).key == name


@given(
    name=st.sampled_from(["America/Vancouver", "Africa/Casablanca", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"]),
    moment=st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_offsets_are_those_of_the_zone_at_every_moment(name: str, moment: datetime) -> None:
    listed = zones.offsets(name, datetime(2024, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))
    _, minutes, abbreviation = [change for change in listed if change[0] <= moment][-1]
    local = moment.astimezone(zones.zone(name))
    assert (local.utcoffset(), local.tzname()) == (timedelta(minutes=minutes), abbreviation)
