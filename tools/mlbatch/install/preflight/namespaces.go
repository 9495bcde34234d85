// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"
)

func namespaceIsMissing(f Facts) []string {
	var found []string
	for n, r := range f.Releases {
		instead := "change the values that name it"
		if n > 0 {
			instead = "let the release create it (createNamespace)"
		}
		for _, namespace := range r.Absent {
			found = append(found, fmt.Sprintf("the release %s has objects in the namespace %s, which does not exist: create it first, or %s", r.Name, namespace, instead))
		}
	}
	return found
}

func namespaceIsNotOfATeam(f Facts) []string {
	var found []string
	for _, r := range f.Releases {
		for _, namespace := range r.Unlabelled {
			found = append(found, fmt.Sprintf("the namespace %s of a team lacks a label, so its work would run without quota and policies: "+
				"run 'kubectl label namespace %s mlbatch-team-namespace=true'", namespace, namespace))
		}
	}
	return found
}

func pullSecretIsMissing(f Facts) []string {
	var found []string
	for _, s := range f.PullSecrets {
		namespace := f.Releases[0].Namespace
		problem := fmt.Sprintf("namespace %s has no Secret %s, with which pods of the platform would pull their images", namespace, s.Name)
		if s.Type != "" {
			problem = fmt.Sprintf("the Secret %s in namespace %s has the type %s, so pods cannot pull their images with it", s.Name, namespace, s.Type)
		}
		found = append(found, fmt.Sprintf("%s: create it with 'kubectl create secret docker-registry %s --namespace %s'", problem, s.Name, namespace))
	}
	return found
}

func twoDefaultClasses(f Facts) []string {
	if f.DefaultClass.Rival == "" {
		return nil
	}
	return []string{fmt.Sprintf("the cluster's default PriorityClass is %s, and there can be only one: set priorities.globalDefault to false, or globalDefault of %s",
		f.DefaultClass.Name, f.DefaultClass.Name)}
}

func defaultClassIsRefused(f Facts) []string {
	if len(f.DefaultClass.Refused) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("pods that name no PriorityClass get %s, the cluster's default, and are refused in %s: add it to priorities of the teams",
		f.DefaultClass.Name, strings.Join(f.DefaultClass.Refused, ", "))}
}
