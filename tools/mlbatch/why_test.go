// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlbatch/mlbatch/test/wording"
)

const (
	wrappers   = "/apis/workload.codeflare.dev/v1beta2/namespaces/blue/appwrappers"
	queues     = "/apis/kueue.x-k8s.io/v1beta2"
	inBlue     = queues + "/namespaces/blue"
	visible    = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/blue/localqueues/default/pendingworkloads"
	runsOfBlue = group + "/namespaces/blue/runs"
	shortage   = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor a, 2 more needed"
)

// wrapped are the AppWrappers train0 … train499 in JSON, which all wait, and workloads theirs.
func wrapped() (items, workloads []string) {
	for i := range 500 {
		items = append(items, fmt.Sprintf(`{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"train%d","namespace":"blue","uid":"uid-%d",
			"labels":{"kueue.x-k8s.io/queue-name":"default"}},"spec":{"suspend":true,"components":[]},"status":{"phase":"Suspended"}}`, i, i))
		workloads = append(workloads, fmt.Sprintf(`{"metadata":{"name":"appwrapper-%d","namespace":"blue","ownerReferences":[{"apiVersion":"workload.codeflare.dev/v1beta2",
			"kind":"AppWrapper","name":"train%d","uid":"uid-%d"}]},"spec":{"queueName":"default"},"status":{"conditions":[
			{"type":"QuotaReserved","status":"False","reason":"Pending","message":%q,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, i, i, i, shortage))
	}
	return items, workloads
}

// bareWorkload is that of a Job, of which nothing else is known.
const bareWorkload = `{"metadata":{"name":"job-bare","namespace":"blue","ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"bare","uid":"uid-bare"}]},
	"spec":{"queueName":"default"},"status":{"conditions":[{"type":"QuotaReserved","status":"True","reason":"QuotaReserved"},{"type":"Admitted","status":"True","reason":"Admitted"}]}}`

// a team's namespace with 500 AppWrappers, by path.
func busyNamespace() map[string]string {
	items, workloads := wrapped()
	quota := `{"metadata":{"name":%q},"spec":{"cohortName":"all","resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"a","resources":[{"name":"cpu","nominalQuota":"4"}]}]}]},
		"status":{"flavorsReservation":[{"name":"a","resources":[{"name":"cpu","total":%q,"borrowed":%q}]}]}}`
	world := map[string]string{
		wrappers:              list("workload.codeflare.dev/v1beta2", "AppWrapper", items...),
		inBlue + "/workloads": list("kueue.x-k8s.io/v1beta2", "Workload", append(workloads, bareWorkload)...),
		inBlue + "/localqueues/default": `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"LocalQueue","metadata":{"name":"default","namespace":"blue"},
			"spec":{"clusterQueue":"blue"}}`,
		queues + "/clusterqueues":        list("kueue.x-k8s.io/v1beta2", "ClusterQueue", fmt.Sprintf(quota, "blue", "2", "0"), fmt.Sprintf(quota, "red", "6", "2")),
		queues + "/cohorts":              list("kueue.x-k8s.io/v1beta2", "Cohort"),
		visible:                          `{"apiVersion":"visibility.kueue.x-k8s.io/v1beta2","kind":"PendingWorkloadsSummary","items":[{"metadata":{"name":"appwrapper-7"},"positionInClusterQueue":5,"positionInLocalQueue":3}]}`,
		"/api/v1/namespaces/blue/pods":   list("v1", "Pod"),
		"/api/v1/namespaces/blue/events": list("v1", "Event"),
		runsOfBlue:                       list("codeflare.dev/v1alpha1", "Run"),
		runsOfBlue + "/survey": `{"apiVersion":"codeflare.dev/v1alpha1","kind":"Run","metadata":{"name":"survey","namespace":"blue"},
			"status":{"phase":"Queued","appWrapper":{"name":"train7","uid":"uid-7"}}}`,
		"/apis/kubeflow.org/v1/namespaces/blue/pytorchjobs/wrapped": `{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"wrapped","namespace":"blue",
			"labels":{"workload.codeflare.dev/appwrapper":"train7"}}}`,
		"/apis/batch/v1/namespaces/blue/jobs/loose": `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"loose","namespace":"blue","uid":"uid-loose"}}`,
	}
	for i, item := range items {
		world[fmt.Sprintf("%s/train%d", wrappers, i)] = item
	}
	return world
}

func list(version, kind string, items ...string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{},"items":[%s]}`, version, kind+"List", strings.Join(items, ","))
}

