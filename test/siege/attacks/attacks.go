// SPDX-License-Identifier: Apache-2.0

// Package attacks lists what people have found. The grammar does not know it: it is only for counting how many calls
// the siege needs to find each again without its defence.
package attacks

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mlbatch/mlbatch/test/siege/grammar"
	"github.com/mlbatch/mlbatch/test/siege/referee"
)

// Webhook stands for the webhooks of AppWrappers, which are no policy.
const Webhook = "webhook"

// Attack is a way past the quota, or to what a team may not have.
type Attack struct {
	Name string
	// Without is what refuses it: policies of the chart mlbatch, or Webhook.
	Without string
	// Rules are what the referee, or mlbatch audit, finds then: one of these.
	Rules []string
	// Call reports whether a call is the decisive one. The API server must have accepted it.
	Call func(grammar.Call) bool
}

var unreserved = []string{"no-quota", "over-reservation", "held"}

// All are those that a single policy, or the webhooks, refuse.
var All = []Attack{
	{"delete with --cascade=orphan", "lifecycle", []string{"orphan", "no-quota", referee.HeldByNothing}, deletes("Orphan")},
	{"delete with --cascade=foreground", "lifecycle", append(unreserved, "orphan"), deletes("Foreground")},
	{"a finalizer of one's own, then delete", "lifecycle", append(unreserved, referee.Stays), sets(`metadata\.finalizers=\[example\.com`)},
	{"hand a running PyTorchJob to nobody", "started", unreserved, patches(`runPolicy\.managedBy=`)},
	{"make KubeRay forget a running RayCluster", "started", unreserved, patches(`ray\.io/originated-from-crd=`)},
	{"more replicas of a running PyTorchJob", "started", unreserved, patches(`pytorchReplicaSpecs\.\w+\.replicas=([2-9]|\d\d)`)},
	{grown, "started", []string{"over-reservation"}, grows},
	{"a PyTorchJob that leaves pods behind", "growth", unreserved, sets(`cleanPodPolicy=None|no [\w.]*(cleanPodPolicy|runPolicy)\b`)},
	{"a grace of a day", "growth", []string{referee.LongGrace}, sets(`terminationGracePeriodSeconds=(601|86400)`)},
	{"more minReplicas than replicas", "growth", unreserved, sets(`\.minReplicas=`)},
	{"tolerate the taint of others", "placement", []string{"misplaced"}, sets(`spec\.tolerations=`)},
	{"name a node", "placement", []string{"misplaced"}, sets(`spec\.nodeName=`)},
	{"keep others from a node", "placement", []string{"misplaced"}, sets(`spec\.affinity=`)},
	{"name an owner", "ownership", append(unreserved, "orphan", "idle-quota", "mislabelled", referee.HeldByNothing, referee.Stays), sets(`metadata\.ownerReferences=`)},
	{"pods that count as another AppWrapper's", "labels", []string{"mislabelled"}, sets(`workload\.codeflare\.dev/appwrapper`)},
	{"a port to the outside", "exposure", []string{"open-port"}, sets(`type=(NodePort|LoadBalancer)|externalIPs=|enableIngress=true`)},
	{"a class of the system", "priorities", []string{"system-priority"}, sets(`priorityClass(Name)?=system-`)},
	{"the node of a bare pod", "pod-security", []string{"node-access"}, sets(`privileged:true|hostNetwork=true`)},
	{"a side-car that Kueue does not count", Webhook, unreserved, sets(`initContainers=`)},
}

// grown is about AppWrappers: the others may be about anything.
const grown = "more pods of what an AppWrapper has created"

// Found are the names of those that a finding may be, after these calls.
func Found(f referee.Finding, without string, accepted []grammar.Call) (names []string) {
	for _, a := range All {
		wrapped := strings.HasPrefix(f.Object, "AppWrapper ")
		if a.Without == without && slices.Contains(a.Rules, f.Rule) && slices.ContainsFunc(accepted, a.Call) && (a.Name != grown || wrapped) {
			names = append(names, a.Name)
		}
	}
	return names
}

// Of are the names of those that something refuses.
func Of(without string) (names []string) {
	for _, a := range All {
		if a.Without == without {
			names = append(names, a.Name)
		}
	}
	return names
}

// Defences are all that refuse one of them.
func Defences() (all []string) {
	for _, a := range All {
		if !slices.Contains(all, a.Without) {
			all = append(all, a.Without)
		}
	}
	return all
}

func deletes(propagation string) func(grammar.Call) bool {
	return func(c grammar.Call) bool { return c.Verb == grammar.Delete && c.Propagation == propagation }
}

// sets reports whether a change that a call makes looks like this.
func sets(pattern string) func(grammar.Call) bool {
	r := regexp.MustCompile(pattern)
	return func(c grammar.Call) bool { return r.MatchString(c.About) }
}

func patches(pattern string) func(grammar.Call) bool {
	matches := sets(pattern)
	return func(c grammar.Call) bool { return c.Verb == grammar.Patch && matches(c) }
}

func grows(c grammar.Call) bool {
	return c.Resource != grammar.AppWrappers && (c.Verb == grammar.Scale || patches(`(?i)replicas=`)(c))
}
