// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// suffixLength keeps generated names as long as those that the API server makes up,
// with room for twice as many digits so that chance cannot make two alike.
const suffixLength = 10

// maxPrefix is what is left of a DNS label of 63 characters.
const maxPrefix = 63 - suffixLength

// ObjectName is the name under which a component is created: its own name or, where
// the template has a generateName, one that depends on nothing but the AppWrapper's
// UID and the component's index. So a create that is repeated after a crash meets
// its own object instead of making a second one.
func ObjectName(template *unstructured.Unstructured, owner types.UID, index int) string {
	if name := template.GetName(); name != "" {
		return name
	}
	prefix := template.GetGenerateName()
	if prefix == "" {
		return ""
	}
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix]
	}
	sum := sha256.Sum256([]byte(string(owner) + "/" + strconv.Itoa(index)))
	return prefix + hex.EncodeToString(sum[:])[:suffixLength]
}