// whyServer answers from a world; what is forbidden is a prefix of paths.
func whyServer(t *testing.T, world map[string]string, forbidden ...string) (kubeconfig string, asked func() []string) {
	t.Helper()
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method+" "+r.URL.RequestURI())
		w.Header().Set("Content-Type", "application/json")
		for _, path := range forbidden {
			if strings.HasPrefix(r.URL.Path, path) {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"forbidden"}`)
				return
			}
		}
		path := r.URL.Path
		if next := r.URL.Query().Get("continue"); next != "" {
			path += "?" + next
		}
		if r.Method != http.MethodGet {
			path = r.Method + " " + path
		}
		answer, known := world[path]
		if !known {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, namespace: blue}}], clusters: [{name: c, cluster: {server: "` + server.URL + `"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, func() []string { return requests }
}

func TestWhySaysWhyInAFewRequests(t *testing.T) {
	everyone := []string{queues + "/clusterqueues", queues + "/cohorts", "/apis/visibility"} // may not read these
	for name, row := range map[string]struct {
		line      string
		forbidden []string
		want      []string
		never     string
	}{
		"an administrator sees whose quota is missing": {
			line: "why train7",
			want: []string{
				"AppWrapper train7 in namespace blue is Suspended.\n", "\nQuotaLent: ", "2 more of cpu has to be free in flavor a; its queue uses 2, and 4 is its own\n",
				"  5 are ahead of it in its ClusterQueue, 3 of them in its own queue\n", "holders: ClusterQueue red has borrowed 2 of cpu in flavor a\n",
			},
			never: "unknown",
		},
		"a member sees less": {
			line: "why train7", forbidden: everyone, never: "red",
			want: []string{"\nQuota: there is too little unused quota.\n", "unknown: you may not read the ClusterQueues, which say whose quota is in use: an administrator can bind the role mlbatch-view-queues\n"},
		},
		"a position that may not be read is no secret": {
			line: "why train7", forbidden: []string{"/apis/visibility"}, never: "ahead",
			want: []string{"\nQuotaLent: ", "unknown: you may not read its position in the queue\n"},
		},
		"without Workloads nothing is known of quota": {
			line: "why train7", forbidden: []string{inBlue + "/workloads"}, never: "NoWorkload",
			want: []string{"Nothing that could be read says that something is wrong.\n", "unknown: you may not read the Workloads, which say whether it has quota\n"},
		},
		"a Run":                           {line: "why survey", want: []string{"Run survey in namespace blue is Queued.\n", "QuotaLent: "}},
		"a wrapped job is its AppWrapper": {line: "why pytorchjob/wrapped", want: []string{"AppWrapper train7 in namespace blue is Suspended.\n"}},
		"a bare job by name":              {line: "why bare", want: []string{"Job bare in namespace blue is admitted.\n", "It is not seen to run, and nothing says why"}},
		"a bare job without a queue":      {line: "why jobs/loose", want: []string{"NotQueued: "}},
		"an AppWrapper by kind":           {line: "why aw/train7 -n blue", want: []string{"QuotaLent: "}},
		"programs":                        {line: "why train7 -o json", want: []string{`"code": "QuotaLent"`, `"missing": "2"`}},
		"programs that read YAML":         {line: "why train7 -o yaml", want: []string{"- code: QuotaLent\n", "missing: \"2\"\n"}},
		"a table, which is the default":   {line: "why train7 -o table", want: []string{"\nQuotaLent: "}},
	} {
		t.Run(name, func(t *testing.T) {
			home(t)
			kubeconfig, asked := whyServer(t, busyNamespace(), row.forbidden...)
			out, progress, err := command(t, append(strings.Fields(row.line), "--kubeconfig="+kubeconfig)...)
			if err != nil || progress != "" {
				t.Fatalf("got %q, %v", progress, err)
			}
			for _, want := range row.want {
				if !strings.Contains(out, want) {
					t.Errorf("the answer lacks %q:\n%s", want, out)
				}
			}
			if row.never != "" && strings.Contains(out, row.never) {
				t.Errorf("the answer has %q:\n%s", row.never, out)
			}
			if requests := asked(); len(requests) > 12 {
				t.Errorf("%d requests: %q", len(requests), requests)
			}
		})
	}
}

// By default, Kueue's visibility API is not served.
func TestWithoutKueuesOrderWorkloadsSayWhoIsAhead(t *testing.T) {
	world := busyNamespace()
	delete(world, visible)
	for want, forbidden := range map[string][]string{
		"  467 are ahead of it in its ClusterQueue, 467 of them in its own queue\n": nil,
		"  467 are ahead of it in its own queue\n":                                  {queues + "/clusterqueues"},
	} {
		home(t)
		kubeconfig, _ := whyServer(t, world, forbidden...)
		out, _, err := command(t, "why", "train7", "--kubeconfig="+kubeconfig)
		if err != nil || !strings.Contains(out, want) || strings.Contains(out, "its position") {
			t.Errorf("%v: the answer lacks %q:\n%s", err, want, out)
		}
	}
}

const (
	nodesPath = "/api/v1/nodes"
	podsPath  = "/api/v1/pods"
	podsIn    = "/api/v1/namespaces/blue/pods"
)

// fullCluster is a busy namespace of which one Job finds no node, on a cluster with 1,500 pods.
func fullCluster() map[string]string {
	world := busyNamespace()
	world[inBlue+"/workloads"] = list("kueue.x-k8s.io/v1beta2", "Workload", strings.Replace(bareWorkload, `"status":{`,
		`"status":{"admission":{"clusterQueue":"blue","podSetAssignments":[{"name":"main","flavors":{"cpu":"a"}}]},`, 1))
	world[podsIn] = list("v1", "Pod", `{"metadata":{"name":"bare-0","namespace":"blue"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"4"}}}]},
		"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/2 nodes are available: 2 Insufficient cpu."}]}}`)
	node := `{"metadata":{"name":%q},"status":{"allocatable":{"cpu":"3"}}}`
	world[nodesPath] = list("v1", "Node", fmt.Sprintf(node, "n1"), fmt.Sprintf(node, "n2"))
	other := `{"metadata":{"name":"other"},"spec":{"nodeName":"n1","containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}}`
	world[podsPath] = `{"apiVersion":"v1","kind":"PodList","metadata":{"continue":"2"},"items":[` + other + `]}`
	world[podsPath+"?2"] = `{"apiVersion":"v1","kind":"PodList","metadata":{"continue":"3"},"items":[]}`
	world[podsPath+"?3"] = list("v1", "Pod")
	world[queues+"/resourceflavors/a"] = `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ResourceFlavor","metadata":{"name":"a"}}`
	return world
}

func TestWhyComparesWhatWaitsWithTheNodes(t *testing.T) {
	tooMany := fullCluster()
	tooMany[podsPath+"?3"] = `{"apiVersion":"v1","kind":"PodList","metadata":{"continue":"4"},"items":[]}`
	small := "\nNodesTooSmall: "
	sized := fullCluster()
	sized[queues+"/resourceflavors/a"] = `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ResourceFlavor","metadata":{"name":"a","annotations":{"workload.codeflare.dev/largest-node":"{\"cpu\":\"3\"}"}}}`
	full := fullCluster()
	full[nodesPath] = list("v1", "Node", `{"metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"5"}}}`)
	for name, row := range map[string]struct {
		world     map[string]string
		forbidden []string
		want      []string
	}{
		"an administrator":               {fullCluster(), nil, []string{small, "evidence: Node n2, free cpu: 3 of 3\n  evidence: Node n1, free cpu: 1 of 3\n"}},
		"more quota than the nodes have": {full, nil, []string{"\nNodesFull: ", "\nQuotaBeyondNodes: ", "sum of the quota of cpu: 8\n", "sum of what its nodes have of cpu: 5\n"}},
		"a member":                       {fullCluster(), []string{nodesPath, podsPath}, []string{"\nPodNotScheduled: ", "unknown: you may not read the nodes, which say where there is room\n"}},
		"a member, of whose flavor the largest node is known": {sized, []string{nodesPath, podsPath}, []string{small, "evidence: Pod bare-0, request of cpu: 4\n  evidence: ResourceFlavor a, the most cpu of a node: 3\n", "unknown: you may not read the nodes"}},
		"who may see nodes, but not pods":                     {fullCluster(), []string{podsPath}, []string{"\nPodNotScheduled: ", "unknown: you may not read the pods of all nodes, which say where there is room\n"}},
		"who may not see quota":                               {full, []string{queues + "/clusterqueues"}, []string{"\nNodesFull: ", "unknown: you may not read the ClusterQueues, which say how much quota is promised\n"}},
		"who may not see flavors":                             {full, []string{queues + "/resourceflavors"}, []string{"\nNodesFull: ", "unknown: you may not read ResourceFlavor a\n"}},
		"a larger cluster":                                    {tooMany, nil, []string{"\nPodNotScheduled: ", "unknown: there are more than 1500 pods on nodes: what the nodes have free is not known\n"}},
	} {
		out, progress, requests, err := ask(t, row.world, "why bare", row.forbidden...)
		for _, want := range row.want {
			if err != nil || progress != "" || !strings.Contains(out, want) {
				t.Errorf("%s: %q is missing in %q, %q, %v", name, want, out, progress, err)
			}
		}
		if len(requests) > 12 {
			t.Errorf("%s: %d requests: %q", name, len(requests), requests)
		}
	}
}

func TestWhyLooksForWhatMayBeMissing(t *testing.T) {
	none := list("kueue.x-k8s.io/v1beta2", "Workload")
	urgent := busyNamespace()
	urgent[wrappers+"/train0"] = strings.Replace(urgent[wrappers+"/train0"], `"labels":{`, `"labels":{"kueue.x-k8s.io/priority-class":"urgent",`, 1)
	urgent[inBlue+"/workloads"] = none
	known := maps.Clone(urgent)
	known[queues+"/workloadpriorityclasses/urgent"] = `{"metadata":{"name":"urgent"}}`
	high := busyNamespace()
	high[wrappers+"/train0"] = strings.Replace(high[wrappers+"/train0"], `"components":[]`, `"components":[{"template":{"kind":"Job"}},
		{"template":{"kind":"Job","spec":{"template":{"spec":{"priorityClassName":"high"}}}}}]`, 1)
	high[inBlue+"/workloads"] = none
	existing := maps.Clone(high)
	existing["/apis/scheduling.k8s.io/v1/priorityclasses/high"] = `{"metadata":{"name":"high"}}`
	withoutKueue := busyNamespace()
	delete(withoutKueue, inBlue+"/workloads")
	running := busyNamespace()
	running[inBlue+"/workloads"] = none
	running[wrappers+"/train0"] = `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"train0","namespace":"blue","uid":"uid-0"},"status":{"phase":"Running",
		"componentStatus":[{"name":"train0","kind":"Job","podSets":[{"path":"template"}],"conditions":[{"type":"ResourcesDeployed","status":"True","reason":"x","lastTransitionTime":"2026-01-01T00:00:00Z"}]}]}}`
	for name, row := range map[string]struct {
		world     map[string]string
		forbidden []string
		want      []string
	}{
		"a priority that there is not": {urgent, nil, []string{"\nUnknownPriority: ", "evidence: WorkloadPriorityClass urgent does not exist\n"}},
		"a priority that there is":     {known, nil, []string{"\nNoWorkload: "}},
		"a priority that nobody may read": {urgent, []string{queues + "/workloadpriorityclasses"},
			[]string{"\nNoWorkload: ", "unknown: you may not read WorkloadPriorityClass urgent, which it names\n"}},
		"a priority of pods that there is not": {high, nil, []string{"\nPriorityClassMissing: ", "evidence: PriorityClass high does not exist\n"}},
		"a priority of pods that there is":     {existing, nil, []string{"\nNoWorkload: "}},
		"Kueue":                                {withoutKueue, nil, []string{"\nKueueMissing: ", "evidence: API kueue.x-k8s.io does not exist\n"}},
		"pods":                                 {running, nil, []string{"\nOperatorSilent: ", "evidence: Pod of AppWrapper train0 does not exist\n"}},
		"pods that nobody may read":            {running, []string{podsIn}, []string{"Nothing that could be read says that something is wrong.\n", "unknown: you may not read the pods\n"}},
	} {
		out, progress, _, err := ask(t, row.world, "why train0", row.forbidden...)
		for _, want := range row.want {
			if err != nil || progress != "" || !strings.Contains(out, want) {
				t.Errorf("%s: %q is missing in %q, %q, %v", name, want, out, progress, err)
			}
		}
	}
}

func TestWithoutPermissionTheVerbAndTheResourceAreNamed(t *testing.T) {
	for line, path := range map[string]string{
		"why job/loose": "/apis/batch", "why run/survey": group, "why aw/train7": wrappers, "why pytorchjob/wrapped": "/apis/kubeflow.org",
	} {
		home(t)
		kubeconfig, _ := whyServer(t, busyNamespace(), path)
		out, progress, err := command(t, append(strings.Fields(line), "--kubeconfig="+kubeconfig)...)
		kind, _, _ := strings.Cut(strings.TrimPrefix(line, "why "), "/")
		resource := strings.Replace(kind, "aw", "appwrapper", 1) + "s"
		wording.OneSentence(t, out+progress, err, "you may not get "+resource+" in namespace blue: ask an administrator for a role with this right")
	}
}

func TestRequestsAndTimeAreToldOnDemand(t *testing.T) {
	home(t)
	kubeconfig, asked := whyServer(t, busyNamespace())
	_, progress, err := command(t, "why", "train7", "-v", "--kubeconfig="+kubeconfig)
	if want := fmt.Sprintf("%d requests, ", len(asked())); err != nil || !strings.HasPrefix(progress, want) || !strings.HasSuffix(progress, " s\n") {
		t.Errorf("got %q, %v, want %q", progress, err, want)
	}
	slow = 0
	t.Cleanup(func() { slow = time.Hour })
	for line, told := range map[string]bool{"list": true, "why train7": true, "wait speaker": false} {
		_, progress, _ := command(t, append(strings.Fields(line), "--kubeconfig="+kubeconfig)...)
		if got := strings.Contains(progress, " requests, "); got != told {
			t.Errorf("%s prints %q", line, progress)
		}
	}
}

func TestNamesAreCompleted(t *testing.T) {
	world := busyNamespace()
	world["/apis/batch/v1/namespaces/blue/jobs"] = list("batch/v1", "Job", `{"metadata":{"name":"loose"}}`)
	kubeconfig, _ := whyServer(t, world)
	for typed, want := range map[string][]string{
		"": {"bare\n", "train0\n", "train499\n"}, "job/": {"job/loose\n"}, "aw/tr": {"aw/train0\n"}, "jobs/l": {"jobs/loose\n"}, "pod/": {":4\n"},
	} {
		home(t)
		out, _, err := command(t, "__complete", "why", "--kubeconfig="+kubeconfig, typed)
		for _, name := range want {
			if err != nil || !strings.Contains(out, name) {
				t.Errorf("%q: %q is missing in %.200s, %v", typed, name, out, err)
			}
		}
	}
}

func TestAllPagesOfPodsAreRead(t *testing.T) {
	home(t)
	world, path := busyNamespace(), "/api/v1/namespaces/blue/pods"
	world[path] = `{"apiVersion":"v1","kind":"PodList","metadata":{"continue":"2"},"items":[]}`
	world[path+"?2"] = list("v1", "Pod", `{"metadata":{"name":"late"},"status":{"reason":"Evicted","message":"low on memory"}}`)
	kubeconfig, _ := whyServer(t, world)
	out, _, err := command(t, "why", "train7", "--kubeconfig="+kubeconfig)
	if err != nil || !strings.Contains(out, "PodEvicted: ") {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestAllPagesOfWorkloadsAreRead(t *testing.T) {
	home(t)
	world, path := busyNamespace(), inBlue+"/workloads"
	world[path+"?2"] = world[path]
	world[path] = `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"WorkloadList","metadata":{"continue":"2"},"items":[]}`
	kubeconfig, _ := whyServer(t, world)
	out, _, err := command(t, "why", "train7", "--kubeconfig="+kubeconfig)
	if err != nil || !strings.Contains(out, "QuotaLent: ") {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestAnUnknownNameSuggestsNearOnes(t *testing.T) {
	for line, want := range map[string]string{
		"why trian7":       "there is no AppWrapper, Run or queued job trian7 in namespace blue: did you mean train7?",
		"why aw/else":      "there is no appwrapper else in namespace blue: 'mlbatch list' lists what there is",
		"why job/x -n red": "there is no job x in namespace red: is the namespace right?",
		"why pod/x":        `cannot read "pod/x": write NAME or KIND/NAME; kinds are appwrapper, run, job, jobset, leaderworkerset, pytorchjob, raycluster, rayjob`,
	} {
		home(t)
		kubeconfig, asked := whyServer(t, busyNamespace())
		out, progress, err := command(t, append(strings.Fields(line), "--kubeconfig="+kubeconfig)...)
		wording.OneSentence(t, out+progress, err, want)
		if requests := asked(); len(requests) > 12 {
			t.Errorf("%d requests: %q", len(requests), requests)
		}
	}
}

func TestTheAnswerForProgramsIsJSON(t *testing.T) {
	home(t)
	kubeconfig, _ := whyServer(t, busyNamespace())
	out, _, err := command(t, "why", "train7", "-o", "json", "--kubeconfig="+kubeconfig)
	var answer struct {
		Items []struct{ Causes []struct{ Evidence []any } }
	}
	if err != nil || json.Unmarshal([]byte(out), &answer) != nil || len(answer.Items[0].Causes) != 1 || len(answer.Items[0].Causes[0].Evidence) != 1 {
		t.Errorf("got %s, %v", out, err)
	}
}

// Work that has ended is explained once.
func TestAWatchEndsWithTheWork(t *testing.T) {
	world := busyNamespace()
	world[wrappers+"/done"] = `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"done","namespace":"blue"},"status":{"phase":"Succeeded"}}`
	for line, want := range map[string]string{
		"why done -w":              "Z\nAppWrapper done in namespace blue is Succeeded.\n\nSucceeded: the work is done.\n",
		"why done --watch -o json": `{"apiVersion":"mlbatch.dev/v1","kind":"Explanation","items":[{"kind":"AppWrapper","`,
		"why done --watch -o yaml": "---\napiVersion: mlbatch.dev/v1\nitems:\n- causes:\n  - code: Succeeded\n",
	} {
		out, progress, requests, err := ask(t, world, line)
		if err != nil || progress != "" || !strings.Contains(out, want) || strings.Count(out, "the work is done") != 1 || len(requests) > 12 {
			t.Errorf("%s: got %q, %q, %v, %q", line, out, progress, err, requests)
		}
	}
	out, progress, _, err := ask(t, world, "why trian7 --watch")
	wording.OneSentence(t, out+progress, err, "there is no AppWrapper, Run or queued job trian7 in namespace blue: did you mean train7?")
}
