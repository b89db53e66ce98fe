"""A pipeline that builds a commit once, deploys it to the first stage, and promotes it from stage to stage.

Deploy it once, and after each change of this file: `npx cdk deploy --app 'python pipeline.py' TroopPromotion`.
"""

from pathlib import Path

import aws_cdk as cdk
import yaml
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_codepipeline as codepipeline
from aws_cdk import aws_codepipeline_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks
from constructs import IConstruct

ENVIRONMENT = cdk.Environment(account="222233334444", region="eu-central-1")
CONNECTION = "arn:aws:codeconnections:eu-central-1:222233334444:connection/00000000-0000-0000-0000-000000000000"
OWNER, REPOSITORY, BRANCH = "example", "troop", "main"
STAGES = {"staging": 0, "prod": 3}
"""In their order, with the business days that the stage before must have run the release."""
DEPLOYMENTS = yaml.safe_load(Path(__file__).with_name("deployments.yaml").read_text())["deployments"]
INSTALL = {
    "runtime-versions": {"python": "3.13", "nodejs": "22"},
    "commands": ["make .venv/.ready .venv/bin/troop node_modules/.ready .build/.ready"],
}
BUILT = {"files": ["**/*"], "exclude-paths": [".venv/**/*", "node_modules/**/*"]}

app = cdk.App()
stack = cdk.Stack(app, "TroopPromotion", env=ENVIRONMENT)
PARTITION = "<AWS::Partition>" if cdk.Token.is_unresolved(stack.partition) else stack.partition  # by cdk.json's flags


def acknowledge(construct: IConstruct, finding: str, reason: str) -> None:
    """Records an intended finding of cdk-nag. Any other one fails the synthesis."""
    cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=f"AwsSolutions-{finding}", reason=reason))


def logical_id(construct: IConstruct) -> str:
    """Returns the construct's id in the template."""
    return str(stack.resolve(stack.get_logical_id(construct.node.default_child)))


def project(name: str, command: str, roles: list[str], **more: object) -> codebuild.PipelineProject:
    """Returns a project that runs the command, and may assume the roles."""
    phases = {"install": INSTALL, "build": {"commands": [command]}}
    created = codebuild.PipelineProject(
        stack,
        name,
        build_spec=codebuild.BuildSpec.from_object({"version": "0.2", "phases": phases, **more}),
        environment=codebuild.BuildEnvironment(build_image=codebuild.LinuxBuildImage.STANDARD_7_0),
        environment_variables={"CDK_DISABLE_CLI_TELEMETRY": codebuild.BuildEnvironmentVariable(value="1")},
        timeout=cdk.Duration.hours(8),  # one deployment after the other: each takes some minutes
        grant_report_group_permissions=False,
    )
    acknowledge(created, "CB4", "S3 encrypts what is built. A key of KMS costs a dollar a month.")
    place = f"{PARTITION}:logs:{stack.region}:{stack.account}:log-group:/aws/codebuild/<{logical_id(created)}>"
    acknowledge(created, f"IAM5[Resource::arn:{place}:*]", "CodeBuild names the log's streams.")
    if roles:
        created.add_to_role_policy(iam.PolicyStatement(actions=["sts:AssumeRole"], resources=sorted(set(roles))))
        cdk.CfnOutput(
            stack, f"{name}Role", value=created.role.role_arn, description="For the trust of the deployers' roles"
        )
    return created


source, build = codepipeline.Artifact("Source"), codepipeline.Artifact("Build")
read = actions.CodeStarConnectionsSourceAction(
    action_name="Source",
    connection_arn=CONNECTION,
    owner=OWNER,
    repo=REPOSITORY,
    branch=BRANCH,
    output=source,
    variables_namespace="Source",
)
COMMIT = {"TROOP_COMMIT": codebuild.BuildEnvironmentVariable(value=read.variables.commit_id)}


def act(name: str, created: codebuild.PipelineProject, order: int = 1) -> actions.CodeBuildAction:
    """Returns an action that runs the project on what was built."""
    return actions.CodeBuildAction(
        action_name=name, project=created, input=build, environment_variables=COMMIT, run_order=order
    )


building = actions.CodeBuildAction(
    action_name="Build",
    project=project("Build", ".venv/bin/python -m infra.release", [], artifacts=BUILT),
    input=source,
    outputs=[build],
    environment_variables=COMMIT,
)
stages = [
    codepipeline.StageProps(stage_name="Source", actions=[read]),
    codepipeline.StageProps(stage_name="Build", actions=[building]),
]
before = "none"
for stage, days in STAGES.items():
    roles = [one["role"] for one in DEPLOYMENTS if one["stage"] in (stage, before)]
    command, title = f"make promote FROM={before} TO={stage} DAYS={days}", stage.title()
    if before in STAGES:
        check = project(f"Check{title}", f"{command} CHECK=1", roles)
        approval = actions.ManualApprovalAction(
            action_name="Approval",
            additional_information=f"The log of Check has the settings that change in {stage}.",
            run_order=2,
        )
        deployment = act("Deploy", project(f"Deploy{title}", f"{command} YES=1", roles), 3)
        steps = [act("Check", check), approval, deployment]
    else:
        steps = [act("Deploy", project(f"Deploy{title}", f"{command} YES=1", roles))]
    stages.append(codepipeline.StageProps(stage_name=title, actions=steps))
    before = stage

bucket = s3.Bucket(
    stack,
    "Artifacts",
    encryption=s3.BucketEncryption.S3_MANAGED,
    enforce_ssl=True,
    block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
    lifecycle_rules=[s3.LifecycleRule(expiration=cdk.Duration.days(90))],
)
for wide in (
    *(f"Action::s3:{action}*" for action in ("Abort", "DeleteObject", "GetBucket", "GetObject", "List")),
    f"Resource::<{logical_id(bucket)}.Arn>/*",
):
    acknowledge(stack, f"IAM5[{wide}]", "The pipeline and its projects pass artifacts on, in this bucket alone.")
acknowledge(bucket, "S1", "Only the pipeline reads and writes it; CloudTrail can record that.")
pipeline = codepipeline.Pipeline(
    stack,
    "Pipeline",
    pipeline_type=codepipeline.PipelineType.V2,
    execution_mode=codepipeline.ExecutionMode.SUPERSEDED,  # an older commit never deploys after a newer one
    use_pipeline_role_for_actions=True,
    artifact_bucket=bucket,
    stages=stages,
)
# A connection with codeconnections in its ARN needs this action. The CDK grants only the one of older connections.
pipeline.add_to_role_policy(iam.PolicyStatement(actions=["codeconnections:UseConnection"], resources=[CONNECTION]))

cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
app.synth()
