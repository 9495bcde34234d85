// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"cmp"
	"path"
	"slices"
	"strconv"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
)

// ofDatashim returns the name of an input for which there is a Dataset of Datashim, and no DataSet.
func ofDatashim(in Input, input v1alpha1.Input, problems []Problem) (name string, is bool) {
	name = cmp.Or(input.Name, sizeOfInput(input, in.Run.Spec.Input))
	missing := slices.ContainsFunc(problems, func(p Problem) bool { return p.Reason == InputNotFound })
	return name, missing && slices.Contains(in.Datashim, name)
}

// ask lets Datashim mount a Dataset, or set variables, by labels of the pods.
func (d *data) ask(name string, input v1alpha1.Input, at map[string]string) []Problem {
	if len(name) > longestLabel {
		return []Problem{impossible("Dataset %s of Datashim is named in a label, and may have %d characters: rename it", name, longestLabel)}
	}
	use := cmp.Or(input.UseAs, v1alpha1.UseAsMount)
	if use == v1alpha1.UseAsMount {
		folder := path.Join(dataSetsFolder, name)
		if input.MountPath != "" && path.Clean(input.MountPath) != folder {
			return []Problem{impossible("Datashim mounts Dataset %s at %s: leave mountPath out", name, folder)}
		}
		if other, taken := at[folder]; taken {
			return []Problem{impossible("input %s and %s are both mounted at %s: remove one", name, other, folder)}
		}
		at[folder] = "input " + name
	}
	if d.labels == nil {
		d.labels = map[string]string{}
	}
	prefix := "dataset." + strconv.Itoa(len(d.labels)/2) + "."
	d.labels[prefix+"id"], d.labels[prefix+"useas"] = name, string(use)
	return nil
}
