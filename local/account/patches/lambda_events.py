"""Calls functions for events from a queue, as Lambda does; MiniStack starts a process for each of a burst of events.

Not emulated: Lambda calls a function that fails again, after one minute and after two more.
"""

from __future__ import annotations

import contextvars
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ministack.services import eventbridge, lambda_svc

from ._wrap import wrap

AT_ONCE = 32
"""The most calls at the same time, of all functions together. A recovery check of a slow group takes a minute."""


def apply() -> None:
    pool = ThreadPoolExecutor(AT_ONCE, "events-to-functions")

    @wrap(eventbridge, "_dispatch_to_lambda")
    def dispatch(original: Callable[[str, str], None], arn: str, payload: str) -> None:
        function, config, _ = lambda_svc._get_func_record_for_ref(arn)
        if not function or not config:
            original(arn, payload)
            return
        record = lambda_svc._execution_record_for_config(function, config)
        run = contextvars.copy_context().run
        pool.submit(run, lambda_svc._execute_function_with_config_scope, record, json.loads(payload))
