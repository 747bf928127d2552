# make demo · make test · make install: everything happens in .venv, from requirements.lock, with hashes.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install dev demo test soak guards check lock clean

install: .venv/installed

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: requirements.lock pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

dev: .venv/dev

.venv/dev: requirements-dev.lock pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@ .venv/installed

demo: install
	$(BIN)/assay add samples/corpus --workspace demo-workspace
	@echo
	$(BIN)/assay ask "What model is the sensor that raised the first alarm in the Pellam incident?" --workspace demo-workspace || [ $$? -eq 3 ]
	@echo
	@echo "The same in the browser: $(BIN)/assay serve --workspace demo-workspace --open"

check: dev
	$(BIN)/ruff check src tests bench samples examples
	$(BIN)/ruff format --check src tests bench samples examples
	$(BIN)/basedpyright --level error

test: dev check
	$(BIN)/pytest -n 2 --dist loadfile

soak: dev  # the long form of whatever has one, or of ONLY=tests/…
	ASSAY_SOAK=1 $(BIN)/pytest -o timeout=3600 $(or $(ONLY),$$(grep -rl --include='test_*.py' ASSAY_SOAK tests))

guards: dev
	$(BIN)/python tests/hostile/guards.py

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml --group dev -o requirements-dev.lock

clean:
	rm -rf .venv demo-workspace
