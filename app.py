"""The CDK app: reads settings, then synthesises one stack of that name."""

import os
import sys

import aws_cdk as cdk

from infra.acknowledgements import check
from infra.settings import check_region, read_settings, written_context
from infra.stack import TroopStack
from infra.store import BundlingError
from troop.errors import SettingsError

app = cdk.App()
try:
    settings = read_settings(app.node.get_all_context(), written_context())
    if os.environ.get("CDK_DEFAULT_ACCOUNT"):  # without credentials, the CDK only guesses the region
        check_region(settings, os.environ["CDK_DEFAULT_REGION"])
except SettingsError as error:
    sys.exit(f"Settings: {error}")
try:
    stack = TroopStack(app, settings)
except BundlingError as error:
    sys.exit(f"Bundling: {error}")
check(stack)
app.synth()
