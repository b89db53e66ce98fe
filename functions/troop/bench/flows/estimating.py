"""Estimates what a run costs at current prices, and checks it against budgets and quotas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from troop.bench.admission import estimate as estimates
from troop.bench.admission import quotas
from troop.bench.admission.admission import InstanceType
from troop.bench.admission.design import design_warnings
from troop.bench.admission.estimate import ROOT_VOLUME, Estimate, estimate
from troop.bench.admission.images import ImageFacts
from troop.bench.admission.merging import budget
from troop.bench.admission.quotas import Requirement
from troop.bench.admission.reach import Balancer
from troop.bench.admission.spending import Terms, terms_of
from troop.bench.aws.admission_reads import read_quotas
from troop.bench.aws.price_book import PriceBook
from troop.bench.definition.money import Money, rounded
from troop.bench.definition.plan import Plan
from troop.bench.definition.problems import Problem
from troop.bench.fleets.choices import dearest
from troop.bench.fleets.type_facts import TypeFacts
from troop.bench.records.record import Expected


@dataclass(frozen=True)
class Judged:
    """The result of an estimate.

    Attributes:
        terms: the prices and limits by which the run's cost is computed.
        problems: the reasons why the run must not start; empty if it may.
        warnings: what the user should know before starting it.
        types: facts of the plan's instance types by name.
        images: the images that the plan names, by these names.
        balancers: the load balancers that its targets name.
        seconds: the expected time of the run, with the launch of its nodes.
        region: of the deployment.
        quotas: the account's quotas of vCPUs that the run needs.
        merge: see :func:`troop.bench.admission.merging.budget`.
    """

    estimate: Estimate
    terms: Terms
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    types: Mapping[str, TypeFacts]
    images: Mapping[str, ImageFacts] = field(default_factory=dict)
    balancers: Mapping[str, Balancer] = field(default_factory=dict)
    seconds: int = 0
    region: str = ""
    quotas: tuple[Requirement, ...] = ()
    merge: Mapping[str, int] = field(default_factory=dict)

    @property
    def expected(self) -> Expected:
        """The summary for the run's record."""
        estimate = self.estimate
        return Expected(rounded(estimate.expected), rounded(estimate.most), estimate.currency, estimate.budget)

    def document(self) -> dict[str, Any]:
        """Returns the document that is stored with the run."""
        return {
            **estimates.to_document(self.estimate),
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "region": self.region,
            "quotas": [one.document() for one in self.quotas],
            "merge": dict(self.merge),
        }


@dataclass(frozen=True)
class Estimating:
    """Estimates runs.

    Attributes:
        quotas: a client of service-quotas.
    """

    book: PriceBook
    quotas: Any

    def judge(
        self, plan: Plan, money: Money, offers: Mapping[str, InstanceType], ceiling: Decimal | None = None
    ) -> Judged:
        """Estimates the cost of a plan's cells, and checks whether the account's quotas suffice.

        Args:
            money: of the run.
            offers: for all instance types of the plan.
            ceiling: the most that the deployment lets a run cost.
        """
        fleets = [fleet for planned in plan.cells for fleet in planned.benchmark.fleets]
        types = {kind for fleet in fleets for kind in fleet.types}
        spot = {kind for fleet in fleets if fleet.is_spot for kind in fleet.types}
        volumes = {ROOT_VOLUME} | {volume.type for fleet in fleets for volume in fleet.volumes}
        listed, why = self.book.read(
            sorted(types),
            {name: offers[name].zones for name in sorted(spot)},
            sorted(volumes),
            endpoint=any(planned.benchmark.queue for planned in plan.cells),
        )
        book = listed.completed_by(money)
        file_prices = listed.replaced_by(money) if money.prices or money.other_prices else None
        expected = estimate(dearest(plan, book), money, book)
        values, unread = read_quotas(self.quotas, quotas.quotas_of(plan))
        vcpus = {name: offer.vcpus for name, offer in offers.items()}
        attempts = {planned.cell: planned.benchmark.attempts for planned in plan.cells}
        authors = estimate(dearest(plan, file_prices), money, file_prices) if file_prices else None
        sentences = [
            *estimates.warnings(expected, ceiling, authors),
            *(why if expected.unknown else ()),
            *estimates.price_warnings(plan, book),
            *estimates.traffic_warnings(plan),
            *estimates.credit_warnings(plan),
            *estimates.queue_warnings(plan),
            *estimates.growth_warnings(plan, expected, book, ceiling),
            *quotas.warnings(plan, vcpus, values),
            *design_warnings(plan),
            *(["these figures take the dearest instance type of each fleet"] if _has_fallbacks(plan) else ()),
        ]
        return Judged(
            estimate=expected,
            terms=terms_of(expected, book, attempts, ceiling, file_prices),
            problems=(
                *_explained(estimates.problems(expected, money, ceiling), why),
                *estimates.price_problems(plan, book),
                *quotas.too_small(plan, vcpus, values),
            ),
            warnings=(*sentences, *([unread] if unread else ())),
            types={name: offer.facts for name, offer in offers.items()},
            seconds=plan.in_waves(cell.seconds for cell in expected.cells),
            region=self.book.region,
            quotas=tuple(quotas.required(plan, vcpus, values)),
            merge=budget(plan),
        )


def _has_fallbacks(plan: Plan) -> bool:
    return any(fleet.fallback_types for planned in plan.cells for fleet in planned.benchmark.fleets)


def _explained(problems: Iterable[Problem], why: Sequence[str]) -> Iterator[Problem]:
    """Adds AWS's reasons, where known, to the problem of missing prices."""
    for problem in problems:
        if problem.place == ("prices",) and why:
            yield replace(problem, message=f"{problem.message} ({'; '.join(why)})")
        else:
            yield problem
