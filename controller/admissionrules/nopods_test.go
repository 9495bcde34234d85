// SPDX-License-Identifier: Apache-2.0

package admissionrules

import (
	"strings"
	"testing"
)

func TestWorkWithoutPodsIsRefused(t *testing.T) {
	deployment := named(aDeployment, "d", "{replicas: 0, template: "+podTemplate+"}")
	jobSet := func(replicas string) string {
		return strings.Replace(oneJobOfFour, "{name: w", "{"+replicas+"name: w", 1)
	}
	for sentence, row := range map[string]struct {
		components []string
		at, says   string // nothing is refused if they are empty
	}{
		"a Job that waits for somebody": {[]string{component(named(aJob, "j", "{parallelism: 0, template: "+podTemplate+"}"))}, "[0].template.spec.parallelism", "would wait until somebody raises it"},
		"also beside another one":       {[]string{component(job), component(named(aJob, "k", "{parallelism: 0, completions: 2, template: "+podTemplate+"}"))}, "[1].template.spec.parallelism", "leave it out"},
		"a Job that has to make none":   {[]string{component(named(aJob, "j", "{parallelism: 0, completions: 0, template: "+podTemplate+"}"))}, "", ""},
		"the same without parallelism":  {[]string{component(named(aJob, "j", "{completions: 0, template: "+podTemplate+"}"))}, "", ""},
		"a Job of a JobSet that waits":  {[]string{component(named(aJobSet, "s", strings.Replace(oneJobOfFour, "parallelism: 4", "parallelism: 0", 1)))}, "[0].template.spec.replicatedJobs[0].template.spec.parallelism", "leave it out"},
		"a Deployment of no pods":       {[]string{component(deployment)}, "", "cannot be scaled"},
		"beside another one of none":    {[]string{component(deployment), component(named(aSet, "s", "{replicas: 0, template: "+podTemplate+"}"))}, "", "there are no pods"},
		"beside one that has some":      {[]string{component(deployment), component(job)}, "", ""},
		"groups of nobody":              {[]string{component(named(groups, "g", "{replicas: 0, leaderWorkerTemplate: {size: 2, workerTemplate: "+podTemplate+"}}"))}, "", "there are no pods"},
		"a JobSet of no Jobs":           {[]string{component(named(aJobSet, "s", jobSet("replicas: 0, ")))}, "[0].template.spec.replicatedJobs", "must have replicas"},
		"a kind that nobody knows":      {[]string{declared("[{path: template.spec.template, replicas: 0}]", "{apiVersion: example.com/v1, kind: Custom, metadata: {name: c}, spec: {template: "+podTemplate+"}}")}, "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			problems := ValidateCreate(appWrapper(t, row.components...), DefaultLimits)
			if row.says == "" {
				if len(problems) > 0 {
					t.Errorf("it is refused: %v", problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Field != "spec.components"+row.at || !strings.Contains(problems[0].ErrorBody(), row.says) {
				t.Errorf("want one problem at %q that says %q, got:\n%v", row.at, row.says, problems)
			}
		})
	}
}

// What is wrong with a field is said of the field alone.
func TestFieldsOfPodsThatCannotBeDecodedAreNamed(t *testing.T) {
	for spec, row := range map[string]struct{ at, says string }{
		"{containers: [{name: pytorch, image: i, env: [{name: A, value: 3}]}]}":             {"containers[0].env[0].value", "must be a string: write it in quotes"},
		"{containers: [{name: pytorch, image: i, command: sleep 5}]}":                       {"containers[0].command", "must be a list"},
		"{containers: [{name: pytorch, image: i, resources: {limits: {memory: 1GB}}}]}":     {"containers[0].resources.limits[memory]", "must be an amount: a number, and a unit such as m, k"},
		"{nodeSelector: {gpu: true}, containers: [{name: pytorch, image: i}]}":              {"nodeSelector[gpu]", "must be a string"},
		"{nodeSelector: {gpu: true}, containers: [{name: pytorch, image: i, workDir: /a}]}": {"nodeSelector[gpu]", "must be a string"},
	} {
		t.Run(spec, func(t *testing.T) {
			custom := "{apiVersion: example.com/v1, kind: Custom, metadata: {name: c}, spec: {template: {spec: " + spec + "}}}"
			for at, c := range map[string]string{
				"spec.template.spec.":                            component(named(aJob, "j", "{template: {spec: "+spec+"}}")),
				"spec.pytorchReplicaSpecs.Master.template.spec.": component(named(aPyTorchJob, "p", "{pytorchReplicaSpecs: {Master: {template: {spec: "+spec+"}}}}")),
				"spec.":                component("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: " + spec + "}"),
				"spec. template.spec.": declared("[{path: template.spec.template}]", custom),
			} {
				at = strings.ReplaceAll(at, " ", "")
				aw := appWrapper(t, c)
				wantRefusal(t, aw, at+row.at, row.says)
				if _, err := PodSets(aw.Spec.Components[0].DeclaredPodSets, Decode(aw).Templates[0]); err == nil || strings.Contains(err.Error(), "lead to") || !strings.Contains(err.Error(), row.at) {
					t.Errorf("the command says %v", err)
				}
			}
		})
	}
}
