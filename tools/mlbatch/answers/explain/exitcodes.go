// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// terminalExitCode is about exit codes with which the annotations forbid a retry, however many are left.
func (o Objects) terminalExitCode() []Cause {
	terminal, retryable := o.exitCodes(v1beta2.TerminalExitCodesAnnotation), o.exitCodes(v1beta2.RetryableExitCodesAnnotation)
	for _, pod := range o.Pods {
		if pod.Status.Phase != corev1.PodFailed {
			continue
		}
		for _, c := range pod.Status.ContainerStatuses { // the controller does not look at others
			if c.State.Terminated == nil || c.State.Terminated.ExitCode == 0 {
				continue
			}
			code := strconv.Itoa(int(c.State.Terminated.ExitCode))
			annotation := v1beta2.TerminalExitCodesAnnotation
			if len(retryable) > 0 && !slices.Contains(retryable, code) {
				annotation = v1beta2.RetryableExitCodesAnnotation
			} else if !slices.Contains(terminal, code) {
				continue
			}
			return []Cause{cause("TerminalExitCode", Evidence{"Pod " + pod.Name, "exit code of container " + c.Name, code},
				also(Evidence{o.wrapper(), "annotation " + annotation, o.AppWrapper.Annotations[annotation]}))}
		}
	}
	return nil
}

func (o Objects) exitCodes(annotation string) (codes []string) {
	for code := range strings.SplitSeq(o.AppWrapper.Annotations[annotation], ",") {
		if code = strings.TrimSpace(code); code != "" {
			codes = append(codes, code)
		}
	}
	return codes
}
