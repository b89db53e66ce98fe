# `make demo` and `make test` set up all they need; the rest is here for people who stay longer.
PYTHON ?= python3
BIN := .venv/bin
ACCOUNT := .venv-account
NODE := .venv-node
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONPATH := $(CURDIR):$(CURDIR)/functions
export CDK_DISABLE_CLI_TELEMETRY := 1
# Images for containers often set it: then each of hundreds of processes compiles all it imports, and tests are rewritten at every run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup browser demo bench local pictures deploy destroy test test-all lint openapi constraints audit unit model infra machines e2e local-tests perf histories cassandra agent-boot second-opinions format clean
help:  ## what there is
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

setup: .venv/.ready $(BIN)/troop $(ACCOUNT)/.ready $(NODE)/.ready node_modules/.ready .build/.ready  ## virtual environments, CDK CLI, layers

demo: setup  ## see an instance terminated and its group recover, on AWS on this machine
	@$(BIN)/python -m local demo

bench: setup  ## see a benchmark run on a fleet of processes, its results, and nothing left of it
	@$(BIN)/python -m local bench

local: setup  ## AWS on this machine with Troop deployed, until Ctrl-C
	@$(BIN)/python -m local up

OUT ?= docs/pictures
pictures: setup browser  ## the documents' pictures of dashboards, page and report, taken on AWS on this machine (about six minutes); OUT=folder
	@$(BIN)/python -m local pictures --out $(OUT)

# Both also take STAGE=name or DEPLOYMENT=name; deploy takes YES=1, ADOPT=newest|none|TABLE,..., UNLEASHED=1, REPAIR=1 (puts
# back what was changed by hand) and ARGS='-c troop:KEY=VALUE', destroy CONFIRM=name. A value reaches the command as one word,
# whatever is in it; ARGS is words of a shell.
option = $(if $(2),--$(1)='$(subst ','\'',$(2))')
TO_DEPLOY := .venv/.ready $(BIN)/troop node_modules/.ready .build/.ready
deploy: $(TO_DEPLOY)  ## into the account of the current AWS credentials; asks first
	@$(BIN)/python -m lifecycle.deploy $(call option,stage,$(STAGE)) $(call option,deployment,$(DEPLOYMENT)) $(if $(YES),--yes) \
		$(call option,adopt,$(ADOPT)) $(if $(UNLEASHED),--unleashed) $(if $(REPAIR),--repair) $(ARGS)

destroy: $(TO_DEPLOY)  ## out of that account; says what stays, and asks first
	@$(BIN)/python -m lifecycle.destroy $(call option,stage,$(STAGE)) $(call option,deployment,$(DEPLOYMENT)) $(call option,confirm,$(CONFIRM))

ORDINARY := 'not clean_root and not cassandra and not second_opinion'
test: setup browser lint  ## lint, types, and every test
	@$(BIN)/python -m pytest -n 3 --dist loadgroup -m $(ORDINARY)  # one more than a small machine has cores: whole runs mostly wait

test-all: export TROOP_EXHAUSTIVE := 1
test-all: test agent-boot second-opinions  ## the same, with benchmarks stopped in every state and cut off at every call, and a node in a clean root

browser:
	@scripts/browser

