// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// gangSuffix distinguishes our PodGroup from those that operators name after the job.
const gangSuffix = "-gang"

// checkOptions refuses what an API server would.
func (p *packer) checkOptions() {
	for _, o := range []struct {
		flag, value string
		check       func(string) []string
	}{
		{"--name", p.Name, validation.IsDNS1123Label}, // in a queue there may be no dot, and the controller may set a queue
		{"--namespace", p.Namespace, validation.IsDNS1123Label},
		{"--queue", p.Queue, validation.IsDNS1123Label},
		{"--priority", p.Priority, validation.IsDNS1123Subdomain},
	} {
		if o.value == "" {
			continue
		}
		if wrong := o.check(o.value); len(wrong) > 0 {
			p.refuseAll("%s %s: %s", o.flag, o.value, wrong[0])
		}
	}
}

// chooseName takes that of the first object that makes pods, unless the author names one.
func (p *packer) chooseName() {
	longest := p.longestName()
	if len(p.Name) > longest {
		p.refuseAll("--name %s: it has %d characters, and may have at most %d, because PodGroups and pod sets are named after it", p.Name, len(p.Name), longest)
	}
	for _, part := range p.parts {
		if len(part.podSets) > 0 {
			p.Name = cmp.Or(p.Name, shortened(nameOf(part.Object), longest))
		}
	}
}

// longestName is the most characters of a name from which the names of a PodGroup and, in a
// queue, of all pod sets can be made.
func (p *packer) longestName() int {
	if p.PodGroup {
		return validation.DNS1123LabelMaxLength - len(gangSuffix)
	}
	podSets := 0
	for _, part := range p.parts {
		podSets += len(part.podSets)
	}
	return validation.DNS1123LabelMaxLength - len("-"+strconv.Itoa(max(podSets-1, 0)))
}

func shortened(name string, longest int) string {
	name = strings.ReplaceAll(name, ".", "-")
	if len(name) > longest {
		name = name[:longest]
	}
	return strings.Trim(name, "-")
}
