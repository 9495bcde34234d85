// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"errors"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// User is the name that the API server has for whoever asks.
func User(ctx context.Context, c client.Client) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return "", Failed(err, Request{Verb: "create", Resource: "selfsubjectreviews"})
	}
	if review.Status.UserInfo.Username == "" {
		return "", errors.New("the cluster does not say who you are: leave --me out, and choose with --selector")
	}
	return review.Status.UserInfo.Username, nil
}
