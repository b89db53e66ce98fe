"""Formats estimates and costs of runs and standing fleets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import typer

from cli.shared import show
from cli.shared.errors import Exit
from troop.bench.definition.money import shown
from troop.bench.money.costs import role_of
from troop.shared.formatting import duration, plain

COLUMNS = ("cell", "what", "quantity", "unit", "price", "cost")
QUOTA_COLUMNS = ("quota", "service", "code", "needs", "without spot", "account has")
_DROPPED = ("price", "unit", "quantity", "cell")


def line(estimate: Mapping[str, Any]) -> str:
    """Returns ``expected to cost $0.12, at most $0.40``, and mentions items without a price.

    Amounts are rounded up, so that a budget of the printed amount is enough.
    """
    expected, most = (shown(estimate[key], estimate["currency"], up=True) for key in ("expected", "most"))
    budget = f", of a budget of {shown(estimate['budget'], estimate['currency'])}" if estimate["budget"] else ""
    more = ", plus items without a price" if estimate.get("unknown") else ""
    return f"expected to cost {expected}, at most {most}{more}{budget}"


def estimate_table(estimate: Mapping[str, Any]) -> None:
    """Prints the estimate line by line, and its sums by cell."""
    currency = estimate["currency"]
    items = [
        (cell["cell"] + (f"  {cell['label']}" if cell["label"] else ""), item)
        for cell in estimate["cells"]
        for item in cell["items"]
    ]
    show.table(COLUMNS, _rows(items, currency), drop=_DROPPED)
    roles = list(dict.fromkeys(role for cell in estimate["cells"] for role in by_role(cell["items"])))
    if len(estimate["cells"]) > 1 or len(roles) > 1:
        sums = [
            (
                cell["cell"],
                cell["label"],
                *(_amount(by_role(cell["items"]).get(role), currency) for role in roles),
                *(shown(cell[key], currency, up=True) for key in ("expected", "most")),
            )
            for cell in estimate["cells"]
        ]
        show.table(("cell", "", *roles, "expected", "at most"), sums, title=" ")
    quota_table(estimate)
    if seconds := estimate.get("seconds"):
        show.say(f"expected to take {duration(seconds)}")
    show.say(line(estimate))


def quota_table(estimate: Mapping[str, Any]) -> None:
    """Prints the quotas of vCPUs that a run needs, and how to request those that are too small."""
    quotas = estimate.get("quotas") or ()  # an earlier API has none
    if not quotas:
        return
    rows = [
        (
            one["what"],
            one["service"],
            one["code"],
            f"{one['vcpus']:,}",
            f"{one['without_spot']:,}" if one["without_spot"] else show.NOTHING,
            show.NOTHING if one["value"] is None else f"{one['value']:,.0f}",
        )
        for one in quotas
    ]
    show.table(QUOTA_COLUMNS, rows, title=f"\nquotas of vCPUs in {estimate['region']}", drop=("service",))
    for one in quotas:
        if one["value"] is not None and one["value"] < one["desired"]:
            show.say(
                f"aws service-quotas request-service-quota-increase --region {estimate['region']} --service-code "
                f"{one['service']} --quota-code {one['code']} --desired-value {one['desired']}"
            )


def by_role(items: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Sums the items of each role that have a price; other items belong to no role."""
    sums: dict[str, float] = {}
    for item in items:
        if (role := role_of(item["what"])) and item["amount"] is not None:
            sums[role] = sums.get(role, 0.0) + float(item["amount"])
    return sums


def _amount(amount: float | None, currency: str) -> str:
    return show.NOTHING if amount is None else shown(amount, currency, up=True)


def tell(estimate: Mapping[str, Any], as_json: bool) -> None:
    """Prints an estimate, its warnings, and its problems.

    Raises:
        Exit: the run or fleet would be refused.
    """
    if as_json:
        show.document(estimate)
    else:
        estimate_table(estimate)
    for warning in warnings(estimate):
        show.note(warning)
    if estimate["problems"]:
        raise typer.Exit(int(Exit.REFUSED))


def cost_table(view: Mapping[str, Any]) -> None:
    """Prints the cost of a run by item and by attempt; nothing if it is not known yet."""
    cost = view["run"].get("cost")
    cells = [cell for cell in view["cells"] if cell.get("cost")]
    if len(cells) > 1:
        rows = [
            (cell["cell"], cell["status"], shown(cell["cost"]["amount"], cell["cost"]["currency"])) for cell in cells
        ]
        show.table(("cell", "status", "cost"), rows, title=" ")
    if cost:
        items = _rows([("", item) for item in cost["items"]], cost["currency"])
        show.table(COLUMNS[1:], [item[1:] for item in items], title=" ", drop=_DROPPED)
        by_file = view["run"].get("cost_of_file")
        more = f"; with the file's own prices: {total(by_file)}" if by_file else ""
        show.say(f"cost: {total(cost)}{more}")
    elif now := so_far(view):
        show.say(now)


def so_far(view: Mapping[str, Any]) -> str | None:
    """Returns the cost so far of a run or fleet that has not ended; None if it is unknown."""
    cost = view.get("cost_so_far")
    return f"cost so far: {total(cost)}" if cost else None


def total(cost: Mapping[str, Any]) -> str:
    """Formats a cost: ``$0.12``, with the items that have no price."""
    more = f", plus items without a price: {', '.join(cost['unknown'])}" if cost["unknown"] else ""
    return shown(cost["amount"], cost["currency"]) + more


def warnings(estimate: Mapping[str, Any]) -> Iterable[str]:
    """Yields why a run or fleet would be refused, and the estimate's warnings."""
    yield from (f"this would be refused: {one['where']} {one['problem']}" for one in estimate["problems"])
    yield from estimate["warnings"]


def _rows(items: Sequence[tuple[str, Mapping[str, Any]]], currency: str) -> list[tuple[str, ...]]:
    """Returns a row for each item, given with its cell. Items below a cent share the last one."""
    small = [item for _, item in items if item["amount"] is not None and item["amount"] < _CENT]
    folded = len(small) > 1
    rows = [(cell, *_item(item, currency)) for cell, item in items if not (folded and item in small)]
    if folded:
        together = shown(sum(Decimal(str(item["amount"])) for item in small), currency)
        rows.append(("", f"{len(small)} items below {shown(_CENT, currency)} each", "", "", "", together))
    return rows


_CENT = 0.01


def _item(item: Mapping[str, Any], currency: str) -> tuple[str, ...]:
    price, amount = item["price"], item["amount"]
    return (
        item["what"],
        plain(item["quantity"]),
        item["unit"],
        show.NOTHING if price is None else f"{Decimal(f'{price:.3g}').normalize():f}",
        show.NOTHING if amount is None else shown(amount, currency),
    )
