# `make demo` and `make test` install what they need; the other targets are for developers.
PYTHON ?= python3
BIN := .venv/bin
ACCOUNT := .venv-account
NODE := .venv-node
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONPATH := $(CURDIR):$(CURDIR)/functions
export CDK_DISABLE_CLI_TELEMETRY := 1
# Container images often set it. Then each of hundreds of processes compiles all its imports, and pytest rewrites tests at every run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup browser demo bench first-hour local pictures deploy promote destroy test duration test-all check style lint openapi constraints audit release unit model infra machines aws_facts e2e local-tests storage faults perf histories cassandra latte agent-boot second-opinions format clean web ring loss workers data-service
help:  ## list the targets
	@grep -hE '^[a-z0-9_-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

setup: .venv/.ready $(BIN)/troop $(ACCOUNT)/.ready $(NODE)/.ready node_modules/.ready .build/.ready  ## install virtual environments, the CDK CLI and layers

demo: setup  ## terminate an instance and watch its group recover, on local AWS
	@$(BIN)/python -m local demo

bench: setup  ## run a benchmark on a fleet of processes, show its results, and check its teardown
	@$(BIN)/python -m local bench

first-hour: setup  ## run the steps of docs/start/first-hour.md on local AWS
	@$(BIN)/python -m local first-hour

local: setup  ## run local AWS with Troop deployed, until Ctrl-C; ARGS=--kernels: nodes are kernels of their own, ARGS='--name other': beside another
	@$(BIN)/python -m local up $(ARGS)

OUT ?= docs/pictures
MINUTES ?= 30
pictures: setup browser  ## take the documents' pictures from a business day of 30 minutes on local AWS; OUT=folder, MINUTES=3 for a trial
	@$(BIN)/python -m local pictures --out $(OUT) --minutes $(MINUTES)

# Both take STAGE=name or DEPLOYMENT=name. deploy also takes YES=1, ADOPT=newest|none|TABLE,..., UNLEASHED=1, REPAIR=1 (restores
# manual changes), ARGS='-c troop:KEY=VALUE', and for the settings of earlier commands KEEP=1 or RESET=1; destroy also takes
# CONFIRM=name and PURGE=1. A value is passed as one word, whatever it contains; ARGS is split by the shell.
option = $(if $(2),--$(1)='$(subst ','\'',$(2))')
TO_DEPLOY := .venv/.ready $(BIN)/troop node_modules/.ready .build/.ready
deploy: $(TO_DEPLOY)  ## deploy into the account of the current AWS credentials; asks for confirmation
	@$(BIN)/python -m lifecycle.deploy $(call option,stage,$(STAGE)) $(call option,deployment,$(DEPLOYMENT)) $(if $(YES),--yes) \
		$(call option,adopt,$(ADOPT)) $(if $(UNLEASHED),--unleashed) $(if $(REPAIR),--repair) \
		$(if $(KEEP),--keep) $(if $(RESET),--reset) $(ARGS)

promote: $(TO_DEPLOY)  ## deploy the release that the stage FROM has run for DAYS business days to the stage TO of deployments.yaml; FROM=none: nothing is proven; CHECK=1: only check
	@$(BIN)/python -m lifecycle.promote $(call option,from,$(FROM)) $(call option,to,$(TO)) $(call option,days,$(DAYS)) \
		$(call option,deployments,$(DEPLOYMENTS)) $(if $(CHECK),--check) $(if $(YES),--yes) $(if $(KEEP),--keep) $(if $(RESET),--reset)

destroy: $(TO_DEPLOY)  ## remove the deployment from that account; lists what stays, and asks for confirmation; PURGE=1 removes that too
	@$(BIN)/python -m lifecycle.destroy $(call option,stage,$(STAGE)) $(call option,deployment,$(DEPLOYMENT)) $(call option,confirm,$(CONFIRM)) $(if $(PURGE),--purge)

ORDINARY := 'not clean_root and not cassandra and not second_opinion'
test: duration setup browser lint  ## run lint and every test
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -m $(ORDINARY)  # the cores of a small machine

duration:
	@echo "== tests: about half an hour on two cores"

test-all: export TROOP_EXHAUSTIVE := 1
test-all: test agent-boot second-opinions  ## run the same, with benchmarks stopped in every state and aborted at every call, and a node in a clean root

browser:
	@bash scripts/browser

check: style  ## check what you change, in about a minute: style, names, types, references, imports, prose of changed files, fast tests
	@$(BIN)/python scripts/check.py

lint: setup style  ## check style, names, types, references, sentence lengths and imports
	@$(BIN)/python scripts/prose.py --check

