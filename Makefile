# linklab: `make demo` and `make test` do all their set-up themselves.
.DEFAULT_GOAL := help
SHELL := /bin/bash
# Else each of the tests' thousand commands compiles the same modules, in 0.3 s.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PYTHON := $(VENV)/bin/python
LINKLAB := $(VENV)/bin/linklab
MULTILINK := build/multilink
SETUP := emulator/setup
SIDE_BY_SIDE = "$$($(SETUP)/python --find)" $(SETUP)/side_by_side.py $(MAKE) -s --no-print-directory
CLIENT_SOURCES := $(shell find client -name '*.go' -o -name 'go.*' -o -name link_kinds.json 2>/dev/null)

.PHONY: help
help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

.PHONY: demo
demo: setup ## compare the thesis' approaches over two emulated links (the first call sets up)
	@$(SETUP)/demo $(LINKLAB) $(MAKE) --no-print-directory extras

# The client's tests mostly wait, so the other stages run beside them. Each stage prints all at its end.
.PHONY: test
test: packages-test development browser ## all that CI decides by; CI also measures processor time
	@$(SETUP)/stages begin
	@$(MAKE) --no-print-directory -j 2 --output-sync=target $(addprefix timed-,test-race lint site test-unit)
	@$(MAKE) --no-print-directory timed-test-e2e
	@$(SETUP)/stages end

.PHONY: test-all
test-all: export LINKLAB_TEST_ALL = 1
test-all: test ## the same with all combinations, the whole default suite and all kernels compiled

timed-%:
	@$(SETUP)/stages run $* $(MAKE) --no-print-directory $*

.PHONY: setup
setup: packages ## what runs need: Python, Go client, guest image and kernel
	+@$(SIDE_BY_SIDE) $(if $(filter -j%,$(MAKEFLAGS)),,-j) $(VENV)/.installed $(MULTILINK) guest

.PHONY: extras
extras: setup ## what further commands need: report, plot, reproduce, calibrate, campaign, Parquet
	+@$(SIDE_BY_SIDE) $(VENV)/.extras

.PHONY: development
development: setup
	+@$(SIDE_BY_SIDE) $(VENV)/.development

.PHONY: packages packages-test packages-live
packages:
	@$(SETUP)/packages
packages-test packages-live: packages-%:
	@$(SETUP)/packages $*

# Each further file adds to the environment.
$(VENV)/.installed: emulator/base.txt $(SETUP)/python | packages
	@$(SETUP)/python $(VENV)
	@touch $@

$(VENV)/.extras: emulator/requirements.txt $(VENV)/.installed
	@$(SETUP)/python --add $(VENV) $<
	@touch $@

$(VENV)/.development: emulator/development.txt $(VENV)/.installed
	@$(SETUP)/python --add $(VENV) $<
	@touch $(VENV)/.extras $@

$(MULTILINK): $(CLIENT_SOURCES) $(SETUP)/client | packages
	@$(SETUP)/client $@

# The guest needs no environment.
.PHONY: guest
guest: packages
	@PYTHONPATH=emulator "$$($(SETUP)/python --find)" -m linklab.places.guest

.PHONY: peers-quic
peers-quic: ## compile the peers of multipath QUIC (needs cargo and cmake; 12 minutes of a core)
	@$(SETUP)/peers-quic build/peers

.PHONY: browser
browser: packages-test # the tests' browser (124 MB)
	@"$$($(SETUP)/python --find)" $(SETUP)/browser.py build/browser

.PHONY: lint
lint: development ## formatters and linters of both languages
	@$(VENV)/bin/ruff format --check emulator tests
	@$(VENV)/bin/ruff check emulator tests
	@$(VENV)/bin/mypy
	@said=$$(PYTHONPATH=emulator $(VENV)/bin/lint-imports --no-cache) || { echo "$$said"; exit 1; }
	@$(SETUP)/client lint

.PHONY: format
format: development ## format both languages
	@$(VENV)/bin/ruff format emulator tests
	@$(VENV)/bin/ruff check --fix emulator tests
	@$(SETUP)/client format

.PHONY: test-unit
test-unit: development browser ## unit tests of Python
	@$(PYTHON) -m pytest -n auto --dist worksteal -m "not of_the_kernel" emulator

.PHONY: test-race
test-race: development ## unit tests of the client, with Go's race detector; without it where that runs a part
	@$(SETUP)/client test race
	@$(SETUP)/client test combinations

# One process more than cores: that with the tests on the real clock mostly waits (tests/conftest.py).
.PHONY: test-e2e
test-e2e: development browser ## end-to-end tests in the guest, in virtual time
	@$(PYTHON) -m pytest -n $$(($$(nproc) + 1)) --dist load tests

