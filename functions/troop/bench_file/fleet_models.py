"""The keys of a standing fleet's file: a benchmark's, but for what has to do with measuring."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from troop.bench.definition import Benchmark, Phase
from troop.bench.money import ZERO, Price
from troop.bench.standing import SETUP
from troop.bench_file import money
from troop.bench_file.fields import BOOLEAN, PARAMETER, described, duration, seconds, text
from troop.bench_file.models import BENCHMARK, BUCKET, FILE, KEY, ROLE, ArtifactIn, FleetIn

_DESCRIPTION = text(1000)
_EXPIRES, _TIMEOUT = duration("10m", "24h"), duration("1s", "2h")


def _without_spot_timeout(schema: dict[str, Any]) -> None:
    del schema["properties"]["spot_timeout"]


class StandingIn(FleetIn):
    """The nodes of one role: instances of one type, in subnets without a way to the internet."""

    # Its value is refused with the reason, which says more than that the key is not known.
    model_config = ConfigDict(json_schema_extra=_without_spot_timeout)


class FleetFileIn(BaseModel):
    """A standing fleet: nodes that stay until their time is over or they are removed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, BENCHMARK] = described(BENCHMARK, "What it is called")
    description: Annotated[str, _DESCRIPTION] = described(_DESCRIPTION, "What it is for", default="")
    expires_after: Annotated[int, _EXPIRES] = described(_EXPIRES, "When whatever exists of it is removed")
    fleets: dict[Annotated[str, ROLE], StandingIn] = Field(
        min_length=1, max_length=10, description="The nodes it begins with: a mapping of at most 10 roles to fleets"
    )
    setup: Annotated[str | None, FILE] = described(
        FILE, "A file beside this one that each node runs once after its boot, as phases run scripts", default=None
    )
    setup_timeout: Annotated[int, _TIMEOUT] = described(
        _TIMEOUT, "After which that is killed, and the node has failed", default=seconds("10m")
    )
    parameters: dict[Annotated[str, KEY], Annotated[Any, PARAMETER]] = Field(
        {}, max_length=200, description="For the script: a mapping of names to values"
    )
    artifacts: list[ArtifactIn] = Field([], max_length=20, description="Large files: a list of at most 20")
    buckets: list[Annotated[str, BUCKET]] = Field(
        [],
        max_length=20,
        description="S3 buckets that nodes may read, if the deployment allows it, too: a list of names",
    )
    budget: Annotated[Decimal | None, money.BUDGET] = described(
        money.BUDGET, "USD; a fleet that is expected to cost more until it expires is refused", default=None
    )
    prices: dict[Annotated[str, money.PRICED_IN_FLEETS], Annotated[Price, money.PRICE]] = Field(
        {},
        max_length=50,
        description=f"By hand, before those of AWS: a mapping of instance types to {money.PRICE.allowed}; and of gp3 "
        "and io2 (a GiB-month) to a number",
    )
    accept_unknown_prices: Annotated[bool, BOOLEAN] = described(
        BOOLEAN, "It may begin though what its nodes cost is not known", default=False
    )

    def build(self, files: tuple[str, ...] = ()) -> Benchmark:
        roles = tuple(self.fleets)
        return Benchmark(
            name=self.name,
            description=self.description,
            expires_after=self.expires_after,
            fleets=tuple(fleet.build(role) for role, fleet in self.fleets.items()),
            phases=(Phase(SETUP, roles, self.setup, self.setup_timeout),) if self.setup else (),
            parameters=dict(self.parameters),
            artifacts=tuple(artifact.build() for artifact in self.artifacts),
            buckets=tuple(self.buckets),
            files=tuple(sorted(files)),
            money=money.build_money(self.budget, money.DEFAULT_BILLING, self.prices, self.accept_unknown_prices, ZERO),
            standing=True,
        )
