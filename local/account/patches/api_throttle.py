"""Makes API Gateway answer 500 if Lambda throttles the function.

With a proxy integration, API Gateway answers 500 for every refusal of Lambda, throttling included; MiniStack forwards
Lambda's 429. `lambda put-function-concurrency` with 0 throttles a function, here as on AWS.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ministack.services import apigateway_v1

from ._wrap import wrap


def apply() -> None:
    @wrap(apigateway_v1, "_call_lambda_raw")
    async def call(original: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        outcome, problem = await original(*args, **kwargs)
        return outcome, problem or ("throttled" if outcome and outcome.get("throttle") else None)