.PHONY: test-containers
test-containers: development ## the lab and the whole stack in containers (needs an engine and the images)
	@LINKLAB_CONTAINERS=1 $(PYTHON) -m pytest tests/container_test.py tests/compose_test.py

.PHONY: test-machines
test-machines: setup ## arm64 and other kernels of the host, in emulated machines (needs QEMU and apt; half an hour)
	@LINKLAB_MACHINES=1 $(PYTHON) -m pytest tests/arm64_test.py tests/host_kernels_test.py

.PHONY: bench
bench: development ## speed, fairness (ARGS="speed --quick")
	@PYTHONPATH=tests $(PYTHON) -m bench $(ARGS)

.PHONY: generate
generate: development ## make anew what is made from the code: pages, tables, golden files
	@$(SETUP)/client generate
	@$(LINKLAB) scenarios --keys > build/keys.md && mv build/keys.md profiles/README.md
	@$(PYTHON) emulator/handbook/commands.py
	@$(PYTHON) emulator/handbook/http_api.py
	@LINKLAB_GENERATE=1 $(PYTHON) -m pytest -k called_with emulator/linklab/runs/clients

.PHONY: tables
tables: development ## make stale tables of measured figures in the documents anew, or one (NAME=links-of-today)
	@$(PYTHON) emulator/handbook/tables.py $(NAME)

.PHONY: notebook
notebook: development ## execute the example notebook anew, which shows figures of runs
	@PYTHONPATH=tests $(PYTHON) -m notebooks emulator/examples/*.ipynb

.PHONY: client-all
client-all: packages ## the client for linux/amd64, linux/arm64 and android/arm64
	@$(SETUP)/client all build

.PHONY: site
site: build/site-python/.installed ## web site of the documents in build/site/html; a broken link is an error
	@build/site-python/bin/python emulator/handbook/website.py build/site

build/site-python/.installed: emulator/site.txt | packages
	@echo "linklab: Python environment for the site: 150 MB, a minute"
	@"$$($(SETUP)/python --find)" -m venv --clear build/site-python
	@build/site-python/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
		--only-binary :all: -r emulator/site.txt
	@touch $@

.PHONY: manual
manual: development ## man pages of both programs in build/man
	@$(SETUP)/manual $(PYTHON) build/man/man1

# pip takes what builds the wheel from the index, in the pinned versions.
.PHONY: wheel
wheel: setup ## one wheel for this machine in dist: linklab with client, kernel and image, for any environment
	@rm -rf dist
	@sed -n 's/^\([a-z0-9.-]*==[^ ;]*\).*/\1/p' emulator/development.txt >build/constraints.txt
	@PIP_CONSTRAINT=build/constraints.txt $(VENV)/bin/pip wheel --quiet --disable-pip-version-check \
		--no-deps --wheel-dir dist ./emulator
	@printf 'Install it in your own environment:\n\n  pip install %s\n' "$(CURDIR)"/dist/*.whl

.PHONY: release
release: packages $(VENV)/.development ## clients, man pages, guest kernel (built anew), wheel, images and checksums in build/release
	@$(SETUP)/release $(PYTHON) build/release

.PHONY: fuzz
fuzz: packages ## feed the client's parsers what nobody expects (TIME=2m of each)
	@$(SETUP)/client fuzz $(or $(TIME),2m)

.PHONY: soak
soak: packages ## the client beside a hostile server, with the race detector (TIME=10m SEED=1)
	@$(SETUP)/client soak $(or $(TIME),10m) $(or $(SEED),1)

.PHONY: soak-lab
soak-lab: setup ## the same over emulated links, for TIME=1h of the guest's (SEED=1)
	@$(SETUP)/client soak-program build/soak
	@$(LINKLAB) exec tests/soak.yaml --timeout 36000 --seed $(or $(SEED),1) -- "$(CURDIR)/build/soak" -test.v \
		-test.timeout 0 -soak.lab -soak.model "$(CURDIR)/profiles/energy/galaxy-s3.yaml" -soak.largest 300000 -soak.time $(or $(TIME),1h) -soak.seed $(or $(SEED),1)

.PHONY: live
live: packages-live setup ## a lab to watch in real time, with Debian's Prometheus beside it (ARGS="hs-s7 -a alg3")
	@dashboards/prometheus/beside $(LINKLAB) $(ARGS)

.PHONY: clean
clean: ## what linklab left (runs stay)
	@if [ -x $(LINKLAB) ]; then $(LINKLAB) clean; fi
