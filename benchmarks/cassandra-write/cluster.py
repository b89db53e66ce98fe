"""Computes the layout of the ring and the configuration of its servers. Pure.

Everything follows from the roster, which is the same on all nodes, so each server computes its token and the seeds
itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CLUSTER = "troop"
DATACENTER = "dc1"

STORAGE_PORT, NATIVE_PORT, AGENT_PORT = 7000, 9042, 8778

LOWEST_TOKEN, TOKENS = -(2**63), 2**64
"""The lowest token and the number of tokens of the Murmur3 partitioner."""

MIB = 1 << 20
MOST_HEAP_MIB = 31 * 1024
"""The limit up to which the JVM uses compressed pointers."""


@dataclass(frozen=True)
class Server:
    """A server on the roster."""

    rank: int
    address: str
    zone: str
    token: int


def servers(roster: Mapping[str, Any]) -> list[Server]:
    """Returns all servers, ordered by rank.

    A token follows from the number of servers when the rank began, which is ``of`` in the roster of a standing fleet: a
    ring with data cannot take tokens of another number. In a benchmark, all servers begin together.
    """
    nodes = sorted((n for n in roster["nodes"] if n["role"] == "servers"), key=lambda n: int(n["rank"]))
    return [Server(n["rank"], n["address"], n["zone"], token(n["rank"], n.get("of") or len(nodes))) for n in nodes]


def token(rank: int, count: int) -> int:
    """Returns a server's single token: ``count`` tokens divide the ring evenly.

    Ranks alternate between zones, and so does the ring: neighbours, which hold copies of the same rows, are in
    different zones.
    """
    return LOWEST_TOKEN + rank * TOKENS // count


def seeds(all_servers: Sequence[Server]) -> list[str]:
    """Returns the addresses that new nodes ask for the others: the first server of each zone, at most three."""
    first: dict[str, str] = {}
    for server in all_servers:
        first.setdefault(server.zone, server.address)
    return list(first.values())[:3]


def configuration(own: Server, ring: Sequence[Server], folders: Sequence[str], write_timeout_ms: int) -> dict[str, Any]:
    """Returns ``cassandra.yaml`` of a server (JSON is YAML). Omitted settings have Cassandra's defaults.

    Args:
        folders: for data, one per disk; the commit log is in the first.
        write_timeout_ms: after this time a write has failed, and a replica drops it if it is not applied.
    """
    return {
        "cluster_name": CLUSTER,
        "num_tokens": 1,
        "initial_token": str(own.token),
        "auto_bootstrap": False,  # an empty ring has nothing to stream, so all servers can start at once
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "GossipingPropertyFileSnitch",
        "seed_provider": [
            {
                "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                "parameters": [{"seeds": ",".join(seeds(ring))}],
            }
        ],
        "listen_address": own.address,
        "rpc_address": own.address,
        "storage_port": STORAGE_PORT,
        "native_transport_port": NATIVE_PORT,
        "write_request_timeout": f"{write_timeout_ms}ms",
        "commitlog_sync": "periodic",
        "commitlog_sync_period": "10s",
        "data_file_directories": [f"{folder}/data" for folder in folders],
        "commitlog_directory": f"{folders[0]}/commitlog",
        "saved_caches_directory": f"{folders[0]}/saved_caches",
        "hints_directory": f"{folders[0]}/hints",
        "memtable_allocation_type": "offheap_objects",
        "authenticator": "AllowAllAuthenticator",
        "authorizer": "AllowAllAuthorizer",
    }


def rack(own: Server) -> str:
    """Returns ``cassandra-rackdc.properties``: a zone is a rack, so the copies of a row are in different zones."""
    return f"dc={DATACENTER}\nrack={own.zone}\n"


LOGGING = """<configuration>
  <appender name="FILE" class="ch.qos.logback.core.FileAppender">
    <file>${cassandra.logdir}/system.log</file>
    <encoder><pattern>%-5level [%thread] %date{ISO8601} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="FILE" /></root>
</configuration>
"""

_EXPORTS = (
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.unsupported/sun.misc",
)
_OPENS = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.math",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
)
"""Internal parts of Java 17 that Cassandra accesses."""


def heap_mib(memory_mib: int, setting: int) -> int:
    """Returns the configured heap; for 0 a quarter of the memory, because memtables and the file cache need the
    rest.
    """
    return setting or max(256, min(memory_mib // 4, MOST_HEAP_MIB))


def java_options(
    heap: int, agent: str, own: Server, folders: Mapping[str, str], ring_delay_ms: int, more: Sequence[str] = ()
) -> list[str]:
    """Returns the JVM's options without the class path.

    Args:
        heap: MiB.
        agent: the JAR that serves JMX over HTTP.
        folders: ``conf``, ``logs``, ``storage``, ``triggers``; and ``jamm``, a JAR.
        ring_delay_ms: how long a node listens for others before it joins the ring.
        more: options that supplement or override the others.
    """
    return [
        f"-Xms{heap}M",
        f"-Xmx{heap}M",
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=300",
        "-XX:+ParallelRefProcEnabled",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        "-Xss512k",
        "-Djava.net.preferIPv4Stack=true",
        "-Djdk.attach.allowAttachSelf=true",
        "-Dio.netty.tryReflectionSetAccessible=true",
        f"-Dcassandra.config=file://{folders['conf']}/cassandra.yaml",
        f"-Dcassandra.storagedir={folders['storage']}",
        f"-Dcassandra.logdir={folders['logs']}",
        f"-Dcassandra.triggers_dir={folders['triggers']}",
        f"-Dlogback.configurationFile={folders['conf']}/logback.xml",
        f"-Dcassandra.ring_delay_ms={ring_delay_ms}",
        "-Dcassandra.consistent.rangemovement=false",  # otherwise only one node at a time may join
        "-Dcassandra.skip_wait_for_gossip_to_settle=0",
        f"-javaagent:{folders['jamm']}",
        f"-javaagent:{agent}=host={own.address},port={AGENT_PORT},discoveryEnabled=false",
        *more,
        *(option for module in _EXPORTS for option in ("--add-exports", f"{module}=ALL-UNNAMED")),
        *(option for module in _OPENS for option in ("--add-opens", f"{module}=ALL-UNNAMED")),
    ]


WRITE, READ, MIXED = "write", "read", "mixed"


def kinds(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns what the measured phase does, by the parameter ``pattern``: writes, reads or both."""
    pattern = parameters.get("pattern", WRITE)
    return (WRITE, READ) if pattern == MIXED else (pattern,)


def conflict(parameters: Mapping[str, Any]) -> str | None:
    """Returns why the driver cannot do what the parameters say; None if it can."""
    if len(kinds(parameters)) > 1 and parameters["driver"] == "latte":
        return "latte does not separate writes from reads: set driver to cassandra-stress for the pattern mixed"
    return None


def key_range(rank: int, keys: int) -> tuple[int, int]:
    """Returns the keys that only this driver writes: the first, and the end, which is excluded."""
    return rank * keys, (rank + 1) * keys
