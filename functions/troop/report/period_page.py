"""Renders the report of a period's hits as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troop.report import period_pictures
from troop.report.html import FEW_POINTS, MOST_ROWS, page


def period_page(period: Mapping[str, Any]) -> str:
    """Renders the page of a period. It has no scripts, and loads nothing.

    Args:
        period: the document of ``troop report``: a summary (:meth:`troop.chaos.period.Period.document`) with
            ``deployment``, ``where``, ``risks``, ``letter``, ``expired``, ``events_read``, ``created_at`` and
            ``created_by``.
    """
    return page(
        "period.html",
        (),
        "",
        period=period,
        by_verdict=period_pictures.verdicts_by_week(period["weeks"]),
        by_recovery=period_pictures.recoveries_by_week(period["weeks"]),
        stages=period_pictures.stage_bars(period["units"], period["totals"]),
        pictures=period_pictures,
        words=period_pictures.VERDICTS,
        STAGE_WORDS=period_pictures.STAGE_WORDS,
        MOST_ROWS=MOST_ROWS,
        FEW_POINTS=FEW_POINTS,
    )
