"""Makes `Ref` of a secret return its ARN; MiniStack's CloudFormation returns its name, which no policy can use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services import secretsmanager
from ministack.services.cloudformation import provisioners

from ._wrap import wrap


def apply(secret: str) -> None:
    """Applies the patch. `secret`: the value of generated secrets in templates; random if empty."""
    handlers = provisioners._RESOURCE_HANDLERS["AWS::SecretsManager::Secret"]
    handlers["create"] = _answering_arn(handlers["create"])
    handlers["update"] = _answering_arn(_resolving_arn(handlers["update"]))
    handlers["delete"] = _resolving_arn(handlers["delete"])
    if secret:

        @wrap(provisioners, "_sm_secret_string")
        def generate(original: Callable[..., str], properties: dict[str, Any]) -> str:
            return secret if "GenerateSecretString" in properties else original(properties)


def _answering_arn(provision: Callable[..., Any]) -> Callable[..., Any]:
    def provisioned(*args: Any, **kwargs: Any) -> Any:
        name, *attributes = provision(*args, **kwargs)
        return secretsmanager._secrets[name]["ARN"], *attributes

    return provisioned


def _resolving_arn(provision: Callable[..., Any]) -> Callable[..., Any]:
    def provisioned(physical_id: str, *args: Any, **kwargs: Any) -> Any:
        name, _ = secretsmanager._resolve(physical_id)
        return provision(name or physical_id, *args, **kwargs)

    return provisioned
