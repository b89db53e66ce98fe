"""Models a standing fleet's file: the keys of a benchmark's file without those for measuring."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from troop.bench.definition.definition import ON_DEMAND, SPOT, Benchmark, Fleet, Phase
from troop.bench.definition.keys import BOOLEAN, duration, one_of, seconds, text
from troop.bench.definition.money import STORAGE, Price
from troop.bench.definition.standing import SETUP
from troop.bench.file import money_keys
from troop.bench.file.fields import PARAMETER, Part, described
from troop.bench.file.models import (
    BENCHMARK,
    BUCKET,
    FILE,
    MOST_FLEETS,
    MOST_TARGETS,
    ROLE,
    TARGET,
    TARGETS,
    ArtifactIn,
    FleetIn,
    TargetIn,
)
from troop.bench.file.points import KEY

_DESCRIPTION = text(1000)
_BACKUP = one_of(ON_DEMAND)
_EXPIRES, _TIMEOUT = duration("10m", "24h"), duration("1s", "2h")


def _without_keys_of_benchmarks(schema: dict[str, Any]) -> None:
    for key in ("load", "fallback_types"):
        del schema["properties"][key]


class StandingIn(FleetIn):
    """The nodes of one role: instances of one type, in subnets without a route to the internet."""

    # relations.fleet_file_problems refuses these keys with a reason, which helps more than "is not known".
    model_config = ConfigDict(json_schema_extra=_without_keys_of_benchmarks)

    backup: Annotated[str | None, _BACKUP] = described(
        _BACKUP,
        "What launches nodes that spot lacks for spot_timeout, until spot has them again; by default nothing, and no "
        "effect on demand",
        default=None,
    )
    resizable: Annotated[bool | None, BOOLEAN] = described(
        BOOLEAN,
        "Whether the role's number of nodes may change; by default it may, unless the fleet has ranks",
        default=None,
    )

    def build(self, role: str) -> Fleet:
        return replace(super().build(role), backup=self.backup if self.purchase == SPOT else None)


class FleetFileIn(Part):
    """A standing fleet: nodes that stay until the fleet expires or is removed."""

    name: Annotated[str, BENCHMARK] = described(BENCHMARK, "Name of the fleet")
    description: Annotated[str, _DESCRIPTION] = described(_DESCRIPTION, "Purpose of the fleet", default="")
    expires_after: Annotated[int, _EXPIRES] = described(_EXPIRES, "Time after which Troop removes the fleet")
    fleets: dict[Annotated[str, ROLE], StandingIn] = Field(
        min_length=1,
        max_length=MOST_FLEETS,
        description=f"Fleets by role, as launched: a mapping of at most {MOST_FLEETS} roles to fleets",
    )
    setup: Annotated[str | None, FILE] = described(
        FILE, "A script in this folder that each node runs once after boot, as phases run scripts", default=None
    )
    setup_timeout: Annotated[int, _TIMEOUT] = described(
        _TIMEOUT, "Time after which setup is killed and the node fails", default=seconds("10m")
    )
    ranks: Annotated[bool, BOOLEAN] = described(
        BOOLEAN, "Whether nodes have ranks and a roster; a replacement takes the rank of the lost node", default=False
    )
    parameters: dict[Annotated[str, KEY], Annotated[Any, PARAMETER]] = Field(
        {}, max_length=200, description="Parameters of the script: a mapping of names to values"
    )
    artifacts: list[ArtifactIn] = Field([], max_length=20, description="Large files: a list of at most 20")
    buckets: list[Annotated[str, BUCKET]] = Field(
        [],
        max_length=20,
        description="S3 buckets that nodes may read, if the deployment also allows it: a list of names",
    )
    targets: dict[Annotated[str, TARGET], TargetIn] = Field({}, max_length=MOST_TARGETS, description=TARGETS)
    own_data: Annotated[bool, BOOLEAN] = described(
        BOOLEAN, "Whether nodes store objects, such as results, if the deployment also allows it", default=False
    )
    budget: Annotated[Decimal | None, money_keys.BUDGET] = described(
        money_keys.BUDGET,
        "Budget in USD; Troop refuses a fleet whose expected cost until it expires is higher",
        default=None,
    )
    prices: dict[Annotated[str, money_keys.PRICED_IN_FLEETS], Annotated[Price, money_keys.PRICE]] = Field(
        {},
        max_length=50,
        description="Your prices, for figures beside AWS's and where AWS lists none: a mapping of instance types to "
        f"{money_keys.PRICE.allowed}; and of {', '.join(STORAGE)} (a GiB-month) to a number",
    )
    accept_unknown_prices: Annotated[bool, BOOLEAN] = described(
        BOOLEAN, "Launch the fleet even if prices of its nodes are unknown", default=False
    )

    def build(self, files: tuple[str, ...] = ()) -> Benchmark:
        roles = tuple(self.fleets)
        return Benchmark(
            name=self.name,
            description=self.description,
            expires_after=self.expires_after,
            fleets=tuple(
                replace(fleet.build(role), fixed=self._is_fixed(fleet)) for role, fleet in self.fleets.items()
            ),
            phases=(Phase(SETUP, roles, self.setup, self.setup_timeout),) if self.setup else (),
            parameters=dict(self.parameters),
            artifacts=tuple(one.build() for one in self.artifacts if one.is_needed([self.parameters])),
            buckets=tuple(self.buckets),
            files=tuple(sorted(files)),
            money=money_keys.build_money(
                self.budget, money_keys.DEFAULT_BILLING, self.prices, self.accept_unknown_prices, None, requests={}
            ),
            own_data=self.own_data,
            standing=True,
            ranks=self.ranks,
            targets=tuple(target.build(name) for name, target in self.targets.items()),
        )

    def _is_fixed(self, fleet: StandingIn) -> bool:
        """Checks whether a role keeps its size. By default nodes with ranks do, because their places are parts of a
        whole: another number could move what they hold.
        """
        return self.ranks if fleet.resizable is None else not fleet.resizable
