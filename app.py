"""The CDK app: settings, then one stack of that name."""

import sys

import aws_cdk as cdk

from infra.acknowledgements import check
from infra.settings import read_settings, written_context
from infra.stack import TroopStack
from troop.errors import SettingsError

app = cdk.App()
try:
    settings = read_settings(app.node.get_all_context(), written_context())
except SettingsError as error:
    sys.exit(f"Settings: {error}")
check(TroopStack(app, settings))
app.synth()
