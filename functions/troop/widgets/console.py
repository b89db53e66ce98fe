"""Pages of the AWS console, in whatever partition and region."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

_DOMAINS = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}


@dataclass(frozen=True)
class Console:
    """The console of one region."""

    partition: str
    region: str

    @classmethod
    def of(cls, arn: str) -> Console:
        """Of the region that something is in, by its ARN."""
        _, partition, _, region, *_ = [*arn.split(":"), "", "", "", ""]
        return cls(partition, region)

    def group(self, name: str) -> str | None:
        """Address of an Auto Scaling group's page; None where the partition's console is not known."""
        domain = _DOMAINS.get(self.partition)
        if domain is None or not self.region:
            return None
        home = f"https://{self.region}.{domain}/ec2/home?region={self.region}"
        return f"{home}#AutoScalingGroupDetails:id={quote(name, safe='')};view=details"
