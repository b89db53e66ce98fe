"""Builds addresses of the AWS console, for any partition and region."""

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
    def from_arn(cls, arn: str) -> Console:
        """Returns the console for the region of an ARN."""
        _, partition, _, region, *_ = [*arn.split(":"), "", "", "", ""]
        return cls(partition, region)

    def group(self, name: str) -> str | None:
        """Returns the address of an Auto Scaling group's page; None if the partition's console is unknown."""
        return self._address(f"ec2/home?region={self.region}#AutoScalingGroupDetails:id={_quoted(name)};view=details")

    def object(self, bucket: str, key: str) -> str | None:
        """Returns the address of an S3 object's page, which requires permission to open; None as for a group."""
        return self._address(f"s3/object/{_quoted(bucket)}?region={self.region}&prefix={_quoted(key)}")

    def _address(self, page: str) -> str | None:
        domain = _DOMAINS.get(self.partition)
        return f"https://{self.region}.{domain}/{page}" if domain and self.region else None


def _quoted(text: str) -> str:
    return quote(text, safe="")
