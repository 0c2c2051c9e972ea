# One verb per target. `make run` and `make test` install what they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Every broker and worker that is started would compile its modules again: a broker is there in 0.14 s with compiled files, 0.24 s without.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test quick check compiled pure bench bench-pipeline pipeline fuzz attack sim schemas oracle chance constraints show docs transcripts verdicts screenshots

# What type checkers and editors know of the messages. setup.py derives it for wheels and sdists.
STUBS := protocol/messages.pyi

run: $(READY) $(STUBS)
	$(BIN)/ottla serve $(ARGS)

test: $(READY) .types/ottla
	$(BIN)/python -m tests.lanes $(VENV)/tests

quick: $(READY) .types/ottla
	$(BIN)/python -m tests.lanes $(VENV)/tests quick

check: $(READY) $(STUBS) .types/ottla
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPYPATH=.types $(BIN)/mypy -p ottla -p ottla.broker -p ottla.classic -p ottla.coordinator -p ottla.pipeline -p ottla.protocol -p ottla.storage -p ottla.verdict
	MYPYPATH=.types $(BIN)/mypy tests
	$(BIN)/python -m tests.support.audit

# The same source with its hot modules compiled in place (compiled.py); `make pure` goes back. It takes two minutes.
compiled: $(READY) $(STUBS) .types/ottla
	OTTLA_COMPILED=1 $(BIN)/python setup.py -q build_ext --inplace

pure:
	rm -f ottla__mypyc.*.so
	find broker coordinator protocol storage -name '*.so' -delete

docs: $(READY)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build
	@echo docs/_build/index.html

bench: $(READY)
	$(BIN)/python -m tests.bench $(ARGS)

bench-pipeline: $(READY)
	$(BIN)/python -m tests.bench.pipeline $(ARGS)

pipeline: $(READY)
	$(BIN)/python -m tests.pipeline.show $(ARGS)

fuzz: $(READY)
	$(BIN)/python -m tests.support.fuzz $(ARGS)

attack: $(READY)
	$(BIN)/python -m tests.attack.harness $(ARGS)

sim: $(READY)
	$(BIN)/python -m tests.sim $(ARGS)

schemas: $(READY)
	$(BIN)/python -m tests.oracle.derive_schemas $(ARGS)
	$(BIN)/python -m tests.oracle.derive_releases $(ARGS)

show: $(READY)
	@$(BIN)/python -m ottla.protocol.show $(SCHEMA) $(VERSION)

screenshots: $(READY)
	$(BIN)/python -m tests.support.ui_screenshots

oracle: $(READY)
	$(BIN)/python -m tests.oracle.kafka $(ARGS)

chance: $(READY)
	$(BIN)/python -m tests.oracle.chance $(ARGS)

transcripts: $(READY)
	OTTLA_ORACLE=record $(BIN)/pytest -q tests/differential $(ARGS)

verdicts: $(READY)
	$(BIN)/python -m tests.clients.verdicts $(ARGS)

constraints:
	$(PYTHON) -m venv $(VENV)/piptools
	$(VENV)/piptools/bin/python -m pip install --quiet --disable-pip-version-check pip-tools
	$(VENV)/piptools/bin/python -m piptools compile --quiet --strip-extras --allow-unsafe --generate-hashes --no-emit-index-url \
		--no-emit-trusted-host --no-emit-find-links --no-header --extra dev --extra docs --extra pipelines --extra spark --extra ui -o constraints.txt pyproject.toml

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --config-settings editable_mode=compat -e .
	touch $(READY)

$(STUBS): protocol/stubs.py protocol/schema.py schemas/index.json $(wildcard schemas/*/*.json) | $(READY)
	$(BIN)/python -m ottla.protocol.stubs

.types/ottla:
	mkdir -p .types && ln -sfn .. .types/ottla
