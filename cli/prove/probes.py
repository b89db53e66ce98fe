"""Asks AWS, and returns what it answers as JSON. Judges nothing."""

from cli.prove.deployment_probes import DeploymentProbes
from cli.prove.fault_probes import FaultProbes
from cli.prove.launch_probes import LaunchProbes
from cli.prove.run_probes import RunProbes
from cli.prove.storage_probes import StorageProbes


class Probes(DeploymentProbes, FaultProbes, StorageProbes, LaunchProbes, RunProbes):
    """The steps of all questions, each a method without arguments."""
