# 'make help' lists what a person needs. Everything is Go: recipes only name
# the program to run, and the programs install or build what they need.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export GOTOOLCHAIN := local
export CGO_ENABLED := 0
# What runs in the cluster is compiled so, too: nothing is compiled twice. For a
# debugger, compile without make: -dwarf=false leaves out what it reads.
FLAGS := -trimpath -gcflags=all=-dwarf=false
# Git refuses to tell Go the commit of a checkout of another user, as in a container.
NO_COMMIT := -buildvcs=false
export GOFLAGS := $(strip $(filter-out $(FLAGS) $(NO_COMMIT),$(GOFLAGS)) $(FLAGS) $(NO_COMMIT))

TOOL := go tool -modfile=tools/tools.mod

# Another version of Kubernetes for local clusters: KUBERNETES=1.30.
ifdef KUBERNETES
export MLBATCH_KUBERNETES := $(KUBERNETES)
endif

# Tests that start clusters have a build tag: 'go test ./...' leaves them out.
CLUSTER := go test -tags=cluster -count=1 -timeout=44m -v

##@ Use

.PHONY: demo
demo: ## Bring up a real cluster with the platform on it and train a model on two pods (12 minutes the first time, then 2)
	@echo "compiling the demo itself (the first time this takes some minutes)"
	@go run ./tools/localcluster/demo -port=$(or $(DEMO_PORT),0)

.PHONY: demo-down
demo-down: bin/localcluster ## End the demo's cluster and leave nothing of it
	bin/localcluster down

.PHONY: build
build: bin/mlbatch bin/localcluster ## Build the commands mlbatch and localcluster into bin/

.PHONY: bin/mlbatch
bin/mlbatch:
	@go build -o $@ ./tools/mlbatch

.PHONY: bin/localcluster
bin/localcluster:
	@go build -o $@ ./tools/localcluster/cmd

##@ Test

.PHONY: test
test: ## The essential lanes; with CI=true heavy lanes, too, as long as time lasts (root)
	@go run ./test/lanes

.PHONY: test-full
test-full: ## All lanes; those that pass are recorded in docs/evidence/lanes.log (root; an hour when warm)
	@go run ./test/lanes -full

.PHONY: flakes
flakes: ## Repeat LANE (or a command) N times (20), with LOAD=1 beside busy processes; each run goes to docs/evidence/flakes.log
	@go run ./test/lanes -repeat=$(or $(N),20) $(if $(LOAD),-load) "$(LANE)"

# What has goroutines is tested with the race detector, the rest without it. The crash test
# has a goroutine for each story: its calm lives say as much about races as all, and the
# others run without it. So does what measures memory.
RACED := $(addprefix ./controller/internal/,activity admission appwrapper broker capacityprovider fetch jsonwatch othercontroller metricsaccess run servingcert slackqueue taskstore watchable worker workload) ./controller/runs ./test/fakeapiserver ./test/patience ./test/quotawatch ./test/same/kubelet ./test/sandbox ./test/workload \
	$(addprefix ./tools/,artifacts/components artifacts/filecache artifacts/filelock artifacts/images/archive artifacts/subprocess localcluster localcluster/keeper localcluster/processnode mlbatch mlbatch/clusterstate mlbatch/podcopy mlbatch/podlogs mlbatch/runs mlbatch/web mlbatch/why)

# Lint is a lane of its own, and vets more than 'go test' would, tests included.
UNVETTED := go test -vet=off

# The other modules read files outside them, of which Go's cache does not notice changes.
.PHONY: unit
unit: ## Tests that need no cluster, each once (needs python3, which root is given; 7 minutes when warm)
	@command -v python3 >/dev/null || { [ $$(id -u) = 0 ] && apt-get -qq update && apt-get -qq install -y --no-install-recommends python3; } || \
		{ echo "a sample is in Python: install Debian's package python3" >&2; exit 1; }
	$(UNVETTED) -timeout=20m $$(go list ./... | grep -v -x -F $(RACED:./%=-e github.com/mlbatch/mlbatch/%))
	$(UNVETTED) -run '^TestCrash$$|^TestTheBudgetOfMemory$$' ./controller/internal/appwrapper ./controller/internal/run
	go -C tools/artifacts/components/kueue test -count=1 ./...
	go -C tools/artifacts/components/ray test ./...
	go -C tools/artifacts/components/kube-state-metrics test -count=1 ./...
	go -C tools/artifacts/components/prometheus test -count=1 ./...
	go -C tools/artifacts/site test -count=1 ./...
	go -C test/bench/plot test ./...
	@$(MAKE) --no-print-directory race

