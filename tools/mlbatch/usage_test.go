// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/test/wording"
)

const (
	allWrappers  = "/apis/workload.codeflare.dev/v1beta2/appwrappers"
	allWorkloads = queues + "/workloads"
	ofDeleted    = "note: AppWrappers that are deleted are not counted: where Prometheus runs, --prometheus counts them, too\n"
)

// used is a world with one AppWrapper of blue that used 8 GPUs for an hour, until two hours ago, and one of red.
func used() map[string]string {
	wrapper := func(namespace string) string {
		return fmt.Sprintf(`{"metadata":{"name":"train","namespace":%q,"uid":%[1]q,"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"components":[{"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
			"spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"8"}}}]}}}]},"status":{"phase":"Succeeded","componentStatus":[{"name":"p","kind":"Pod","apiVersion":"v1","podSets":[{"path":"template"}]}],
			"usage":{"at":%q,"usefulSeconds":3600}}}`, namespace, time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339))
	}
	workload := func(namespace string) string {
		return fmt.Sprintf(`{"metadata":{"name":"w","namespace":%q,"creationTimestamp":"2026-01-01T00:00:00Z","ownerReferences":[{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","name":"train","uid":%[1]q,"controller":true}]},
			"spec":{"podSets":[{"name":"a","count":1,"template":{"spec":{"containers":[{"name":"c","resources":{"requests":{"nvidia.com/gpu":"8"}}}]}}}]},"status":{"accumulatedPastExecutionTimeSeconds":3600}}`, namespace)
	}
	wrapperList := func(items ...string) string { return list("workload.codeflare.dev/v1beta2", "AppWrapper", items...) }
	workloadList := func(items ...string) string { return list("kueue.x-k8s.io/v1beta2", "Workload", items...) }
	return map[string]string{
		allWrappers: wrapperList(wrapper("blue"), wrapper("red")), allWorkloads: workloadList(workload("blue"), workload("red")),
		wrappers: wrapperList(wrapper("blue")), inBlue + "/workloads": workloadList(workload("blue")),
	}
}

