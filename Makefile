# Everything happens in .venv, installed from requirements.lock with hashes.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install dev demo check fast quick test test-long test-all soak simulate guards docs bench lock clean

install: .venv/installed

PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV_INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python  # in seconds; does not know pip's settings

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/bin/uv: | .venv/bin/python
	-$(PIP_INSTALL) --require-hashes -r requirements-uv.lock

.venv/installed: requirements.lock pyproject.toml | .venv/bin/uv
	$(UV_INSTALL) --require-hashes -r requirements.lock || $(PIP_INSTALL) --require-hashes -r requirements.lock
	$(PIP_INSTALL) --no-deps -e .
	@touch $@

dev: .venv/dev

.venv/dev: requirements-dev.lock pyproject.toml | .venv/bin/uv
	$(UV_INSTALL) --require-hashes -r requirements-dev.lock || $(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	$(PIP_INSTALL) --no-deps -e .
	@touch $@ .venv/installed

demo: install
	$(BIN)/assay add samples/corpus --workspace demo-workspace
	@echo
	$(BIN)/assay ask "What model is the sensor that raised the first alarm in the Pellam incident?" --workspace demo-workspace || [ $$? -eq 3 ]
	@echo
	@echo "The same in the browser: $(BIN)/assay serve --workspace demo-workspace --open"

check: dev
	$(BIN)/ruff check src tests bench samples examples scripts
	$(BIN)/ruff format --check src tests bench samples examples scripts
	$(BIN)/lint-imports
	$(BIN)/basedpyright --level error
	$(BIN)/python scripts/page/check.py
	$(BIN)/python bench/lines.py
	$(BIN)/python bench/measured.py

LONG := browser or kill or long
PYTEST := $(BIN)/pytest -n 3 --dist worksteal  # one more than two cores: some tests wait for a process or a socket

test: dev  # what a contributor runs: the checks and the quick tests, side by side
	$(MAKE) --no-print-directory --jobs 2 check quick

PURE := tests/answer tests/core tests/language tests/lookup tests/evidence tests/properties tests/doubles tests/evaluate/test_metrics.py

fast: dev  # tests of the packages that only compute
	$(PYTEST) -m "not ($(LONG))" $(wildcard $(PURE))

quick: dev
	$(PYTEST) -m "not ($(LONG))"

test-long: dev  # the rest: tests in a browser, tests that kill processes, long property tests
	$(PYTEST) -m "$(LONG)"

test-all: test test-long

soak: dev  # tests with a long form, in that form; ONLY=tests/… selects one
	ASSAY_SOAK=1 $(BIN)/pytest -o timeout=3600 $(or $(ONLY),$$(grep -rl --include='test_*.py' ASSAY_SOAK tests))

simulate: dev  # whole lives of a workspace in which everything goes wrong; SECONDS=… new seeds, those from FIRST=… on, or SEED=… again
	$(BIN)/python tests/simulation/simulate.py $(if $(SEED),--seed $(SEED),--seconds $(or $(SECONDS),60) $(if $(FIRST),--first $(FIRST)))

guards: dev
	$(BIN)/python tests/hostile/guards.py

docs: dev  # the pages that are made from the code and from result files
	$(BIN)/python scripts/reference.py
	$(BIN)/python scripts/troubleshooting.py
	$(BIN)/python tests/hostile/guards.py --write
	$(BIN)/python bench/report.py

bench: dev .peers/installed .agents/installed .paper-qa/installed .haiku-rag/installed .llm/installed  # what bench/ compares Assay with; a package that cannot be installed is left out

.peers/installed: bench/peers.txt
	$(PYTHON) -m venv .peers
	grep -v "^#" bench/peers.txt | while read -r line; do .peers/bin/python -m pip install --quiet $$line || echo "left out: $$line"; done
	@touch $@

.paper-qa/installed:  # its agent: with a newer fhlmi it does not start, and an older one does not go with the other peers
	$(PYTHON) -m venv .paper-qa
	.paper-qa/bin/python -m pip install --quiet paper-qa "fhlmi<0.46" || echo "left out: paper-qa's agent"
	@touch $@

.haiku-rag/installed:  # needs Python 3.12
	$(shell python3.12 -c 'import sys; print(sys.executable)' 2>/dev/null || echo $(PYTHON)) -m venv .haiku-rag
	.haiku-rag/bin/python -m pip install --quiet haiku.rag-slim || echo "left out: haiku.rag"
	@touch $@

.llm/installed:  # only started
	$(PYTHON) -m venv .llm
	.llm/bin/python -m pip install --quiet llm || echo "left out: llm"
	@touch $@

.agents/installed: pyproject.toml
	$(PYTHON) -m venv .agents
	.agents/bin/python -m pip install --quiet --upgrade pip
	.agents/bin/python -m pip install --quiet --group bench -e .
	@touch $@

UV_LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

lock: .venv/bin/uv
	$(UV_LOCK) pyproject.toml -o requirements.lock
	$(UV_LOCK) pyproject.toml --extra postgres --extra s3 --extra oidc -o deploy/requirements.lock
	$(UV_LOCK) pyproject.toml --group dev -o requirements-dev.lock
	echo uv | $(UV_LOCK) - -o requirements-uv.lock

clean:
	rm -rf .venv demo-workspace