.PHONY: race
race: export CGO_ENABLED := 1
race: ## The part of unit that has goroutines, with the race detector (needs gcc, which root is given; 2 minutes when warm)
	@command -v gcc >/dev/null || { [ $$(id -u) = 0 ] && apt-get -qq update && apt-get -qq install -y --no-install-recommends gcc libc6-dev; } || \
		{ echo "the race detector needs a C compiler: install gcc and libc6-dev" >&2; exit 1; }
	$(UNVETTED) -race -skip '^TestCrash$$/./.|^TestTheBudgetOfMemory$$' $(RACED)

# A number of inputs: at the end of a time, Go sometimes fails with "context deadline exceeded".
FUZZTIME := 10000x

# Every fuzz target there is; what one finds it leaves in testdata/fuzz, to be committed.
.PHONY: fuzz
fuzz: ## Let each fuzz target try FUZZTIME inputs (10000x; a minute when warm)
	@grep -rE --include=*_test.go -o '^func Fuzz[A-Za-z]+' controller | while IFS=: read -r file func; do \
		go test -run='^$$' -fuzz="^$${func#func }$$" -fuzztime=$(FUZZTIME) "./$$(dirname "$$file")" </dev/null || exit 1; done

.PHONY: robust
robust: ## Kill, fill and change real local clusters, and see that they recover (root; 8 minutes when warm)
	$(CLUSTER) ./test/localcluster

.PHONY: mutants
mutants: ## Bring known defects back, one at a time, and see that a test notices each (4 minutes when warm)
	go run ./test/mutants

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: platforms
platforms: ## Build the command mlbatch for each operating system and processor that users have
	@out=$$(mktemp -d); trap 'rm -rf "$$out"' EXIT; for platform in $(PLATFORMS); do \
		os=$${platform%/*} arch=$${platform#*/} suffix=; [ $$os != windows ] || suffix=.exe; \
		echo "building mlbatch for $$platform"; \
		GOOS=$$os GOARCH=$$arch go build -o "$$out/mlbatch-$$os-$$arch$$suffix" ./tools/mlbatch; done

# What long tests write: it makes no checkout dirty.
WRITTEN := ':!docs/evidence' ':!docs/images/bench-*'
COMMIT := $$(git describe --always)$$(git diff --quiet HEAD -- $(WRITTEN) || echo -dirty)

# $(call evidence,name,seed,command) runs a long test and keeps what it came to in a
# file that is committed, with what is needed to run it again.
define evidence
	@mkdir -p docs/evidence; { \
		echo "date     $$(date -u +%Y-%m-%dT%H:%MZ)"; \
		echo "commit   $(COMMIT)"; \
		echo "machine  $$(nproc) CPUs, $$(go version)"; \
		echo "seed     $(2)"; \
		$(3); \
	} 2>&1 | sed -e '/^ *=== /d' -e '/Updated featureGates=/d' -e '/^ *--- PASS: .*\//d' -e 's/^    [a-z_]*_test.go:[0-9]*: //' | tee docs/evidence/$(1).log
endef

comma := ,
SIMULATED := $(CLUSTER) ./test/simulated -run '^TestEveryUserHasAClusterWithThePlatform$$/^root$$'
LONG_SEED := $(shell date +%s)

