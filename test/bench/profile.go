// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/google/pprof/profile"
)

// Profile is what the API server did while a scenario began.
type Profile struct {
	Scenario string  `json:"scenario"`
	Seconds  float64 `json:"seconds"`
	// Cores that it kept busy.
	Cores float64 `json:"cores"`
	// Shares of its processor time, which sum to 1, by what it did.
	Shares map[string]float64 `json:"shares"`
}

// doing is what an API server does, by functions that are then on the stack. A stack may have several:
// the first of this list counts.
var doing = []struct {
	name string
	by   *regexp.Regexp
}{
	{"collecting garbage", regexp.MustCompile(`^runtime\.(gc[A-Z]|bgsweep|bgscavenge)`)},
	{"writing the audit log", regexp.MustCompile(`/pkg/audit[./]`)},
	{"policies in CEL", regexp.MustCompile(`/admission/plugin/policy/`)},
	{"asking webhooks", regexp.MustCompile(`/admission/plugin/webhook/`)},
	// Requests for a watch come through the function for lists.
	{"watches", regexp.MustCompile(`\.serveWatch|\(\*WatchServer\)`)},
	{"PATCH", regexp.MustCompile(`\.PatchResource|/handlers\.\(\*\w*[pP]atcher\)`)},
	{"PUT", regexp.MustCompile(`\.UpdateResource\.`)},
	{"POST", regexp.MustCompile(`\.createHandler`)},
	{"DELETE", regexp.MustCompile(`\.(DeleteResource|DeleteCollection)\.`)},
	{"GET and LIST", regexp.MustCompile(`\.(GetResource|getResourceHandler|ListResource)`)},
	// Outside of a request, it tells all watches of what etcd has told.
	{"watches", regexp.MustCompile(`/storage/(cacher|etcd3)\.`)},
	{"talking to etcd", regexp.MustCompile(`^google\.golang\.org/grpc|^go\.etcd\.io/`)},
	{"HTTP, TLS, authentication and queues", regexp.MustCompile(`^(net/http|crypto/tls|golang\.org/x/net/http2)\.|/apiserver/pkg/(server|endpoints)/`)},
	{"switching between goroutines", regexp.MustCompile(`^runtime\.(mcall|mstart|schedule|sysmon)`)},
}

const doingOthers = "everything else"

// ProfileOf tells what was done in a profile of processor time.
func ProfileOf(scenario string, p *profile.Profile) Profile {
	used := map[string]float64{} // nanoseconds
	for _, sample := range p.Sample {
		used[whatWasDone(sample)] += float64(sample.Value[len(sample.Value)-1])
	}
	all := sum(used)
	for what := range used {
		used[what] /= max(all, 1)
	}
	seconds := float64(p.DurationNanos) / 1e9
	return Profile{Scenario: scenario, Seconds: seconds, Cores: all / 1e9 / seconds, Shares: used}
}

func whatWasDone(sample *profile.Sample) string {
	var stack []string
	for _, location := range sample.Location {
		for _, line := range location.Line {
			if line.Function != nil {
				stack = append(stack, line.Function.Name)
			}
		}
	}
	for _, what := range doing {
		if slices.ContainsFunc(stack, what.by.MatchString) {
			return what.name
		}
	}
	return doingOthers
}

// Table has what took most above.
func (p *Profile) Table() string {
	if p == nil {
		return ""
	}
	t := newTable("what kube-apiserver did", "share of its processor time")
	for _, what := range byValue(p.Shares) {
		t.row(what, fmt.Sprintf("%.1f %%", 100*p.Shares[what]))
	}
	return t.String()
}

// Says describes the scenario of a profile.
func (p *Profile) Says(scenarios []Scenario) string {
	i := slices.IndexFunc(scenarios, func(s Scenario) bool { return s.Name == p.Scenario })
	if i < 0 {
		return p.Scenario
	}
	return scenarios[i].Says
}