# Scripts of nodes import the modules beside them; those on Cassandra also import cassandra-write's.
style: .venv/.ready
	@echo "== style, names, types, references and imports"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python scripts/names.py app.py agent benchmarks cli fleets functions infra lifecycle local perf release scripts tests troop_aws
	@$(BIN)/mypy functions agent infra cli lifecycle local perf release tests troop_aws app.py
	@for folder in benchmarks/*/ fleets/*/; do MYPYPATH=$$folder:benchmarks/cassandra-write $(BIN)/mypy --exclude /build/ $$folder || exit; done
	@$(BIN)/python scripts/references.py
	@contracts=$$($(BIN)/lint-imports) || { echo "$$contracts"; exit 1; }; echo "$$contracts" | tail -n 3

unit: setup browser  ## run only the unit tests
model: setup  ## run only the model test: histories of chaos against its invariants
infra: setup  ## run only the tests of the synthesised template and of the documents
machines: setup  ## run only the tests of the state machines
aws_facts: setup  ## run only the comparison of the code with what AWS publishes
e2e: setup browser  ## run only the whole loops on local AWS
unit model infra machines aws_facts e2e:
	@$(BIN)/python -m pytest -m $(ORDINARY) tests/$@

local-tests: setup  ## run only the tests of local AWS; `make local` starts it
	@$(BIN)/python -m pytest -m $(ORDINARY) tests/local

storage: .venv/.ready node_modules/.ready  ## measure a volume, RAID-0 and a cache by disk-io and event-processor on real kernels of this machine, with reports (a minute or two; Debian's user-mode-linux)
	@$(BIN)/python -m local.storage

faults: setup  ## inject every fault into real kernels by a deployed Troop, and measure how each ends (half an hour; Debian's user-mode-linux, stress-ng, iptables); ARGS='--only TEXT'
	@$(BIN)/python -m local.faults $(ARGS)

perf: setup  ## measure deciding, a tick over 10,000 groups, how exactly recoveries are known, a benchmark of 348 nodes, large reports, comparisons of benchmarks, change points, windows before faults, a year of nights, a million of JMeter's samples, pages of events, the report of a period, the views of the page, refusals of large requests, running summaries, the reader of s3-range-read, the application of web-scale, cold starts, the start of the command, 10,000 tasks of workers a third of whose nodes are lost (half an hour)
	@$(BIN)/python -m perf.decide
	@$(BIN)/python -m perf.cold_start
	@$(BIN)/python -m perf.command
	@$(BIN)/python -m perf.tick
	@$(BIN)/python -m perf.recovery
	@$(BIN)/python -m perf.events_page
	@$(BIN)/python -m perf.failure
	@$(BIN)/python -m perf.period
	@$(BIN)/python -m perf.page
	@$(BIN)/python -m perf.refusals
	@$(BIN)/python -m perf.cell
	@$(BIN)/python -m perf.merge
	@$(BIN)/python -m perf.compare
	@$(BIN)/python -m perf.report
	@$(BIN)/python -m perf.change_points
	@$(BIN)/python -m perf.history_page
	@$(BIN)/python -m perf.jmeter
	@$(BIN)/python -m perf.recorder
	@$(BIN)/python -m perf.live
	@$(BIN)/python -m perf.s3_reader
	@$(BIN)/python -m perf.lost_workers
	@command -v wrk >/dev/null && $(BIN)/python -m perf.web_app || echo "perf.web_app: skipped, it needs wrk, Go and memcached"

HISTORIES ?= 1000000
histories: setup  ## run a million histories of the model test and a million of lasting faults, from random seeds (four hours on two cores); HISTORIES=n
	@$(BIN)/python -m perf.model --histories $(HISTORIES)
	@$(BIN)/python -m perf.model --lasting --histories $(HISTORIES)

openapi: setup  ## generate from the code: docs/reference, the runbook's tables of alarms, and schemas of files, reports and comparisons
	@$(BIN)/python -m infra.openapi
	@$(BIN)/python -m infra.bench_schema
	@$(BIN)/python -m infra.bench_reference
	@$(BIN)/python -m infra.report_schema
	@$(BIN)/python -m infra.settings_doc
	@$(BIN)/python -m infra.reference_doc
	@$(BIN)/python -m infra.roles_doc
	@$(BIN)/python -m infra.controls_doc
	@$(BIN)/python -m infra.alarms_doc
	@$(BIN)/python -m infra.faults_doc
	@$(BIN)/python -m infra.risks_doc
	@$(BIN)/python -m infra.metrics_doc
	@$(BIN)/python -m infra.notifications_doc
	@$(BIN)/python -m perf.price --document

