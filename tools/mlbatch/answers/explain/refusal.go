// SPDX-License-Identifier: Apache-2.0

package explain

// phrase are words by which a cause is known in what others say.
type phrase struct {
	code  Code
	words []string
}

// sorted is the code of the first phrase of which a text has one of the words.
func sorted(text string, phrases []phrase, otherwise Code) Code {
	for _, p := range phrases {
		if hasAny(text, p.words...) {
			return p.code
		}
	}
	return otherwise
}

// refusals are what the API server says when it does not create an object, and what our controller says instead. What
// a webhook or a policy says may have any words, so these come before those that are less certain.
var refusals = []phrase{
	{"KindNotServed", []string{"no matches for kind", "could not find the requested resource", "does not serve"}},
	{"WebhookDown", []string{"failed calling webhook"}},
	{"PodSecurityRefused", []string{"violates PodSecurity"}},
	{"ResourceInvalid", []string{"cannot unmarshal", "Unsupported value: ", "Invalid value: ", "Required value"}},
	{"PolicyRefused", []string{"denied the request", "ValidatingAdmissionPolicy"}},
	{"ControllerMayNot", []string{"the controller lacks the permission", " cannot create resource "}},
	{"NameTaken", []string{"an object of that name exists and does not belong to this AppWrapper"}},
	{"StillBeingDeleted", []string{"an earlier one is still being deleted", "object is being deleted: "}},
	{"ResourceQuotaExceeded", []string{"is forbidden: exceeded quota: ", "is forbidden: failed quota: "}},
	{"ServiceAccountMissing", []string{"error looking up service account"}},
	{"PriorityClassMissing", []string{"no PriorityClass with name "}},
	{"AboveLimitRange", []string{" usage per Pod is ", " usage per Container is "}},
	{"NamespaceEnds", []string{"because it is being terminated"}},
	{"ResourceInvalid", []string{" is invalid: "}},
}

// refusal sorts what an API server says.
func refusal(message string) Code { return sorted(message, refusals, "CreationRefused") }
