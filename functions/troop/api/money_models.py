"""What the API takes and says of money."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from troop.api.errors import answers
from troop.api.models import Out
from troop.api.run_answers import forbidden_file
from troop.api.unit_models import refuse_unknown
from troop.bench.admission import MOST_FILES
from troop.bench.money import rounded
from troop.flows.bench.estimating import Judged

Rounded = Annotated[float, BeforeValidator(lambda value: rounded(value) if isinstance(value, Decimal) else value)]
"""To a millionth, as it is on record."""

_CURRENCY = "Of all amounts: USD, or what the partition's price list is in"


class EstimateIn(BaseModel):
    """A benchmark whose cost is asked for: as for a run, but without a key."""

    model_config = ConfigDict(extra="forbid")

    definition: dict[str, JsonValue] = Field(
        description="The benchmark's file as a document: what benchmarks/benchmark.schema.json describes"
    )
    size: str | None = Field(None, max_length=64, description="One of the file's sizes; null for the file as it stands")
    set: dict[str, JsonValue] = Field(
        {}, max_length=100, description="Changes after the size, such as parameters.threads: the value by its key"
    )
    files: dict[str, str] = Field(
        {},
        max_length=MOST_FILES,
        description="What lies beside the benchmark's file, by name, in Base64; 1 MiB in all, before that",
    )

    @model_validator(mode="before")
    @classmethod
    def _known(cls, raw: Any) -> Any:
        return refuse_unknown(raw, cls)


class ItemOut(Out):
    """One line of a bill."""

    what: str
    quantity: Rounded
    unit: str
    price: float | None = Field(description="Of one unit; null when it is not known")
    amount: Rounded | None = Field(description="Null when the price is not known; then no sum holds it")


class CostOut(Out):
    """What something has cost."""

    amount: float
    currency: str = Field(description=_CURRENCY)
    items: list[ItemOut]
    unknown: list[str] = Field(description="What has no price, and is not in the amount")


class ExpectedOut(Out):
    """What a run was expected to cost when it was admitted."""

    expected: float
    most: float = Field(description="With all time-outs and attempts, and no spot capacity")
    currency: str = Field(description=_CURRENCY)
    budget: float | None


class CellEstimateOut(BaseModel):
    """One cell: what one attempt is expected to cost, and what all together can."""

    cell: str
    label: str = Field(description="What sets it apart from the run's other cells")
    seconds: int = Field(description="How long its nodes are expected to be there")
    expected: float
    most: float
    items: list[ItemOut]


class RefusalOut(BaseModel):
    """Why a run would be refused."""

    where: str
    problem: str
    allowed: str
    loc: list[str | int] = Field(description="The way to it in the definition, or in size, set or files")


class EstimateOut(ExpectedOut):
    """What a run is expected to cost, cell by cell."""

    billing: str
    unknown: list[str] = Field(description="What has no price, and is in no figure")
    warnings: list[str]
    problems: list[RefusalOut] = Field(description="Why it would be refused; empty when it would not")
    cells: list[CellEstimateOut]

    @classmethod
    def of(cls, judged: Judged) -> EstimateOut:
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
    """The ``responses`` of a route that estimates; ``file`` says what its file describes."""
    description = "The estimate; its problems say why it would be refused"
    content = {"application/json": {"model": EstimateOut}}
    return answers("", 400) | {200: {"description": description, "content": content}, **forbidden_file(file)}


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _floats(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _floats(inner) for key, inner in value.items()}
    return [_floats(inner) for inner in value] if isinstance(value, list) else _plain(value)
