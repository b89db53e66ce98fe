"""Lists the steps of docs/start/first-hour.md: the commands that a person types, and what they show.

The guide shows exactly these commands; a test compares both.
"""

from __future__ import annotations

from dataclasses import dataclass

STAGE = "first-hour"
DEPLOYMENT = f"Troop-{STAGE}"
GROUP = "first-hour-web"


@dataclass(frozen=True)
class Step:
    """One step of the guide.

    Args:
        title: its heading in the guide.
        script: the shell commands, as the guide shows them.
        only_aws: what the step proves on AWS, and cannot prove on local AWS.
        expects: regular expressions, each of which matches the output.
        repeats: whether a reader repeats the commands until their output is as expected.
        skipped: why local AWS cannot run the step; empty if it can.
    """

    title: str
    script: str
    only_aws: str
    expects: tuple[str, ...] = ()
    repeats: bool = False
    skipped: str = ""


STEPS = (
    Step(
        "Choose account and region",
        """\
make setup
. .venv/bin/activate
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
export TROOP_DEPLOYMENT=Troop-first-hour
aws sts get-caller-identity
aws freetier get-account-plan-state --query accountPlanType
aws ec2 describe-instance-types --filters Name=free-tier-eligible,Values=true \\
  --query 'InstanceTypes[].InstanceType' --output text""",
        "that your credentials work, and that policies of your organization allow this region",
        skipped="local AWS has its own credentials, and one region",
    ),
    Step(
        "Limit the money",
        """\
account=$(aws sts get-caller-identity --query Account --output text)
read -r -p "Your mail address: " mail
aws budgets create-budget --region us-east-1 --account-id "$account" \\
  --budget '{"BudgetName": "troop-first-hour", "BudgetType": "COST", "TimeUnit": "MONTHLY",
             "BudgetLimit": {"Amount": "5", "Unit": "USD"}}' \\
  --notifications-with-subscribers '[{
      "Notification": {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 40},
      "Subscribers": [{"SubscriptionType": "EMAIL", "Address": "'"$mail"'"}]}]'""",
        "that AWS sends you a mail; it counts costs up to a day late, so the limits of the stage protect you sooner",
        skipped="local AWS has no AWS Budgets and no bill",
    ),
    Step(
        "Deploy",
        "make deploy STAGE=first-hour",
        "the bootstrap, CloudFormation's order and timing, IAM's acceptance of every role and policy, quotas of the "
        "account, arm64 Lambda functions with their layers",
        expects=("It starts leashed", r"Troop-first-hour\.ApiUrl|API"),
    ),
    Step(
        "Create a group",
        """\
image=$(aws ssm get-parameter --query Parameter.Value --output text \\
  --name /aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64)
subnets=$(aws ec2 describe-subnets --filters Name=default-for-az,Values=true \\
  --query 'Subnets[:2].SubnetId' --output text | tr '\\t' ,)
aws ec2 create-launch-template --launch-template-name first-hour-web \\
  --launch-template-data '{"ImageId": "'"$image"'", "InstanceType": "t4g.micro"}'
aws autoscaling create-auto-scaling-group --auto-scaling-group-name first-hour-web \\
  --launch-template LaunchTemplateName=first-hour-web --vpc-zone-identifier "$subnets" \\
  --min-size 2 --desired-capacity 2 --max-size 3 \\
  --tags Key=troop:opt_in,Value=true,PropagateAtLaunch=false""",
        "EC2's capacity, the boot of Amazon Linux 2023, and the service-linked role that the first group creates",
        expects=("LaunchTemplateName",),
    ),
    Step(
        "Run the doctor",
        "troop doctor",
        "that EventBridge Scheduler starts ticks on time, and that Lambda runs enough functions in a new account",
        expects=("the last tick came",),
        repeats=True,
    ),
    Step(
        "Watch a leashed day",
        """\
troop groups
troop plan
troop why first-hour-web
troop events --unit first-hour-web""",
        "that the roles of ticks may read your groups, and that ticks come in the calendar's time zone",
        expects=("first-hour-web", "LEASHED"),
        repeats=True,
    ),
    Step(
        "Terminate the first instance",
        """\
troop set first-hour-web probability=0
troop unleash --yes --reason "first hour"
troop terminate first-hour-web --yes""",
        "that IAM's conditions allow the termination, and how fast EC2 and Auto Scaling replace the instance",
        expects=("claimed: i-", "RECOVERED|recovered"),
    ),
    Step(
        "Read the event",
        """\
troop events --unit first-hour-web --status RECOVERED
troop events --unit first-hour-web --status RECOVERED --json
aws cloudwatch list-dashboards --query 'DashboardEntries[].DashboardName' --output text""",
        "that IAM lets you call the API, that CloudWatch has the metrics, and that its widgets show the event",
        expects=("RECOVERED", '"recovery_seconds"', "Troop-first-hour"),
    ),
    Step(
        "Opt out, and halt",
        """\
troop opt-out first-hour-web --reason "enough for today"
troop group first-hour-web
troop halt --reason "first hour"
troop terminate first-hour-web --yes || echo "refused, as expected"
troop resume --yes""",
        "that the switch holds for every function at once, whatever Lambda has in its memory",
        expects=("enough for today", "refused, as expected", "halted"),
    ),
    Step(
        "Run a benchmark",
        """\
troop bench estimate s3-range-read --size smoke --size own-data \\
  --set parameters.fill_objects=1000 --set traffic.s3_puts=1000
troop bench run s3-range-read --size smoke --size own-data \\
  --set parameters.fill_objects=1000 --set traffic.s3_puts=1000""",
        "Spot capacity and its service-linked role, quotas of vCPUs, the agent's boot on Amazon Linux 2023, DNS, "
        "the gateway endpoint of S3, and the policies of nodes",
        expects=("SUCCEEDED", r"\$0\.0"),
    ),
    Step(
        "Read the report",
        '''\
run=$(troop bench list --limit 1 --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])')
troop bench report "$run" -o first-hour-report.html
troop bench status "$run"''',
        "the figures: reads a second of real S3, with its latency, and the cost by Spot prices of the moment",
        expects=("first-hour-report.html", "SUCCEEDED"),
    ),
    Step(
        "Check the cost",
        """\
aws ce get-cost-and-usage --region us-east-1 --granularity DAILY --metrics UnblendedCost \\
  --time-period "Start=$(date -u +%F),End=$(date -u -d tomorrow +%F)" --group-by Type=DIMENSION,Key=SERVICE""",
        "the bill: it is complete after a day",
        skipped="local AWS has no Cost Explorer and no bill",
    ),
    Step(
        "Remove everything",
        """\
aws autoscaling delete-auto-scaling-group --auto-scaling-group-name first-hour-web --force-delete
aws ec2 delete-launch-template --launch-template-name first-hour-web
make destroy STAGE=first-hour PURGE=1""",
        "that CloudFormation can delete every resource, also with the log groups that AWS services add",
        expects=("Troop-first-hour is removed",),
    ),
    Step(
        "Check that nothing is left",
        '''\
aws autoscaling describe-auto-scaling-groups --output text \\
  --query "AutoScalingGroups[?starts_with(AutoScalingGroupName, 'first-hour')].AutoScalingGroupName"
aws ec2 describe-instances --output text --query 'Reservations[].Instances[].InstanceId' \\
  --filters Name=tag:aws:autoscaling:groupName,Values=first-hour-web Name=instance-state-name,Values=pending,running
aws ec2 describe-instances --output text --query 'Reservations[].Instances[].InstanceId' \\
  --filters Name=tag-key,Values=troop:run Name=instance-state-name,Values=pending,running
aws ec2 describe-volumes --filters Name=tag-key,Values=troop:run --output text --query 'Volumes[].VolumeId'
aws dynamodb list-tables --output text --query "TableNames[?starts_with(@, 'Troop-first-hour')]"
aws s3api list-buckets --output text --query "Buckets[?starts_with(Name, 'troop-first-hour')].Name"
aws logs describe-log-groups --output text --query "logGroups[?contains(logGroupName, 'Troop-first-hour')].logGroupName"
aws cloudformation describe-stacks --output text \\
  --query "Stacks[?StackName=='Troop-first-hour'].StackName"
echo "end of the list"''',
        "that AWS bills nothing more, also for volumes and log groups that a service created late",
        expects=(r"^\s*end of the list\s*$",),
        repeats=True,
    ),
)
