"""Composes command lines and configurations of the tiers. Each tier has its own port at the addresses of the roster."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from install import which
from node import Phase

PORTS = {"proxies": 7080, "web": 7081, "authentication": 7082, "mobile": 7083, "data": 7211}
"""The port of each tier: no well-known port, which another program of a machine may use."""
KEEP_ALIVE = 256
"""Idle connections that each process of nginx retains to a tier."""

CONFIGURATION = """\
{user}{processes};
worker_rlimit_nofile 65536;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log warn;
events {{
  worker_connections 16384;
}}
http {{
  access_log off;
  keepalive_requests 1000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  proxy_max_temp_file_size 0;
{upstreams}
  map $http_user_agent $tier {{
    default web;
{mobiles}
  }}
  server {{
    listen {address}:{port} backlog=4096;
    location / {{
      proxy_pass http://$tier;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
{passing}
    }}
  }}
}}
"""
FIXED = """\
      # A server that fails stays in use: its requests fail, and the report shows them.
      proxy_next_upstream off;
      proxy_connect_timeout 5s;
      proxy_read_timeout 15s;"""
FAILOVER = """\
      # A server that fails is left out for 10 s. Another one gets its request, unless that may have changed something.
      proxy_next_upstream error timeout;
      # Only a server that does not answer at all must be left out: web servers wait for other tiers, for up to 10 s.
      proxy_connect_timeout 1s;
      proxy_read_timeout 15s;"""
UPSTREAM = """\
  upstream {role} {{
{servers}
    keepalive {keep_alive};
    keepalive_requests 1000000;
  }}"""


def endpoints(phase: Phase, role: str) -> list[str]:
    """Returns address and port of each node of a role, by rank."""
    return [f"{address}:{PORTS[role]}" for address in phase.nodes.get(role, [])]


def nginx_configuration(phase: Phase, folder: Path) -> str:
    has_mobiles = bool(endpoints(phase, "mobile"))
    workers = int(phase.parameters["proxy_workers"])
    # A master overwrites its environment, by which local AWS finds the processes of a node that it ends.
    processes = "master_process off" if workers == 1 else f"worker_processes {workers or 'auto'}"
    return CONFIGURATION.format(
        user="user root;\n" if os.geteuid() == 0 else "",  # another user cannot open files in a node's folders
        processes=processes,
        folder=folder,
        upstreams="\n".join(_upstream(phase, role) for role in ("web", *(["mobile"] if has_mobiles else []))),
        mobiles="    ~Mobile mobile;" if has_mobiles else "    # web serves mobiles, too",
        passing=FAILOVER if phase.parameters["failover"] else FIXED,
        address=phase.address,
        port=PORTS["proxies"],
    )


def _upstream(phase: Phase, role: str) -> str:
    every = endpoints(phase, role)
    first = phase.rank % max(1, len(every))
    # Proxies begin their rounds at different servers, or all would send their first requests to the same one.
    fails = "max_fails=1 fail_timeout=10s" if phase.parameters["failover"] else "max_fails=0"
    servers = "\n".join(f"    server {one} {fails};" for one in every[first:] + every[:first])
    return UPSTREAM.format(role=role, servers=servers, keep_alive=KEEP_ALIVE)


def command(phase: Phase, folder: Path) -> Sequence[str]:
    """Returns the command of this node's server; it stays in the foreground."""
    own = f"{phase.address}:{PORTS[phase.role]}"
    if phase.role == "proxies":
        return [_path("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    if phase.role == "data":
        mib = int(phase.parameters["data_mib"]) or memory_mib() * 3 // 4
        words = [_path("memcached"), "-l", phase.address, "-p", str(PORTS["data"]), "-U", "0"]
        words += ["-m", str(mib), "-c", str(connections()), "-t", str(os.cpu_count() or 1)]
        return [*words, "-u", "nobody"] if os.geteuid() == 0 else words
    service = "web" if phase.role == "mobile" else phase.role
    return [str(phase.program), service, "--roster", str(phase.roster_path), "--listen", own, *ports()]


def fill_command(phase: Phase) -> Sequence[str]:
    """Returns the command that writes this web node's share of the data."""
    size = [f"--days={phase.parameters['days']}", f"--customers={phase.parameters['customers']}"]
    return [str(phase.program), "fill", "--roster", str(phase.roster_path), f"--rank={phase.rank}", *size, ports()[0]]


def ports() -> list[str]:
    return [f"--data-port={PORTS['data']}", f"--authentication-port={PORTS['authentication']}"]


def connections() -> int:
    """Returns how many connections memcached may have: all that the node allows, with some files for itself."""
    return max(256, min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 512))


def memory_mib() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024**2


def _path(name: str) -> str:
    path = which(name)
    if path is None:
        sys.exit(f"{name} is missing on this node: the phase install has installed it before")
    return path