func TestUsageReadsTwoLists(t *testing.T) {
	const may = ": ask an administrator for a role with this right; "
	blue, everywhere := "TEAM  RESOURCE        RESERVED  USEFUL\nblue  nvidia.com/gpu  8.00      8.00\n", "red    nvidia.com/gpu  8.00      8.00\nTOTAL  nvidia.com/gpu  16.00     16.00\n"
	for name, row := range map[string]struct {
		line        string
		forbidden   []string
		out, kueues string
		notes       string
		requests    []string
	}{
		"an administrator": {
			line: "usage", out: everywhere, kueues: "\nnvidia.com/gpu  2            2         16.00  16.00  +0.00 %\n", notes: ofDeleted,
			requests: []string{"GET " + allWrappers + "?limit=500", "GET " + allWorkloads + "?limit=500"},
		},
		"one namespace": {
			line: "usage --namespace blue", out: blue, kueues: "\nnvidia.com/gpu  1            1         8.00   8.00   +0.00 %\n", notes: ofDeleted,
			requests: []string{"GET " + wrappers + "?limit=500", "GET " + inBlue + "/workloads?limit=500"},
		},
		"a member": {
			line: "usage", forbidden: []string{allWrappers, allWorkloads}, out: blue, kueues: "\nnvidia.com/gpu  1            1         8.00   8.00   +0.00 %\n",
			notes:    "note: you may not list appwrappers in all namespaces" + may + "these are those of namespace blue\n" + ofDeleted,
			requests: []string{"GET " + allWrappers + "?limit=500", "GET " + wrappers + "?limit=500", "GET " + inBlue + "/workloads?limit=500"},
		},
		"somebody who may not see Workloads": {
			line: "usage", forbidden: []string{allWorkloads}, out: everywhere,
			notes:    "note: you may not list workloads in all namespaces" + may + "the comparison with Kueue is missing\n" + ofDeleted,
			requests: []string{"GET " + allWrappers + "?limit=500", "GET " + allWorkloads + "?limit=500"},
		},
		"nothing within an hour": {
			line: "usage --since 1h", notes: "there is nothing to count in any namespace\n" + ofDeleted,
			requests: []string{"GET " + allWrappers + "?limit=500", "GET " + allWorkloads + "?limit=500"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, progress, requests, err := ask(t, used(), row.line, row.forbidden...)
			if err != nil || !strings.Contains(out, row.out) || !strings.HasSuffix(out, row.kueues) || strings.Contains(out, "KUEUE") != (row.kueues != "") || progress != row.notes {
				t.Errorf("got %s\n%q, %v", out, progress, err)
			}
			if diff := cmp.Diff(row.requests, requests); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestUsageReadsAllPages(t *testing.T) {
	world := used()
	world[allWrappers+"?2"], world[allWorkloads+"?2"] = world[allWrappers], world[allWorkloads]
	world[allWrappers] = `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapperList","metadata":{"continue":"2"},"items":[]}`
	world[allWorkloads] = `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"WorkloadList","metadata":{"continue":"2"},"items":[]}`
	out, _, requests, err := ask(t, world, "usage --by appwrapper")
	if err != nil || len(requests) != 4 || !strings.Contains(out, "red    train       nvidia.com/gpu  8.00      8.00\n") || !strings.Contains(out, "+0.00 %") {
		t.Errorf("got %s, %q, %v", out, requests, err)
	}
}

func TestUsageForPrograms(t *testing.T) {
	out, _, _, err := ask(t, used(), "usage --since 7d --by queue -o csv")
	if want := "blue,,nvidia.com/gpu,1,8.0000,0.0000,0.0000,0.0000,8.0000,0.0000,"; err != nil || !strings.HasPrefix(out, "team,queue,resource,appWrappers,reservedHours,startingHours,") || !strings.Contains(out, want) {
		t.Errorf("got %s, %v", out, err)
	}
	out, _, _, err = ask(t, used(), "usage --since 7d --resource nvidia.com/gpu -o json")
	var report struct {
		At, Since time.Time
		Totals    []struct{ ReservedHours float64 }
		Kueue     []struct{ Compared int }
	}
	if err != nil || json.Unmarshal([]byte(out), &report) != nil || report.At.Sub(report.Since) != 7*24*time.Hour || len(report.Totals) != 1 || report.Totals[0].ReservedHours != 16 || report.Kueue[0].Compared != 2 {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestUsageThatCannotBeRead(t *testing.T) {
	out, progress, _, err := ask(t, used(), "usage", allWrappers, wrappers)
	wording.OneSentence(t, out+progress, err, "you may not list appwrappers in namespace blue: ask an administrator for a role with this right")
	home(t)
	kubeconfig, _ := apiServer(t)
	out, progress, err = command(t, "usage", "--kubeconfig="+kubeconfig)
	wording.OneSentence(t, out+progress, err, "the cluster does not serve appwrappers in all namespaces: ask an administrator whether the platform is installed")
}

func TestUsageThatIsNoNumber(t *testing.T) {
	home(t)
	for answer, says := range map[string]string{
		`"value":[1,"NaN"]`:  `about {namespace="blue"} => NaN @[1]: it is no number`,
		`"value":[1,"+Inf"]`: "it is no number",
		`"histogram":[1,{"count":"1","sum":"2","buckets":[]}]`: "it is no number",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"namespace":"blue"},`+answer+`}]}}`)
		}))
		defer server.Close()
		if _, _, err := command(t, "usage", "--since=7d", "--prometheus="+server.URL); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", answer, err)
		}
	}
}

// With Prometheus, no cluster is asked: there is not even a kubeconfig.
func TestUsageAsksPrometheus(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.FormValue("query"))
		fmt.Fprint(w, `{"status":"success","warnings":["store b is away"],"data":{"resultType":"vector","result":[
			{"metric":{"namespace":"blue","resource":"nvidia.com/gpu","class":"Useful"},"value":[1,"28800"]},
			{"metric":{"namespace":"red","resource":"nvidia.com/gpu","class":"LostToNode"},"value":[1,"7200"]}]}}`)
	}))
	defer server.Close()
	home(t)
	for line, want := range map[string]string{
		"":                   "TEAM   RESOURCE        RESERVED  USEFUL  LOSTTONODE\nblue   nvidia.com/gpu  8.00      8.00    0.00\nred    nvidia.com/gpu  2.00      0.00    2.00\nTOTAL  nvidia.com/gpu  10.00     8.00    2.00\n",
		" --by cause":        "CAUSE       RESOURCE        RESERVED  SHARE\nUseful      nvidia.com/gpu  8.00      80.0 %\nLostToNode  nvidia.com/gpu  2.00      20.0 %\nTOTAL       nvidia.com/gpu  10.00     100.0 %\n",
		" --namespace blue":  "TEAM   RESOURCE        RESERVED  USEFUL  LOSTTONODE\n",
		" --output json":     "\"source\": \"prometheus\"",
		" --by cause -o csv": "cause,resource,appWrappers,reservedHours,earlierHours\nUseful,nvidia.com/gpu,,8.0000,8.0000\n",
	} {
		out, notes, err := command(t, strings.Fields("usage --since 7d --prometheus "+server.URL+line)...)
		if err != nil || !strings.Contains(out, want) || !strings.Contains(notes, "note: Prometheus warns, so hours may be missing: store b is away\n") {
			t.Errorf("%s: got %s\n%s, %v", line, out, notes, err)
		}
		if query := asked[len(asked)-1]; !strings.HasSuffix(query, "[604800s]))") || strings.Contains(query, `namespace="blue"`) != strings.Contains(line, "blue") {
			t.Errorf("%s: it asks %s", line, query)
		}
	}
}

func TestUsageOfPrometheusIsRefused(t *testing.T) {
	home(t)
	for line, says := range map[string]string{
		"usage --prometheus http://p --since 7d --by user":   "prometheus cannot tell usage by user",
		"usage --prometheus http://p":                        "say for how long: --since",
		"usage --prometheus-token-file token --since 7d":     `"" is no address of a Prometheus`,
		"usage --prometheus p:9090 --since 7d":               `"p:9090" is no address of a Prometheus`,
		"usage --prometheus http://p --since 7d --output md": "md",
	} {
		if out, _, err := command(t, strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %s, %v", line, out, err)
		}
	}
}
