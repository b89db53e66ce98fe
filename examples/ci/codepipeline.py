"""The pipeline of your CDK app: it shows the difference, waits for an approval, deploys, and runs `troop doctor`.

Deploy it once, and after each change of this file: `npx cdk deploy --app 'python codepipeline.py' TroopPipeline`.
"""

import json
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_codepipeline_actions as actions
from aws_cdk import aws_iam as iam

ENVIRONMENT = cdk.Environment(account="111122223333", region="eu-central-1")
CONNECTION = "arn:aws:codeconnections:eu-central-1:111122223333:connection/00000000-0000-0000-0000-000000000000"
OWNER, REPOSITORY, BRANCH = "example", "troop-app", "main"
POLICY = json.loads(Path(__file__).with_name("deployer-policy.json").read_text())
INSTALL = {
    "runtime-versions": {"python": "3.13", "nodejs": "22"},
    "commands": ["pip install --require-hashes -r requirements.txt", "npm ci"],
}


def project(stack: cdk.Stack, name: str, *commands: str) -> codebuild.PipelineProject:
    """Returns a project that runs the commands with the policy, until one fails."""
    phases = {"install": INSTALL, "build": {"commands": list(commands)}}
    created = codebuild.PipelineProject(
        stack,
        name,
        build_spec=codebuild.BuildSpec.from_object({"version": "0.2", "phases": phases}),
        environment=codebuild.BuildEnvironment(build_image=codebuild.LinuxBuildImage.STANDARD_7_0),
        environment_variables={"CDK_DISABLE_CLI_TELEMETRY": codebuild.BuildEnvironmentVariable(value="1")},
        timeout=cdk.Duration.hours(1),
    )
    for statement in POLICY["Statement"]:
        created.add_to_role_policy(iam.PolicyStatement.from_json(statement))
    return created


app = cdk.App()
stack = cdk.Stack(app, "TroopPipeline", env=ENVIRONMENT)
source = codepipeline.Artifact("Source")
read = actions.CodeStarConnectionsSourceAction(
    action_name="Source",
    connection_arn=CONNECTION,
    owner=OWNER,
    repo=REPOSITORY,
    branch=BRANCH,
    output=source,
)
difference = project(stack, "Difference", "npx cdk synth --quiet --strict", "npx cdk diff Troop")
deployment = project(
    stack, "Deployment", "npx cdk deploy Troop --require-approval never", "troop --deployment Troop doctor"
)
pipeline = codepipeline.Pipeline(
    stack,
    "Pipeline",
    pipeline_type=codepipeline.PipelineType.V2,
    execution_mode=codepipeline.ExecutionMode.SUPERSEDED,  # an older commit never deploys after a newer one
    use_pipeline_role_for_actions=True,
    cross_account_keys=False,  # a key of KMS costs a dollar a month, and one account does not need it
    stages=[
        codepipeline.StageProps(stage_name="Source", actions=[read]),
        codepipeline.StageProps(
            stage_name="Review",
            actions=[
                actions.CodeBuildAction(action_name="Difference", project=difference, input=source, run_order=1),
                actions.ManualApprovalAction(
                    action_name="Approval",
                    additional_information="The log of Difference shows what the deployment changes.",
                    run_order=2,
                ),
            ],
        ),
        codepipeline.StageProps(
            stage_name="Deploy",
            actions=[actions.CodeBuildAction(action_name="Deployment", project=deployment, input=source)],
        ),
    ],
)
# A connection with codeconnections in its ARN needs this action. The CDK grants only the one of older connections.
pipeline.add_to_role_policy(iam.PolicyStatement(actions=["codeconnections:UseConnection"], resources=[CONNECTION]))
app.synth()
