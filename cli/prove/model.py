"""Defines questions and their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What a step does in the account."""

    READS = "reads"
    CREATES = "creates and removes"
    LAUNCHES = "launches nodes"


class Verdict(StrEnum):
    """The answer to a question."""

    YES = "yes"
    NO = "no"
    OPEN = "open"
    ONLY_AWS = "only AWS proves this"
    SKIPPED = "skipped"
    FAILED = "failed"


Judgement = tuple[Verdict, str]
"""A verdict, and a sentence about it."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question that only an account can answer.

    Attributes:
        name: for the option ``--only``.
        text: the question; a yes is what Troop relies on.
        why: what depends on it.
        step: what is done to answer it.
        price: the most that the step costs, in US dollars.
        needs: the caller's IAM permissions.
        judge: makes an answer of the evidence.
    """

    name: str
    text: str
    why: str
    step: str
    price: Decimal = Decimal(0)
    kind: Kind
    needs: tuple[str, ...]
    judge: Callable[[Any], Judgement]

    @property
    def probe(self) -> str:
        """The name of a method of :class:`cli.prove.probes.Probes`; it returns evidence, as JSON."""
        return self.name.replace("-", "_")


@dataclass(frozen=True)
class Answer:
    """The answer to one question.

    Attributes:
        detail: a sentence.
        evidence: what AWS answered, as JSON; may contain names.
    """

    question: Question
    verdict: Verdict
    detail: str
    evidence: Any = None

    def as_json(self) -> Mapping[str, Any]:
        return {
            "name": self.question.name,
            "question": self.question.text,
            "verdict": self.verdict.value,
            "detail": self.detail,
            "evidence": self.evidence,
        }
