// SPDX-License-Identifier: Apache-2.0

package runplan

import (
	"fmt"
	"strings"
)

// Problem is a reason why there is no plan, with a sentence for the Run's author.
type Problem struct {
	Reason  string
	Message string
}

// Reasons.
const (
	// ApplicationNotFound: the Application may come later.
	ApplicationNotFound = "ApplicationNotFound"
	// SizeUnknown: no RunSizeConfiguration has the size.
	SizeUnknown = "SizeUnknown"
	// InputNotFound: a DataSet may come later.
	InputNotFound = "InputNotFound"
	// Impossible: what the objects say does not fit together.
	Impossible = "Impossible"
	// Refused: an AppWrapper would be made, and its admission refuses it.
	Refused = "Refused"
)

// problem has its sentence on one line, whatever names are in it.
func problem(reason, format string, args ...any) Problem {
	return Problem{reason, strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")}
}

func impossible(format string, args ...any) Problem { return problem(Impossible, format, args...) }

// inNamespace is empty for manifests that name no namespace.
func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}