.PHONY: test-long
test-long: ## 10,000 random lives of each sort, the crash tests with every answer, 1,000 AppWrappers that cause no request, what the controller takes, 1,000 Runs at once, upstream's controller and ours in turn, nodes that fail (root); results go to docs/evidence (half a day)
	$(call evidence,walks,$(LONG_SEED),go test -count=1 -timeout=60m -v -run '^TestPromises' ./controller/internal/lifecycle -rapid.checks=10000 -rapid.seed=$(LONG_SEED))
	$(call evidence,run-walks,$(LONG_SEED),go test -count=1 -timeout=60m -v -run '^TestPromises' ./controller/internal/runlife -rapid.checks=10000 -rapid.seed=$(LONG_SEED))
	$(call evidence,queue-simulator,$(LONG_SEED),go test -count=1 -timeout=60m -v -run '^TestWalks$$' ./controller/internal/broker -queue.walks=10000 -queue.seed=$(LONG_SEED))
	$(call evidence,queue,none,go test -count=1 -timeout=60m -v -run '^TestMeasure$$' ./controller/internal/broker -queue.tasks=100000)
	$(call evidence,crashes,1,go test -count=1 -timeout=60m -v -run '^TestCrash$$' ./controller/internal/appwrapper -crash.every-answer -crash.seeds=200)
	$(call evidence,run-crashes,1,go test -count=1 -timeout=60m -v -run '^TestCrash$$' ./controller/internal/run -crash.every-answer -crash.seeds=200)
	$(call evidence,cost,none,go test -count=1 -timeout=30m -v -run '^TestALifeCostsTheSameAmongMany$$' ./controller/internal/appwrapper -among=10000)
	$(call evidence,chaos,$(LONG_SEED),$(CLUSTER) -timeout=60m ./test/chaos -chaos.rounds=20 -chaos.seed=$(LONG_SEED))
	$(call evidence,quiet,none,$(SIMULATED) -timeout=60m -quiet.appwrappers=1000 -quiet.for=10m)
	$(call evidence,scale,none,$(SIMULATED) -timeout=60m -nodes=60 -measure.running=1000$(comma)5000)
	$(call evidence,runs,none,$(CLUSTER) -timeout=60m ./test/simulated -run '^TestManyRunsAtOnce$$' -nodes=20 -runs=1000)
	$(call evidence,preemption,$(LONG_SEED),go -C tools/artifacts/components/kueue test -count=1 -timeout=60m -v ./preemption -run TestPreemptionEnds -preemption.rounds=2000 -preemption.first=$(LONG_SEED))
	$(call evidence,preemption-pause,0,go -C tools/artifacts/components/kueue test -count=1 -timeout=60m -v ./preemption -run TestMeasurePause -preemption.measure=500)
	@$(MAKE) --no-print-directory bench bench-compare bench-kueue bench-reaction bench-faults bench-slack
	$(call evidence,siege,1 to 5,for seed in 1 2 3 4 5; do $(CLUSTER) -timeout=90m ./test/siege -siege.seed=$$seed -siege.calls=20000 -siege.for=70m -siege.without= || exit 1; done)
	$(call evidence,siege-undefended,1,$(CLUSTER) -timeout=90m ./test/siege -siege.calls=0 -siege.for=70m -siege.most=20000 -siege.without=all)
	$(call evidence,siege-others,1,for actor in edit admin pod; do $(CLUSTER) -timeout=90m ./test/siege -siege.actor=$$actor -siege.calls=5000 -siege.for=30m -siege.without= || exit 1; done)
	$(call evidence,turns,none,$(CLUSTER) -timeout=90m ./test/turns)
	$(call evidence,takeover,none,$(CLUSTER) -timeout=60m ./test/takeover)
	@$(MAKE) --no-print-directory mutation

MUTATED := $(addprefix ./controller/internal/,nodehealth spelling podtemplate kinds lifecycle runlife) ./controller/runplan

# Walks go the same way for every mutant, and are not made short.
.PHONY: mutation
mutation: export CI := true
mutation: export RAPID_SHRINKTIME := 0s
mutation: export RAPID_NOFAILFILE := true
mutation: ## Change each operator of the pure packages and see which changes no test notices (part of test-long)
	$(call evidence,mutation,1,for package in $(MUTATED); do echo "== $$package"; \
		go tool -modfile=tools/mutation.mod gremlins unleash --workers 2 --test-cpu 1 --timeout-coefficient 20 --output-statuses lctv "$$package" || exit 1; done)

# SCENES=FOLDER makes scenes, e2e and long-stories record the scenes of mlbatch why, see docs/testing.md.
RECORD := $(if $(SCENES),-scenes.folder=$(abspath $(SCENES)))

E2E := E2E_PORT=$(E2E_PORT) E2E_KUBECONFIG=$(abspath $(E2E_KUBECONFIG)) $(CLUSTER) ./test/e2e
# Each takes a minute or more.
LONG_STORIES := TestEverySampleRuns|TestTheSamplesAndTheManifestsOf2023Run|TestAnOpenQueueInABucketSurvivesItsPods|TestAWorkQueueSurvivesItsPods|TestRunsOfOneTeamDoNotDisturbAnothers|TestARayRunThatHasSucceededNeverRunsAgain|TestExamplesOfSettingsFilesSucceed|TestWhyNamesWhatIsWrong|TestAJobLeavesADeadNode|TestWorkThatIsPreemptedAgainAndAgainPauses

