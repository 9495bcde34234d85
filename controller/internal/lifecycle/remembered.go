// SPDX-License-Identifier: Apache-2.0

package lifecycle

// rememberGone records pods that have succeeded and are gone. Nobody creates them again, and without this they would
// count as lost. What the component itself reports needs no write.
func (v *view) rememberGone() {
	for i, c := range v.Components {
		status := &v.status.ComponentStatus[i]
		if v.finished(i) || v.kindOf(i).ReplacesWhatEnds() || len(status.PodSets) == 1 && c.Ended.Succeeded > 0 {
			continue
		}
		for j := range min(len(c.Gone), len(status.PodSets)) {
			if c.Gone[j] == 0 {
				continue
			}
			for len(status.SucceededPods) < len(status.PodSets) {
				status.SucceededPods = append(status.SucceededPods, 0)
			}
			if more := int32(c.Gone[j]); more > status.SucceededPods[j] {
				status.SucceededPods[j], status.SucceededPodsUntil = more, c.GoneUntil
			}
		}
	}
}
