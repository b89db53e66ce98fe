"""Your CDK app: Troop as a stack, with the people on call on its topic."""

import aws_cdk as cdk
from aws_cdk import aws_sns_subscriptions as subscriptions

from troop_aws.cdk import TroopStack

app = cdk.App()
troop = TroopStack(app, "Troop", participation="opt-in", probability=0.5, retain_data=True)
troop.act_now_topic.add_subscription(subscriptions.EmailSubscription("on-call@example.com"))
app.synth()
