// SPDX-License-Identifier: Apache-2.0

package accessreview

import (
	"encoding/json"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Authors asks what the authors of work may do, and remembers what they may. Whoever shares it shares the answers.
type Authors struct {
	Review  Review
	MayWrap Wraps
}

// NewAuthors asks through a client.
func NewAuthors(c client.Writer) Authors {
	review := With(c)
	return Authors{Review: review.Remembering(Kept, time.Now), MayWrap: review.WrapsRemembering(Kept, time.Now)}
}

// LongestRecord bounds what is kept of a user in an object: the API server takes 256 KiB of annotations.
const LongestRecord = 128 << 10

// Record writes down what a later review goes by, beside the name and the UID of a user.
func Record(user authenticationv1.UserInfo) (string, error) {
	record, err := json.Marshal(authenticationv1.UserInfo{Groups: user.Groups, Extra: user.Extra})
	if err != nil {
		return "", fmt.Errorf("cannot record the groups of user %q: %w", user.Username, err)
	}
	return string(record), nil
}

// Recorded is the user that Record has written down.
func Recorded(name, uid, record string) (authenticationv1.UserInfo, error) {
	user := authenticationv1.UserInfo{}
	if err := json.Unmarshal([]byte(record), &user); err != nil {
		return user, fmt.Errorf("cannot read the groups of user %q: %w", name, err)
	}
	user.Username, user.UID = name, uid
	return user, nil
}
