"""The CDK app: one stack of the settings in the context, whose name is the deployment's."""

import sys

import aws_cdk as cdk

from infra.deployed_settings import warn_of_resets
from troop_aws.cdk import BundlingError, SettingsError, TroopStack, check

app = cdk.App()
try:
    stack = TroopStack.from_context(app)
except SettingsError as error:
    sys.exit(f"Settings: {error}")
except BundlingError as error:
    sys.exit(f"Bundling: {error}")
check(stack)
warn_of_resets(stack, stack.settings)
app.synth()
