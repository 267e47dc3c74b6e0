# oneway: `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

GO        ?= go
BUILD     := build
GOLANGCI  := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOFUMPT   := mvdan.cc/gofumpt@v0.12.0
BENCHSTAT := golang.org/x/perf/cmd/benchstat@latest
VERSION   := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION  := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# The date of the commit, not of the build: the same source gives the same binary.
DATE      := $(shell git show -s --format=%cI HEAD 2>/dev/null || echo unknown)
V         := github.com/prometheus/common/version
LDFLAGS   := -s -w -X $(V).Version=$(VERSION) -X $(V).Revision=$(REVISION) -X $(V).BuildDate=$(DATE)
FUZZTIME  ?= 20s
DURATION  ?= 10m
RUNS      ?= 3
export CGO_ENABLED ?= 0

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: program
program: ## build/oneway and its man page alone
	@mkdir -p $(BUILD)
	$(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o $(BUILD)/ ./exporter/cmd/oneway
	@# The program writes its man page; one for another machine does not run here.
	if [ "$$($(GO) env GOHOSTOS GOHOSTARCH)" = "$$($(GO) env GOOS GOARCH)" ]; then COLUMNS= $(BUILD)/oneway man; \
		else env -u GOOS -u GOARCH -u GOARM -u COLUMNS $(GO) run -ldflags '$(LDFLAGS)' ./exporter/cmd/oneway man; fi > $(BUILD)/oneway.1

.PHONY: slim
slim: ## build/oneway for routers, without what exporter/doc/openwrt.md lists (OVERLAY=file: replaced sources)
	@mkdir -p $(BUILD)
	$(GO) build -trimpath -buildvcs=false -tags slim,nethttpomithttp2 $(if $(OVERLAY),-overlay '$(OVERLAY)') -gcflags=all=-l -ldflags '$(LDFLAGS)' -o $(BUILD)/ ./exporter/cmd/oneway

.PHONY: build
build: program ## build/oneway, its man page and completion files, and the lab's tools
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BUILD)/ ./tests/lab/cmd/... ./tests/pulse/cmd/... && $(GO) build -trimpath -o $(BUILD)/oneway-demo ./tests/demo
	@mkdir -p $(BUILD)/completion
	cp deploy/completion/oneway.bash deploy/completion/_oneway deploy/completion/oneway.fish $(BUILD)/completion/

.PHONY: packages
packages: ## build/packages: deb and rpm for amd64, arm64 and armv7
	GO='$(GO)' deploy/packages/build.sh $(BUILD)/packages

.PHONY: openwrt
openwrt: ## build/openwrt: packages for OpenWrt, of five architectures
	GO='$(GO)' deploy/openwrt/build.sh $(BUILD)/openwrt

.PHONY: images
images: ## build/images: container images for amd64, arm64 and armv7, as an OCI layout and for docker load
	GO='$(GO)' deploy/images/build.sh $(BUILD)/images

.PHONY: chart
chart: ## build/chart: the Helm chart for Kubernetes
	GO='$(GO)' deploy/kubernetes/build.sh $(BUILD)/chart

.PHONY: release
release: ## build/release: packages, images, the chart, changes, SHA256SUMS, signed with MINISIGN_KEY (a file)
	GO='$(GO)' deploy/release/build.sh $(BUILD)/release

.PHONY: packages-test
packages-test: ## installs packages and starts images in bare Debian 12; root (GUESTS=1: Debian 12 and 13 with systemd, upgrades from d6cfb92b)
	@tests/deps.sh packages
	GO='$(GO)' GUESTS='$(GUESTS)' tests/packages/run.sh

.PHONY: deploy-test
deploy-test: ## all of deploy/: packages in guests with systemd, two versions against each other, Ansible, Compose, OpenWrt, Kubernetes; an hour; its last results are deploy/RESULT.md, deploy/kubernetes/RESULT.md and tests/openwrt/log.txt
	@tests/deps.sh packages && tests/deps.sh deploy
	GO='$(GO)' GUESTS=1 tests/packages/run.sh
	@tests/compose/run.sh test
	@# Last, as it writes its result to a file that the packages have.
	@$(MAKE) --no-print-directory openwrt-test chart-test cluster-test

.PHONY: chart-test
chart-test: ## the Helm chart with Helm, which it builds first; after a change of the chart, or of what is in it, its record keeps the build out of make packages-test; root
	ONEWAY_HELM=1 $(GO) test -C deploy/kubernetes -count=1 -timeout 30m -skip '^TestClusterTakesTheChart$$' .

.PHONY: cluster-test
cluster-test: ## the Helm chart in a control plane of Kubernetes: etcd, API server, controllers, scheduler, simulated nodes; half an hour of building at first
	GO='$(GO)' deploy/kubernetes/servers/build.sh $(BUILD)/cluster
	ONEWAY_CLUSTER='$(CURDIR)/$(BUILD)/cluster' $(GO) test -C deploy/kubernetes -count=1 -v -timeout 30m -run '^TestClusterTakesTheChart$$' .