.PHONY: e2e
e2e: ## End-to-end tests with the real components, on a local cluster or on yours (E2E_KUBECONFIG=FILE, see docs/testing.md)
	$(E2E) -skip '^(TestUndefendedAttacksSucceed|$(LONG_STORIES))$$' $(RECORD)

.PHONY: long-stories
long-stories: ## All samples, and other end-to-end tests that take long, like e2e (root; 16 minutes when warm)
	$(E2E) -run '^($(LONG_STORIES))$$' $(RECORD)

.PHONY: undefended
undefended: ## Each attack on the platform succeeds without its defence, on a local cluster (root; 8 minutes when warm)
	$(E2E) -run '^TestUndefendedAttacksSucceed$$' -parallel=6

.PHONY: simulated
simulated: ## The platform on a simulated cluster of root, and a minute in which nothing may be asked (root; 5 minutes when warm)
	$(SIMULATED)

.PHONY: simulated-users
simulated-users: ## The platform on simulated clusters of other users (root; 2 minutes when warm)
	$(subst -run,-skip,$(SIMULATED))

.PHONY: chaos
chaos: ## The real controller while the API server fails, others write, and kinds and namespaces go (root; 2 minutes when warm)
	$(CLUSTER) ./test/chaos

# What is measured is kept in docs/evidence, with benchmarks.md, which is made from that.
BENCH := $(CLUSTER) ./test/bench/cluster -bench.commit=$(COMMIT) -bench.report=$(CURDIR)/docs/evidence/bench.json

.PHONY: bench
bench: ## Measure all scenarios RUNS times (3) on a simulated cluster, and write docs/evidence/benchmarks.md (root; an hour)
	$(call evidence,bench,none,$(BENCH) -run '^TestBench$$' -timeout=120m -bench.runs=$(or $(RUNS),3))
	$(call evidence,bench-writes,none,$(BENCH) -run '^TestWaysToWriteAStatus$$')
	go run ./test/bench/report

.PHONY: bench-compare
bench-compare: ## Measure AppWrapper 1.2.2 and this controller in turn, RUNS times (3), and write docs/evidence/benchmarks.md (root; half an hour)
	$(call evidence,bench-compare,none,$(BENCH) -run '^TestComparison$$' -timeout=120m -bench.pairs=$(or $(RUNS),3) -bench.comparison=$(CURDIR)/docs/evidence/bench-compare.json)
	go run ./test/bench/report

.PHONY: bench-kueue
bench-kueue: ## Let Kueue's own runner measure its scheduler without our controllers and with them, RUNS times (3), and write docs/evidence/benchmarks.md (root; a quarter of an hour)
	$(call evidence,bench-kueue,none,$(BENCH) -run '^TestKueuesOwnRunner$$' -bench.turns=$(or $(RUNS),3) -bench.workloads=$(CURDIR)/docs/evidence/bench-kueue.json)
	go run ./test/bench/report

.PHONY: bench-reaction
bench-reaction: ## Let 1, 10 and 100 (STRUCK) of NODES (1000) fail under PODS (10000), and write docs/evidence/benchmarks.md (root; four hours; LONGEST=20m: two)
	$(call evidence,bench-reaction,none,$(BENCH) -run '^TestReaction$$' -timeout=600m -bench.longest=$(or $(LONGEST),1h) \
		-bench.nodes=$(or $(NODES),1000) -bench.pods=$(or $(PODS),10000) -bench.struck=$(or $(STRUCK),1$(comma)10$(comma)100))
	go run ./test/bench/report

.PHONY: bench-faults
bench-faults: ## Inject each fault ROUNDS times (5) after an hour (ALONE) of healthy work, also under JobSet and Kueue, and write docs/evidence/benchmarks.md (root; two hours)
	$(call evidence,faults,none,$(CLUSTER) -timeout=180m ./test/faults -faults.alone=$(or $(ALONE),1h) -faults.rounds=$(or $(ROUNDS),5) -faults.rivals \
		-faults.commit=$(COMMIT) -faults.report=$(CURDIR)/docs/evidence/faults.json)
	go run ./test/bench/report

.PHONY: bench-slack
bench-slack: ## How soon the slack queue follows a node, of 40 changes on a simulated cluster of 100 nodes (root; 3 minutes when warm)
	$(call evidence,slack,none,$(CLUSTER) ./test/faults -run '^TestASlackQueue')

.PHONY: bench-check
bench-check: ## Compare requests and rates with test/bench/budgets.yaml, on a simulated cluster (root; 5 minutes when warm)
	$(CLUSTER) ./test/bench/cluster -run '^TestBench$$'

