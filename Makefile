# Every job of this repository has a target here; CI calls these and nothing else.
SHELL        := bash
.SHELLFLAGS  := -euo pipefail -c
.DEFAULT_GOAL := help

GO           ?= go
STATICCHECK  := honnef.co/go/tools/cmd/staticcheck@v0.8.2
AGENT        := bin/statesman-agent
PLUGINS      := $(notdir $(wildcard plugins/*))
WASM         := $(PLUGINS:%=build/plugins/%.wasm)
TARGETS      := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
VERSION      := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# Go knows better than make what is up to date, so it is always asked.
.PHONY: help build plugins demo test check bench bench-peers torture mutants fuzz cross clean FORCE

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

build: $(AGENT) ## build the agent into bin/

$(AGENT): FORCE
	$(GO) build -trimpath -ldflags='-s -w -X main.version=$(VERSION)' -o $@ ./cmd/statesman-agent

plugins: $(WASM) ## build the shipped plugins into build/plugins/

build/plugins/%.wasm: FORCE
	GOOS=wasip1 GOARCH=wasm $(GO) build -buildmode=c-shared -trimpath -ldflags='-s -w -buildid=' -o $@ ./plugins/$*

demo: build plugins ## kill the agent while it writes, and count what was lost (needs no server)
	$(AGENT) demo --plugins build/plugins

test: ## run every test with the race detector; installs redis-server and gcc when they are missing
	scripts/ensure-tools
	$(GO) test -race ./...

check: ## gofmt, vet, staticcheck, tidy, cross builds; fails when the tree becomes dirty
	scripts/check '$(STATICCHECK)' '$(TARGETS)'

bench: ## appends beside a raw write+fdatasync loop, drain, reopen, memory, plugin overhead
	scripts/bench

mutants: ## plant bugs on purpose, one at a time, and see the tests notice each
	$(GO) run ./internal/mutant/run

bench-peers: ## the same durable work on this store and on others; a quarter of an hour, tables and bench.json
	scripts/bench-peers

torture: ## crash images, errnos, flipped bits, kills and power cuts; prints a table, writes torture.json (TORTURE=nightly: longer)
	scripts/torture torture.json

fuzz: ## every fuzz target for FUZZTIME (10s)
	scripts/fuzz '$(or $(FUZZTIME),10s)'

cross: ## compile for every supported system
	for t in $(TARGETS); do echo "$$t"; CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -o /dev/null ./cmd/statesman-agent; done

clean: ## remove what the other targets built
	rm -rf bin build