lint: setup  ## ruff, names, mypy, the direction of imports
	@echo "== lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python scripts/names.py app.py agent benchmarks cli fleets functions infra lifecycle local perf scripts tests
	@$(BIN)/mypy functions agent infra cli lifecycle local perf tests app.py
	@$(BIN)/mypy benchmarks/s3-range-read/read.py benchmarks/s3-range-read/prepare.py
	@$(BIN)/mypy fleets/worker/worker.py
	@MYPYPATH=benchmarks/cassandra-write $(BIN)/mypy benchmarks/cassandra-write/*.py
	@contracts=$$($(BIN)/lint-imports) || { echo "$$contracts"; exit 1; }; echo "$$contracts" | tail -n 3

unit: setup browser  ## the unit tests alone
model: setup  ## the model test alone: histories of chaos against what must always hold
infra: setup  ## the tests of the synthesised template and of the documents alone
machines: setup  ## the tests of the state machines alone
e2e: setup browser  ## whole loops on local AWS alone
unit model infra machines e2e:
	@$(BIN)/python -m pytest -m $(ORDINARY) tests/$@

local-tests: setup  ## the tests of AWS on this machine alone; `make local` starts it
	@$(BIN)/python -m pytest -m $(ORDINARY) tests/local

perf: setup  ## measurements: deciding, a tick over 10,000 groups, a benchmark of 348 nodes, large reports, a million of JMeter's samples, pages of events, cold starts (half an hour)
	@$(BIN)/python -m perf.decide
	@$(BIN)/python -m perf.cold_start
	@$(BIN)/python -m perf.tick
	@$(BIN)/python -m perf.events_page
	@$(BIN)/python -m perf.cell
	@$(BIN)/python -m perf.merge
	@$(BIN)/python -m perf.report
	@$(BIN)/python -m perf.jmeter

HISTORIES ?= 1000000
histories: setup  ## a million histories of the model test (two hours on two cores); HISTORIES=n
	@$(BIN)/python -m perf.model --histories $(HISTORIES)

openapi: setup  ## docs/openapi.json, docs/settings.md and the schemas of files, reports and comparisons, from the code
	@$(BIN)/python -m infra.openapi
	@$(BIN)/python -m infra.bench_schema
	@$(BIN)/python -m infra.report_schema
	@$(BIN)/python -m infra.settings_doc

constraints:  ## pins what requirements*.in bring in, with digests, into requirements*.txt: after changes of those
	@scripts/constraints $(PYTHON)

audit: .venv/.ready  ## known advisories about the pinned packages; exit code 1: there are some, 2: a service could not be asked
	@$(BIN)/python scripts/audit

cassandra: setup  ## a real Cassandra ring measured in two steps, and one that loses a server (a quarter of an hour; first builds latte)
	@$(BIN)/python -m local tools
	@$(BIN)/python -m pytest -s -rs -m cassandra tests/e2e/test_cassandra.py

agent-boot: setup  ## boots a benchmark's node in a clean Debian root with Python 3.9 (as root; needs debootstrap, installs it)
	@command -v debootstrap >/dev/null || { echo "== debootstrap is missing: apt-get install -y debootstrap"; apt-get update -qq && apt-get install -y -qq debootstrap; }
	@$(BIN)/python -m pytest -rs -m clean_root tests/unit/agent/test_clean_root.py

second-opinions: setup  ## AWS's own DynamoDB Local, AWS's validator of workflows, and Python 3.14 for the functions (three minutes; Java, Maven)
	@$(BIN)/npm ci --prefix tests/opinions --no-audit --no-fund --loglevel=error
	@$(BIN)/python -m pytest -rs -m second_opinion tests/opinions

format: setup
	@$(BIN)/ruff check --fix -q . ; $(BIN)/ruff format .

clean:  ## removes everything that setup and runs have made
	rm -rf .venv $(ACCOUNT) $(NODE) node_modules .build .local cdk.out

.venv/.ready: requirements-dev.txt
	@scripts/venv $(PYTHON) .venv requirements-dev.txt

$(BIN)/troop: scripts/troop .venv/.ready
	@ln -sf ../../scripts/troop $@

$(ACCOUNT)/.ready: requirements-account.txt
	@scripts/venv $(PYTHON) $(ACCOUNT) requirements-account.txt

$(NODE)/.ready: requirements-node.txt
	@scripts/venv $(PYTHON) $(NODE) requirements-node.txt

node_modules/.ready: package.json package-lock.json .venv/.ready
	@echo "== the CDK CLI, into node_modules/"
	@npm ci --no-audit --no-fund --loglevel=error
	@touch $@

.build/.ready: .venv/.ready functions/requirements.txt functions/requirements-api.txt functions/requirements-report.txt package.json package-lock.json \
		infra/bundling.py infra/byte_code.py infra/byte_code.mjs infra/npm.py infra/store.py
	@echo "== the functions' layers, into .build/"
	@$(BIN)/python -m infra.bundling
	@touch $@