.PHONY: faults
faults: ## Faults of nodes and programs on a simulated cluster, beside healthy work (root; 15 minutes when warm)
	$(CLUSTER) ./test/faults

.PHONY: realfaults
realfaults: ## The same where pods are real: programs that end, hang or fill their disk, and a kubelet's node that breaks (root; 5 minutes when warm)
	$(CLUSTER) ./test/realfaults

.PHONY: racks
racks: ## Gangs that stay within a rack, on a simulated cluster (root; 2 minutes when warm)
	$(CLUSTER) ./test/racks

.PHONY: scenes
scenes: ## What can be wrong with work, made on a simulated cluster, and that mlbatch why names it (root; 4 minutes when warm)
	$(CLUSTER) ./test/scenes -parallel=100 $(RECORD)

.PHONY: counted
counted: ## Random specs of every kind, and that the real operators make no more pods than Kueue counts (root; 10 minutes when warm)
	$(CLUSTER) ./test/counted

.PHONY: same
same: ## Objects bare and wrapped under the real operators: the same happens. SHARD=quick, known, restarts, all, or i/n (root; 7 minutes when warm)
	$(CLUSTER) ./test/same -same.shard=$(or $(SHARD),quick) -same.retries=$(or $(RETRIES),false)

.PHONY: same-all
same-all: ## All of them; the table goes to docs/evidence (root; an hour)
	$(call evidence,same,1,$(CLUSTER) -timeout=120m ./test/same -same.shard=all)
	$(CLUSTER) ./test/same -same.shard=restarts

.PHONY: siege
siege: ## Random requests with a member's rights: nothing runs without quota. Without a policy, something does. SEED=, CALLS=, ACTOR=, WITHOUT= (root; 8 minutes when warm)
	$(CLUSTER) ./test/siege $(if $(SEED),-siege.seed=$(SEED)) $(if $(ACTOR),-siege.actor=$(ACTOR) -siege.without=) $(if $(CALLS),-siege.calls=$(CALLS) -siege.for=1h) $(if $(WITHOUT),-siege.without=$(WITHOUT))

.PHONY: helm
helm: ## The charts with Helm 3 and Helm 4 as users have them, which are built first (3 minutes when warm)
	$(CLUSTER) ./test/helm

.PHONY: flux
flux: ## Flux's controllers install, correct, change and remove the platform from samples/gitops, on a simulated cluster (root; 5 minutes when warm)
	$(CLUSTER) ./test/flux

.PHONY: argocd
argocd: ## Argo CD reads our settings for it; its controllers do the same as Flux', and install it again in waves (root, git; 5 minutes when warm)
	go -C tools/artifacts/components/argocd test -count=1 ./...
	$(CLUSTER) ./test/argocd

.PHONY: installs
installs: ## mlbatch install, killed after each step, upgrade and uninstall, on a simulated cluster (root; 4 minutes when warm)
	$(CLUSTER) ./test/installer

.PHONY: airgap
airgap: ## The platform on a real cluster that reaches one registry, filled by mlbatch images --mirror (root; 2 minutes when warm)
	$(CLUSTER) ./test/airgap

.PHONY: nodes
nodes: ## Each of three nodes of the platform is killed in turn, in production on a simulated cluster (root; 6 minutes when warm)
	$(CLUSTER) ./test/nodes

.PHONY: kustomize
kustomize: ## The page about the older kustomize set-up, followed on a simulated cluster with Kueue 0.10 while work runs (root; 2 minutes when warm)
	$(CLUSTER) ./test/kustomize

.PHONY: upgrade
upgrade: ## The platform is upgraded, removed and installed again on a real cluster while work runs (root; 5 minutes when warm)
	$(CLUSTER) ./test/upgrade

# Pages that are made from the code for the website, and are not in the repository.
.PHONY: pages
pages:
	rm -rf bin/pages && mkdir -p bin/pages
	PAGES=$(CURDIR)/bin/pages go test -count=1 ./tools/mlbatch -run '^TestTheReference'

.PHONY: site-test
site-test: ## The documentation site and mlbatch web in Chromium: links, search, colours, a phone, the keyboard (needs chromium, which root is given; 3 minutes when warm)
	@command -v chromium >/dev/null || { [ $$(id -u) = 0 ] && apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; } || \
		{ echo "the test needs a browser: install Debian's package chromium" >&2; exit 1; }
	@$(MAKE) --no-print-directory pages
	go -C tools/artifacts/site test -tags=browser -count=1 -timeout=44m -v ./browser