.PHONY: openwrt-test
openwrt-test: ## makes two of the packages for OpenWrt twice and runs them in busybox and qemu: tests/openwrt/log.txt has the result; root
	@tests/deps.sh openwrt
	GO='$(GO)' tests/openwrt/run.sh

.PHONY: telegraf
telegraf: ## build/oneway-telegraf and build/oneway-clock-telegraf: Telegraf's external plugins
	@mkdir -p $(BUILD)
	$(GO) build -C telegraf-plugins -trimpath -ldflags '$(LDFLAGS)' -o ../$(BUILD)/ ./cmd/...

.PHONY: deps
deps: ## install the Debian packages that tests and demo need; prints each with its reason
	@tests/deps.sh test

.PHONY: test
test: deps ## every test: unit, system, rules, dashboards; fails on an unexpected skip
	tests/run.sh

.PHONY: precision
precision: deps ## the tests that measure time, on an idle machine: asserts what other runs only log
	ONEWAY_PRECISION=1 $(GO) test -p 1 -count=1 -timeout 30m ./tests/lab ./tests/accuracy ./tests/grid ./tests/loadtest ./tests/faults ./tests/chronyconfig ./exporter/load/loadserver ./exporter/probes/train

.PHONY: busy
busy: deps ## the tests that measure time, RUNS (3) times beside three processes that spin, stopped for 200 ms now and then: tests/busy/log.txt has the result; root
	tests/busy/run.sh $(RUNS)

.PHONY: soak
soak: deps ## for a fifth of DURATION (10m) tests with random seeds, then for DURATION 1,000 paths and load tests between two agents under random faults: conservation, coverage, growth (ONEWAY_SEED=number repeats a run)
	tests/seeds.sh '$(DURATION)' 5
	ONEWAY_SOAK='$(DURATION)' ONEWAY_SEED="$${ONEWAY_SEED:-random}" $(GO) test -count=1 -v -timeout 0 ./tests/soak

.PHONY: seeds
seeds: ## tests with random numbers, with random seeds, for DURATION (10m); prints each seed
	tests/seeds.sh '$(DURATION)'

.PHONY: links
links: ## load tests of simulated links of every kind: a table of the truth and the results (ONEWAY_TRACES=DIR adds recorded ones in mahimahi's format)
	$(GO) test -count=1 -v -run 'TestLoadTestsFind' ./tests/links

.PHONY: simulate-history
simulate-history: ## coverage and false verdicts of `oneway trends` and `oneway compare` over 1,000 made histories, two seeds: writes exporter/estimate/history/testdata/simulation.txt
	rm -f exporter/estimate/history/testdata/simulation.txt
	for seed in 1 2; do ONEWAY_SEED=$$seed $(GO) test -count=1 -timeout 2h ./exporter/estimate/history -args -histories=1000 -results=testdata/simulation.txt || exit; done

.PHONY: demo
demo: ## emulated WiBro link, two agents, Prometheus, a table, kept in build/demo (PROFILE=file, DEMO_EXIT=1)
	@tests/deps.sh demo
	@$(MAKE) --no-print-directory build
	@$(BUILD)/oneway-demo $(if $(PROFILE),--profile='$(PROFILE)') $(if $(filter 1,$(DEMO_EXIT)),--exit)

.PHONY: history
history: ## build/history: 400 days of a mesh of 20 paths as blocks of Prometheus, for dashboards (go run -C tests/history . --help)
	$(GO) run -C tests/history . --out='$(CURDIR)/$(BUILD)/history'

.PHONY: history-months
history-months: ## 20 months of paths in dashboard, report and InfluxQL side by side, from a made year in a real Prometheus and a real InfluxDB (half an hour)
	tests/influx/influxdb1.sh
	tests/rules/prometheus3.sh 3.16.0
	$(GO) test -C tests/history -count=1 -timeout 2h -v -run TestMonthsAgree . -args -months.days=400 -months.paths=20 -months.prometheus="$(CURDIR)/$(BUILD)/prometheus-3.16.0/prometheus"

.PHONY: lab
lab: build ## the emulated link alone, until interrupted (PROFILE=file)
	@$(BUILD)/oneway-lab $(if $(PROFILE),'$(PROFILE)',tests/lab/profiles/wibro.yaml)

.PHONY: lint
lint: ## golangci-lint, gofumpt, go mod tidy, shell syntax
	$(GO) run $(GOLANGCI) run ./...
	for module in grafana-dashboards tests/stack telegraf-plugins deploy/images deploy/sbom deploy/kubernetes deploy/victoriametrics tests/compose tests/history; do (cd $$module && $(GO) run $(GOLANGCI) run ./...) || exit; done
	@test -z "$$($(GO) run $(GOFUMPT) -l exporter tests grafana-dashboards telegraf-plugins deploy | tee /dev/stderr)"
	$(GO) mod tidy -diff
	$(GO) build -tags slim,nethttpomithttp2 -o /dev/null ./exporter/cmd/oneway
	bash -n tests/*.sh tests/*/*.sh telegraf-plugins/*.sh deploy/*/*.sh deploy/*/*/*.sh .ci/run

