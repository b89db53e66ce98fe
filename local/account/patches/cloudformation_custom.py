"""Empties buckets without the CDK's Node.js function, and fails the stack if a custom resource's function fails.

MiniStack has no SDK for the CDK's S3AutoDeleteObjects function, and waits an hour for the response of a custom resource
whose function has already failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ministack.services import lambda_svc, s3
from ministack.services.cloudformation import custom_resource, provisioners

from ._wrap import wrap


def apply() -> None:
    provisioners._RESOURCE_HANDLERS["Custom::S3AutoDeleteObjects"] = {
        "create": lambda logical_id, _properties, stack: (f"{stack}-{logical_id}", {}),
        "update": lambda physical_id, _old, _new, _stack: (physical_id, {}),
        "delete": lambda _physical_id, properties: empty(properties["BucketName"]),
    }

    @wrap(lambda_svc, "_execute_function_with_config_scope")
    def execute(original: Callable[..., dict[str, Any]], function: Any, event: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(function, event, *args, **kwargs)
        if result.get("error") and isinstance(event, dict) and "/cfn-response/" in str(event.get("ResponseURL")):
            reason = f"the custom resource's function failed: {json.dumps(result.get('body'), default=str)}"
            token = event["ResponseURL"].rsplit("/", 1)[-1]
            custom_resource.deliver_response(token, {"Status": "FAILED", "Reason": reason})
        return result


def empty(bucket: str) -> None:
    """Deletes all objects of a bucket with all their versions."""
    if bucket in s3._buckets:
        s3._buckets[bucket]["objects"].clear()
    for place in [place for place in s3._object_versions if place[0] == bucket]:
        del s3._object_versions[place]
