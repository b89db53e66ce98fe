"""Defines the requests and answers about money."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, JsonValue

from troop.bench.admission.admission import MOST_FILES
from troop.bench.api.run_answers import forbidden_file
from troop.bench.definition.money import rounded
from troop.bench.flows.estimating import Judged
from troop.shared.api.errors import answers
from troop.shared.api.models import KEY_PATTERN, LONGEST_KEY, In, Out

Rounded = Annotated[float, BeforeValidator(lambda value: rounded(value) if isinstance(value, Decimal) else value)]
"""An amount rounded to a millionth, as stored."""

RunKey = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_KEY,
        pattern=KEY_PATTERN,
        description="Idempotency key, chosen by the caller: repeating it within a week starts nothing new",
    ),
]

_CURRENCY = "The currency of all amounts: USD, or the currency of the partition's price list"


class EstimateIn(In):
    """A benchmark to estimate: the same as to run it, without the key."""

    definition: dict[str, JsonValue] = Field(
        description="The benchmark's file as a document, by the schema benchmarks/benchmark.schema.json"
    )
    size: str | None = Field(
        None,
        max_length=128,
        description="One of the file's sizes, or several with commas between them; null for the file unchanged",
    )
    set: dict[str, JsonValue] = Field(
        {}, max_length=100, description="Changes to the file after the size: values by keys such as parameters.threads"
    )
    files: dict[str, str] = Field(
        {},
        max_length=MOST_FILES,
        description="The files beside the benchmark's file, by name, in Base64; at most 1 MiB in all, before encoding",
    )


class ItemOut(Out):
    """One line of a bill."""

    what: str
    quantity: Rounded
    unit: str
    price: float | None = Field(description="The price of one unit; null if unknown")
    amount: Rounded | None = Field(description="null if the price is unknown; sums then exclude it")


class CostOut(Out):
    """The actual cost of something."""

    amount: float
    currency: str = Field(description=_CURRENCY)
    items: list[ItemOut]
    unknown: list[str] = Field(description="Items without a known price, which the amount excludes")
    on_demand: Rounded | None = Field(
        None,
        description="What the same would have cost with all nodes on demand; null if unknown, or without spot nodes",
    )


class ExpectedOut(Out):
    """The expected cost of a run at its admission."""

    expected: float
    most: float = Field(description="The cost with all timeouts and attempts, and without spot capacity")
    currency: str = Field(description=_CURRENCY)
    budget: float | None


class CellEstimateOut(BaseModel):
    """The expected cost of one attempt at a cell, and the most that all attempts can cost."""

    cell: str
    label: str = Field(description="What distinguishes it from the run's other cells")
    seconds: int = Field(description="The expected seconds that its nodes exist")
    expected: float
    most: float
    items: list[ItemOut]


class RefusalOut(BaseModel):
    """Why a run would be refused."""

    where: str
    problem: str
    allowed: str
    loc: list[str | int] = Field(description="The path to it in the definition, or in size, set or files")


class QuotaOut(BaseModel):
    """A quota of vCPUs of running instances, and how much of it a run needs at a time."""

    service: str = Field(description="The service's code in Service Quotas")
    code: str = Field(description="The quota's code in Service Quotas")
    what: str
    vcpus: int = Field(description="The vCPUs of the cells that run together")
    without_spot: int = Field(description="The same if all spot nodes run on demand; 0 for a quota of spot")
    desired: int = Field(description="The larger of both, for a request to AWS")
    value: float | None = Field(description="The account's quota; null if unknown")


class MergeOut(BaseModel):
    """Seconds of processor time to merge the results of the largest cell."""

    seconds: int = Field(description="At most, if nodes store as much as they may")
    most: int = Field(description="Allowed: half of the function's time")


class EstimateOut(ExpectedOut):
    """The expected cost of a run, by cell."""

    billing: str
    unknown: list[str] = Field(description="Items without a known price, which all amounts exclude")
    warnings: list[str]
    problems: list[RefusalOut] = Field(description="Why the run would be refused; empty if it would be admitted")
    seconds: int = Field(description="The expected seconds of the run, with the launch of its nodes")
    region: str
    quotas: list[QuotaOut] = Field(description="The quotas of vCPUs that the run needs, apart from other instances")
    merge: MergeOut
    cells: list[CellEstimateOut]

    @classmethod
    def from_judged(cls, judged: Judged) -> EstimateOut:
        document = _floats(judged.document())
        problems = [
            RefusalOut(
                where=one.where,
                problem=f"{one.message}: must be {one.allowed}",
                allowed=one.allowed,
                loc=list(one.place),
            )
            for one in judged.problems
        ]
        known = {name: document[name] for name in cls.model_fields if name in document}
        return cls(**{**known, "problems": problems})


def estimated(file: str) -> dict[int, Any]:
    """Returns the ``responses`` of a route that estimates; ``file`` names what its file describes."""
    description = "The estimate; its problems state why the run would be refused"
    content = {"application/json": {"model": EstimateOut}}
    return answers("", 400) | {200: {"description": description, "content": content}, **forbidden_file(file)}


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _floats(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _floats(inner) for key, inner in value.items()}
    return [_floats(inner) for inner in value] if isinstance(value, list) else _plain(value)
