"""Models a standing fleet's file: the keys of a benchmark's file without those for measuring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict

from troop.bench.definition.definition import ON_DEMAND, SPOT, Benchmark, Fleet, Phase
from troop.bench.definition.keys import BOOLEAN, FILE, ROLE, duration, one_of, seconds, text, whole
from troop.bench.definition.money import STORAGE, Price
from troop.bench.definition.standing import SETUP
from troop.bench.file import living, money_keys
from troop.bench.file.fields import PARAMETER, Part, described
from troop.bench.file.models import (
    ARTIFACTS,
    BENCHMARK,
    BUCKET,
    BUCKETS,
    LONGEST_RUN,
    MOST_FLEETS,
    PARAMETERS,
    TARGET,
    TARGETS,
    ArtifactIn,
    FleetIn,
    TargetIn,
)
from troop.bench.file.points import KEY

_DESCRIPTION = text(1000)
_BACKUP = one_of(ON_DEMAND)
_COUNT = whole(0, 10_000)
_EXPIRES, _TIMEOUT = duration("10m", LONGEST_RUN), duration("1s", "2h")


def _without_keys_of_benchmarks(schema: dict[str, Any]) -> None:
    for key in ("load", "fallback_types"):
        del schema["properties"][key]


class StandingIn(FleetIn):
    """The nodes of one role: instances of one type, in subnets without a route to the internet."""

    # relations.fleet_file_problems refuses these keys with a reason, which helps more than "is not known".
    model_config = ConfigDict(json_schema_extra=_without_keys_of_benchmarks)
    elsewhere: ClassVar[Mapping[str, str]] = {}

    count: Annotated[int, _COUNT] = described(
        _COUNT,
        "Number of nodes at the start",
        "At least 1, or with `scale` at least its `min`. All nodes that exist at a time are at most `troop:max_nodes`.",
    )
    backup: Annotated[str | None, _BACKUP] = described(
        _BACKUP,
        "What launches nodes that spot lacks for spot_timeout, until spot has them again",
        "By default nothing. No effect on demand.",
        default=None,
    )
    resizable: Annotated[bool | None, BOOLEAN] = described(
        BOOLEAN,
        "Whether the role's number of nodes may change",
        "By default true, and false with `ranks`. Troop refuses to scale other roles.",
        default=None,
    )
    health: living.HealthIn | None = living.HEALTH
    work: living.WorkIn | None = living.WORK
    heal: living.HealIn | None = living.HEAL
    scale: living.ScaleIn | None = living.SCALE

    def build(self, role: str) -> Fleet:
        return replace(
            super().build(role),
            backup=self.backup if self.purchase == SPOT else None,
            health=self.health and self.health.build(),
            work=self.work and self.work.build(),
            heal=self.heal and self.heal.build(),
            scale=self.scale and self.scale.build(),
        )


class FleetFileIn(Part):
    """A standing fleet: nodes that stay until the fleet expires or is removed."""

    name: Annotated[str, BENCHMARK] = described(BENCHMARK, "Name of the fleet")
    description: Annotated[str, _DESCRIPTION] = described(_DESCRIPTION, "Purpose of the fleet", default="")
    expires_after: Annotated[int, _EXPIRES] = described(
        _EXPIRES,
        "Time after which Troop removes the fleet",
        "At least the longest `boot_timeout`, `setup_timeout` and 5 minutes together.",
    )
    fleets: dict[Annotated[str, ROLE], StandingIn] = described(
        f"a mapping of at most {MOST_FLEETS} roles to fleets",
        "Fleets by role, as launched",
        min_length=1,
        max_length=MOST_FLEETS,
    )
    setup: Annotated[str | None, FILE] = described(
        FILE,
        "A script in this folder that each node runs once after boot, as phases run scripts",
        "Nodes that come later run it, too.",
        default=None,
    )
    setup_timeout: Annotated[int, _TIMEOUT] = described(
        _TIMEOUT, "Time after which setup is killed and the node fails", default=seconds("10m")
    )
    ranks: Annotated[bool, BOOLEAN] = described(
        BOOLEAN,
        "Whether nodes have ranks and a roster",
        "A replacement takes the rank of the lost node.",
        default=False,
    )
    queue: living.QueueOrTrue = living.QUEUE
    parameters: dict[Annotated[str, KEY], Annotated[Any, PARAMETER]] = PARAMETERS
    artifacts: list[ArtifactIn] = ARTIFACTS
    buckets: list[Annotated[str, BUCKET]] = BUCKETS
    targets: dict[Annotated[str, TARGET], TargetIn] = TARGETS
    own_data: Annotated[bool, BOOLEAN] = described(
        BOOLEAN,
        "Whether nodes store objects, such as results",
        "The setting `troop:own_data` must allow it.",
        default=False,
    )
    budget: Annotated[Decimal | None, money_keys.BUDGET] = described(
        money_keys.BUDGET,
        "Budget in USD: Troop refuses a fleet that it expects to cost more until it expires",
        default=None,
    )
    prices: dict[Annotated[str, money_keys.PRICED_IN_FLEETS], Annotated[Price, money_keys.PRICE]] = described(
        f"a mapping of instance types to {money_keys.PRICE.allowed}; and of {', '.join(STORAGE)} (a GiB-month), "
        "initialization (a GiB of a snapshot at 100 MiB/s) and endpoint (an hour of the queue's endpoint in one zone) "
        "to a number",
        "Your own prices, such as contract prices",
        money_keys.USE,
        default={},
        max_length=50,
    )
    accept_unknown_prices: Annotated[bool, BOOLEAN] = described(
        BOOLEAN,
        "Whether the fleet may begin without the price of some of its nodes",
        "Only in a deployment whose `troop:max_run_cost` is `none`.",
        default=False,
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
            queue=self.queue and self.queue.build(),
        )

    def _is_fixed(self, fleet: StandingIn) -> bool:
        """Checks whether a role keeps its size. By default nodes with ranks do, because their places are parts of a
        whole: another number could move what they hold.
        """
        return self.ranks if fleet.resizable is None else not fleet.resizable