.PHONY: container
container: ## The demo and simulated clusters in containers of plain Debian 13 (needs podman and others, which root is given; 5 minutes when warm)
	@missing=; for program in podman runc slirp4netns mmdebstrap; do command -v $$program >/dev/null || missing="$$missing $$program"; done; \
		[ -z "$$missing" ] || { [ $$(id -u) = 0 ] && apt-get -qq update && apt-get -qq install -y --no-install-recommends $$missing; } || \
		{ echo "the test starts containers: install$$missing" >&2; exit 1; }
	$(CLUSTER) ./test/container

.PHONY: vm
vm: ## The local cluster on stock Debian 12 and 13, with systemd and cgroup v2, in virtual machines (root; an hour without KVM); results go to docs/evidence
	$(call evidence,cgroup2,none,go run ./test/vm)

.PHONY: lint
lint: ## The linter, with the conventions of docs/architecture.md
	$(TOOL) golangci-lint run --allow-parallel-runners ./...
	go -C tools/artifacts/site tool -modfile=$(CURDIR)/tools/tools.mod golangci-lint run --allow-parallel-runners --build-tags=browser ./...
	go -C test/bench/plot tool -modfile=$(CURDIR)/tools/tools.mod golangci-lint run --allow-parallel-runners ./...
	go -C test/oldapiserver tool -modfile=$(CURDIR)/tools/tools.mod golangci-lint run --allow-parallel-runners ./...

##@ Make

.PHONY: charts
charts: ## Package the charts and install.yaml into dist/
	go run ./tools/artifacts/charts -out dist

.PHONY: images
images: ## Write the image archives of our controllers and the agent (amd64, arm64) into dist/
	go run ./tools/artifacts/images controller -out dist
	go run ./tools/artifacts/images agent -out dist

.PHONY: site
site: ## Write the documentation as a website into dist/site/
	@$(MAKE) --no-print-directory pages
	go -C tools/artifacts/site run . -root $(CURDIR) -written $(CURDIR)/bin/pages -out $(CURDIR)/dist/site

.PHONY: release
release: ## Write all that is released into dist/, and push it if there is a REGISTRY=ghcr.io/mlbatch
	go run ./tools/artifacts/release -out dist -registry "$(REGISTRY)" -keyring "$(KEYRING)" -keyring-user "$(KEYRING_USER)" -key "$(KEY)"

# The packages of the controller of Runs, which has a role of its own.
OF_RUNS := /controller/\(internal/run\|runs$$\)

.PHONY: generate
generate: ## Regenerate the CRDs, the roles, the deepcopy functions and docs/api/codeflare.md from the Go types
	$(TOOL) controller-gen object paths=./controller/api/...
	$(TOOL) controller-gen crd paths=./controller/api/v1beta2 output:crd:dir=charts/appwrapper/files/crds
	$(TOOL) controller-gen crd paths=./controller/api/codeflare/... output:crd:dir=controller/runschema/crds
	$(TOOL) controller-gen rbac:roleName=appwrapper-manager-role output:rbac:dir=charts/appwrapper/files \
		paths="$$(go list ./controller/... | grep -v '$(OF_RUNS)' | paste -s -d ';')"
	$(TOOL) controller-gen rbac:roleName=codeflare-manager-role output:rbac:dir=charts/codeflare/files \
		paths="$$(go list ./controller/... | grep '$(OF_RUNS)\|/accessreview$$' | paste -s -d ';')"
	go test ./controller/runschema -run '^TestThePageHasEveryField$$' -update

GENERATED := controller/api controller/runschema/crds charts/appwrapper/files charts/codeflare/files docs/api

# Compares the files before and after generating, committed or not.
.PHONY: verify-generate
verify-generate: ## Fail if generated files are not what 'make generate' makes
	@before=$$(mktemp -d); trap 'rm -rf "$$before"' EXIT; \
	cp -r --parents $(GENERATED) "$$before"; \
	$(MAKE) --no-print-directory generate; \
	$(foreach folder,$(GENERATED),diff -r "$$before/$(folder)" $(folder) &&) true || \
		{ echo "generated files differed from their source and were made anew: commit them" >&2; exit 1; }

.PHONY: clean
clean: ## Remove bin/ and dist/ (the build cache of components stays)
	rm -rf bin dist

.PHONY: help
help:
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
