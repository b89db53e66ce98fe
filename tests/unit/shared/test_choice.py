"""Choices: faults with parameters, as people write them in policies, settings and requests."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.faults import FAULTS, LASTING, find_lasting, names
from troop.faults.lasting_fault import INSTALLATION
from troop.shared.choice import LONGEST, Choice, parse_choice, parse_choices, text_of
from troop.shared.values import BadValue

ALL = ", ".join(names())


def refusal(parse: Any, value: Any) -> str:
    with pytest.raises(BadValue) as caught:
        parse(value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("written", "one_form"),
    [
        ("crash", "crash"),
        (" crash ", "crash"),
        ("drain, crash", "crash, drain"),  # in the order of the table, whatever the order of a tag
        ("crash,crash", "crash"),
        ("crash,", "crash"),
        ("latency  delay=300   seconds=60", "latency delay=300 seconds=60"),
        ("latency seconds=60 delay=300", "latency delay=300 seconds=60"),
        ("cpu load=80, cpu load=50", "cpu load=50, cpu load=80"),
        ("cpu, cpu seconds=300", "cpu seconds=300"),  # the same fault
        ("kill process=nginx", "kill process=nginx"),
        ("blackhole protocol=tcp port=5432, drain", "drain, blackhole port=5432 protocol=tcp"),
    ],
)
def test_sets_are_stored_as_text_in_one_form(written: str, one_form: str) -> None:
    choices = parse_choices(written)
    assert text_of(choices) == one_form
    assert parse_choices(one_form) == choices


@pytest.mark.parametrize(
    ("written", "must_be"),
    [
        ("", f"one or more of {ALL}, separated by commas"),
        (" , ", f"one or more of {ALL}, separated by commas"),
        (None, f"one or more of {ALL}, separated by commas"),
        (["crash"], f"one or more of {ALL}, separated by commas"),
        ("crash, " * 200, "at most 1,000 characters"),
        (" , " * 400, "at most 1,000 characters"),
        ("explode", f"one of {ALL}"),
        ("Crash", f"one of {ALL}"),
        ("crash drain", "crash with words such as seconds=60, each once"),
        ("crash seconds=60", "crash without parameters"),
        ("cpu 80", "cpu with words such as seconds=60, each once"),
        ("cpu load=80 load=90", "cpu with words such as seconds=60, each once"),
        ("cpu load=101", "cpu with load as a whole number from 1 to 100"),
        ("cpu seconds=9", "cpu with seconds as a whole number from 10 to 900"),
        ("cpu seconds=901", "cpu with seconds as a whole number from 10 to 900"),
        ("cpu seconds=060", "cpu with seconds as a whole number from 10 to 900"),
        ("kill", "kill with process, such as kill process=..."),
        ("kill process=$(reboot)", "kill with process as a process's name of at most 15 letters, digits, dots, "
         "hyphens and underscores"),
        ("latency sources=;reboot", None),
        ("cpu delay=5", None),
    ],
)  # fmt: skip
def test_refusals_name_the_value_and_all_allowed_ones(written: Any, must_be: str | None) -> None:
    words = refusal(parse_choices, written)
    assert words == must_be if must_be else words.startswith(f"{written.split()[0]} with ")


def test_one_fault_is_not_several() -> None:
    assert parse_choice("cpu load=80").parameters == (("load", "80"),)
    assert refusal(parse_choice, "crash, drain") == "one fault"


@pytest.mark.parametrize("name", names())
def test_a_lasting_fault_takes_its_time_and_that_of_its_proof(name: str) -> None:
    fault = find_lasting(name)
    if fault is None:
        assert parse_choice(name).takes(installs=True) == timedelta()
        return
    required = " ".join(f"{one.name}=1" for one in fault.parameters if one.default is None)
    usual = parse_choice(f"{name} {required}").takes()
    longer = parse_choice(f"{name} {required} seconds={int(fault.defaults()['seconds']) + 100}")
    assert longer.takes() == usual + timedelta(seconds=100)
    assert usual == timedelta(seconds=fault.longest(int(fault.defaults()["seconds"])) + 120)
    assert longer.takes(installs=True) - longer.takes() == timedelta(seconds=INSTALLATION)


SAFE = st.text(st.sampled_from("abz019._-/:"), min_size=1, max_size=12)
KEYS = sorted({one.name for fault in LASTING for one in fault.parameters})
PAIRS = st.dictionaries(st.sampled_from(KEYS), SAFE | st.integers(0, 999).map(str))
WORDS = st.tuples(st.sampled_from(names()), PAIRS).map(
    lambda one: " ".join([one[0], *(f"{key}={value}" for key, value in one[1].items())])
)


@given(st.lists(WORDS | st.text(max_size=30), max_size=4).map(",".join))
def test_accepted_text_has_one_form_and_only_known_parameters(written: str) -> None:
    try:
        choices = parse_choices(written)
    except BadValue:
        return
    assert parse_choices(text_of(choices)) == choices
    assert len({choice.effect for choice in choices}) == len(choices) > 0
    for choice in choices:
        assert choice.lasting or choice.name in {fault.name for fault in FAULTS}
        assert choice.lasting or not choice.parameters
        # Run Command's documents put the values into shell scripts.
        assert all(re.fullmatch(r"[A-Za-z0-9._/:-]+", value) for _, value in choice.parameters)


@given(st.text(min_size=LONGEST + 1, max_size=LONGEST + 20))
def test_no_text_is_too_long_to_refuse(written: str) -> None:
    refusal(parse_choices, written)


def test_faults_with_the_same_effect_are_the_same() -> None:
    assert parse_choice("cpu").effect == parse_choice("cpu seconds=300").effect
    assert parse_choice("cpu").effect != parse_choice("cpu seconds=301").effect
    assert Choice("crash").effect == ("crash", ())
