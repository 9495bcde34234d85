// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// suffixLength is twice that of names that the API server generates, so that two names never
// collide by chance.
const suffixLength = 10

// maxPrefix is the rest of a DNS label of 63 characters.
const maxPrefix = 63 - suffixLength

// ObjectName is the name under which a component is created: its own name or, if the template
// has a generateName, one that depends only on the AppWrapper's UID and the component's
// index. So a create that is repeated after a crash finds its own object instead of creating
// a second one.
func ObjectName(template *unstructured.Unstructured, owner types.UID, index int) string {
	if name := template.GetName(); name != "" {
		return name
	}
	sum := sha256.Sum256([]byte(string(owner) + "/" + strconv.Itoa(index)))
	return generated(template, hex.EncodeToString(sum[:])[:suffixLength])
}

// LikelyName is the name of a component, or one that is as long and has the same characters as what becomes of its
// generateName.
func LikelyName(template *unstructured.Unstructured) string {
	if name := template.GetName(); name != "" {
		return name
	}
	return generated(template, strings.Repeat("x", suffixLength))
}

func generated(template *unstructured.Unstructured, suffix string) string {
	prefix := template.GetGenerateName()
	if prefix == "" {
		return ""
	}
	return prefix[:min(len(prefix), maxPrefix)] + suffix
}