constraints: .venv/.ready  ## pin the packages of pyproject.toml with digests in uv.lock and requirements*.txt; ARGS=--upgrade: newest versions
	@bash scripts/constraints $(ARGS)

RELEASE ?= dist
release: .venv/.ready node_modules/.ready  ## build the wheel of a version, its checksum and notes, and tag the commit; pushes nothing; RELEASE=folder
	@$(BIN)/python -m release $(RELEASE)

audit: .venv/.ready  ## list known advisories about the pinned packages; exit code 1: found some, 2: a service did not answer
	@$(BIN)/python scripts/audit

cassandra: setup  ## measure a real Cassandra ring in two steps, and as points (a quarter of an hour; first builds latte)
	@$(BIN)/python -m local tools
	@$(BIN)/python -m pytest -s -rs -m cassandra tests/e2e/test_cassandra.py

latte: .venv/.ready .build/zig/.ready  ## build latte, the load generator of cassandra-write, for nodes, and print its hash (five minutes; needs cargo)
	@$(BIN)/python -m local latte

web: setup  ## load an airline's application with JMeter on one and two nodes of each tier, and write the report (twenty minutes; needs Go); ARGS='--set KEY=VALUE'
	@$(BIN)/python -m local web -- $(ARGS)

ring: setup  ## end a server of a real Cassandra ring, and count what its clients notice until a replacement has its place (five minutes)
	@$(BIN)/python -m local ring

loss: setup  ## measure what load notices when a Cassandra ring loses a server, web tiers behind nginx a node, and kernels their network, and write the reports (15 minutes; needs Go, first builds latte)
	@$(BIN)/python -m local loss

workers: setup  ## run a fleet of real workers with a queue: it grows, loses nodes, heals and shrinks; draw backlog, nodes and cost (ten minutes); ARGS=--short: three nodes
	@$(BIN)/python -m local workers $(ARGS)

data-service: setup  ## measure a REST service on real Cassandra with and without memcached, and compare both (a quarter of an hour; needs Go)
	@$(BIN)/python -m local tools --service
	@$(BIN)/python -m pytest -s -rs -m cassandra tests/e2e/test_data_service.py

agent-boot: setup  ## boot a node on simulated EC2: Python 3.9, AWS CLI 2, real addresses, signatures and policies (as root; installs debootstrap)
	@[ "$$(id -u)" != 0 ] || command -v debootstrap >/dev/null || { echo "== debootstrap is missing: apt-get install -y debootstrap"; apt-get update -qq && apt-get install -y -qq debootstrap; }
	@$(BIN)/python -m tests.unit.agent.clean_root $(BIN)/python -m pytest -rs -m clean_root tests/unit/agent/test_clean_root.py

second-opinions: setup  ## check with AWS's DynamoDB Local, AWS's validator of workflows, and Python 3.14 (three minutes; Java, Maven)
	@$(BIN)/npm ci --prefix tests/opinions --no-audit --no-fund --loglevel=error
	@$(BIN)/python -m pytest -rs -m second_opinion tests/opinions

format: setup  ## fix and format with ruff
	@$(BIN)/ruff check --fix -q . ; $(BIN)/ruff format .

clean:  ## remove everything that setup and runs have created
	rm -rf .venv $(ACCOUNT) $(NODE) node_modules .build .local cdk.out

# By its interpreter: a source that comes through CodePipeline can have lost the permission to execute.
.venv/.ready: uv.lock
	@bash scripts/venv $(PYTHON) .venv --extra cdk --group dev

$(BIN)/troop: scripts/troop .venv/.ready
	@ln -sf ../../scripts/troop $@

$(ACCOUNT)/.ready: uv.lock | .venv/.ready
	@bash scripts/venv $(PYTHON) $(ACCOUNT) --only-group account

$(NODE)/.ready: uv.lock | .venv/.ready
	@bash scripts/venv $(PYTHON) $(NODE) --only-group node

.build/zig/.ready: uv.lock | .venv/.ready
	@mkdir -p .build
	@bash scripts/venv $(PYTHON) .build/zig --only-group latte

node_modules/.ready: package.json package-lock.json .venv/.ready
	@echo "== the CDK CLI, into node_modules/"
	@npm ci --no-audit --no-fund --loglevel=error
	@touch $@

.build/.ready: .venv/.ready functions/requirements.txt functions/requirements-api.txt functions/requirements-report.txt package.json package-lock.json \
		infra/bundling.py infra/byte_code.py infra/byte_code.mjs infra/npm.py infra/store.py
	@echo "== the functions' layers, into .build/"
	@$(BIN)/python -m infra.bundling
	@touch $@
