"""Applies all rules to what a reading knows about an account. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from troop.risks.risk import Key
from troop.risks.rule import Hit, Rule, Subject, Unknown
from troop.risks.rules import RULES


@dataclass(frozen=True)
class Survey:
    """What one reading knows about an account.

    Attributes:
        at: the moment of the reading.
        subjects: the subjects by kind, as far as they could be listed.
        partial: the kinds of which some may be missing.
        unread: what could not be read, or not completely, in sentences.
    """

    at: datetime
    subjects: Mapping[Subject, Sequence[Any]]
    partial: frozenset[Subject] = frozenset()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """A rule that holds for a subject."""

    rule: Rule
    subject: str
    owner: str
    hit: Hit

    @property
    def key(self) -> Key:
        return self.rule.name, self.subject


@dataclass(frozen=True)
class Assessment:
    """What the rules say about a survey.

    Attributes:
        findings: in the order of the rules, then of the subjects.
        unknown: why a rule could not decide, by rule and subject.
        partial: see :class:`Survey`.
    """

    at: datetime
    findings: tuple[Finding, ...]
    unknown: Mapping[Key, str] = field(default_factory=dict)
    partial: frozenset[Subject] = frozenset()


def assess(survey: Survey, rules: Sequence[Rule] = RULES) -> Assessment:
    """Returns what the rules say."""
    findings: list[Finding] = []
    unknown: dict[Key, str] = {}
    for rule in rules:
        for subject in survey.subjects.get(rule.subject, ()):
            match rule.check(subject):
                case Hit() as hit:
                    findings.append(Finding(rule, subject.name, subject.owner, hit))
                case Unknown(why):
                    unknown[rule.name, subject.name] = why
    return Assessment(survey.at, tuple(findings), unknown, survey.partial)
