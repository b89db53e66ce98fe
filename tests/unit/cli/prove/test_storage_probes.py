"""Steps write to buckets of their own."""

from __future__ import annotations

import boto3

from cli.prove import judgements as judge
from cli.prove.ledger import PREFIX
from cli.prove.model import Verdict
from cli.prove.probes import Probes


def test_conditional_writes_go_to_a_bucket_of_their_own(probes: Probes, account: boto3.Session) -> None:
    answers = probes.conditional_writes()
    assert judge.conditional_writes(answers)[0] is Verdict.YES, answers
    s3 = account.client("s3")
    (bucket,) = s3.list_buckets()["Buckets"]
    assert bucket["Name"].startswith(PREFIX)
    assert probes.ledger.remove_all()
    assert s3.list_buckets()["Buckets"] == []