.PHONY: fmt
fmt: ## gofumpt in place
	$(GO) run $(GOFUMPT) -w exporter tests grafana-dashboards telegraf-plugins deploy

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (20s)
	tests/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## benchmarks of the hot paths, with allocations
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 1s -timeout 20m ./exporter/...

.PHONY: bench-peers
bench-peers: build ## the same work by oneway and other programs in one run, as ratios
	@tests/deps.sh bench
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 30m ./tests/bench/...

.PHONY: bench-server
bench-server: build ## what a Prometheus takes that scrapes many paths and evaluates all rules: half an hour
	@tests/deps.sh bench
	ONEWAY_BENCH_SERVER=7m $(GO) test -run '^$$' -bench '^BenchmarkServer$$' -benchtime 1x -timeout 60m ./tests/bench/

.PHONY: interop
interop: build ## foreign implementations: tshark's dissector, stamp-suite
	@tests/deps.sh interop
	ONEWAY_INTEROP=1 $(GO) test -count=1 -v -timeout 30m ./tests/interop/...

# The guests use this host's files, so their programs are linked statically.
.PHONY: vmlab-build
vmlab-build:
	@tests/deps.sh vmlab
	@mkdir -p $(BUILD)/vmlab
	CGO_ENABLED=0 $(GO) build -o $(BUILD)/vmlab/ ./tests/vmlab/cmd/...
	$(CC) -O2 -Wall -Wextra -shared -fPIC -o $(BUILD)/vmlab/wake.so tests/vmlab/uml/wake.c
	CGO_ENABLED=0 $(GO) test -c -o $(BUILD)/vmlab/clock.test ./exporter/clock
	CGO_ENABLED=0 $(GO) test -c -o $(BUILD)/vmlab/chrony.test ./exporter/clocks/chrony

.PHONY: vmlab
vmlab: vmlab-build ## two guest kernels, disciplined by chronyd and gpsd: checks that the truth is within the bounds (SCENARIO=part of a name, PRECISION=print)
	ONEWAY_VMLAB=1 $(GO) test -count=1 ./tests/vmlab/...
	$(BUILD)/vmlab/vmlab $(if $(PRECISION),-precision='$(PRECISION)') $(if $(SCENARIO),-only='$(SCENARIO)')

.PHONY: paper-tcp
paper-tcp: vmlab-build ## TCP variants by buffer between two guest kernels, beside the tables of Halepovic 2008, 13 minutes (CELL=60s: as long as the paper's; SMOKE=1: one cell of each, one minute; PRECISION=print)
	CGO_ENABLED=0 $(GO) build -o $(BUILD)/vmlab/ ./exporter/cmd/oneway ./tests/papertcp
	$(BUILD)/vmlab/papertcp $(if $(CELL),-cell='$(CELL)') $(if $(filter 1,$(SMOKE)),-smoke) $(if $(PRECISION),-precision='$(PRECISION)')

.PHONY: vmlab-pps
vmlab-pps: vmlab-build ## the same with a real kernel PPS: builds and keeps a guest kernel first, some minutes
	@tests/deps.sh vmlab-pps
	CGO_ENABLED=0 $(GO) test -c -o $(BUILD)/vmlab/pps.test ./exporter/watchers/pps
	kernel=$$(tests/vmlab/kernel/build.sh $(BUILD)/vmlab-kernel) && $(BUILD)/vmlab/vmlab $(if $(PRECISION),-precision='$(PRECISION)') -kernel "$$kernel" -pulse chrony-config/gpio-pps/chrony.conf

.PHONY: stack
stack: ## deploy/compose with images that are built here; tests/compose/run.sh down ends it (GRAFANA_IMAGE=image)
	@tests/compose/run.sh up

.PHONY: compose-test
compose-test: ## the same, what must hold of it, and its removal; about ten minutes if nothing is built
	@tests/compose/run.sh test

.PHONY: stack-test
stack-test: ## the whole stack with real servers in containers, tests/stack/README.md; root, or a Docker engine (SMOKE=1: a few minutes, without Prometheus 3; KEEP=1: keeps the containers)
	@SMOKE='$(SMOKE)' KEEP='$(KEEP)' tests/stack/run.sh

.PHONY: generate
generate: ## deploy/oneway.yml, METRICS.md, MEASUREMENTS.md, the JSON Schemas, the rules, tests/words/accent.txt, the dashboards' JSON, the rules and dashboards for VictoriaMetrics, the values of the Helm chart, and the lists in the READMEs of the Telegraf plugins
	$(GO) generate ./...
	cd grafana-dashboards && $(GO) generate ./...
	cd deploy/victoriametrics && $(GO) generate ./...
	cd telegraf-plugins && $(GO) generate ./...
	cd deploy/kubernetes && $(GO) generate ./...

.PHONY: check-generated
check-generated: generate ## fails if a generated file is not current
	git diff --exit-code

.PHONY: fresh
fresh: ## demo, and .ci/run with its tests, on a bare Debian, from a clean clone of HEAD; root (FRESH_STEPS='demo test ci')
	@FRESH_STEPS='$(FRESH_STEPS)' tests/fresh.sh

.PHONY: clean
clean: ## remove build/
	rm -rf $(BUILD)
