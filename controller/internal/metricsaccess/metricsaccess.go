// SPDX-License-Identifier: Apache-2.0

// Package metricsaccess answers whether who asks for the metrics may have them: the API
// server is asked who that is, and whether a role lets them get /metrics.
// controller-runtime has a filter that does the same with the parts that an API server is
// made of; a third of our program, and of its memory, would be those
// (docs/decisions/0013-who-may-read-metrics.md).
package metricsaccess

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// patience is how long an answer of the API server may take.
const patience = 10 * time.Second

// Each scrape is two questions. Whoever asks for more keeps other scrapers waiting, and
// neither the API server nor the controller's own requests.
const questionsPerSecond, questionsAtOnce = 10, 20

// Filter lets nobody pass who has no bearer token that the API server knows, or no right.
func Filter(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst, own.RateLimiter = questionsPerSecond, questionsAtOnce, nil
	tokens, err := authentication.NewForConfigAndClient(own, client)
	if err != nil {
		return nil, err
	}
	rights, err := authorization.NewForConfigAndClient(own, client)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, metrics http.Handler) (http.Handler, error) {
		return &guard{tokens: tokens.TokenReviews(), rights: rights.SubjectAccessReviews(), log: log, metrics: metrics}, nil
	}, nil
}

type guard struct {
	tokens  authentication.TokenReviewInterface
	rights  authorization.SubjectAccessReviewInterface
	log     logr.Logger
	metrics http.Handler
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	user, err := g.user(ctx, r)
	if err != nil {
		g.cannotTell(w, err, "cannot ask the API server who wants the metrics")
		return
	}
	if user == nil {
		http.Error(w, "a bearer token of this cluster is needed", http.StatusUnauthorized)
		return
	}
	allowed, err := g.allowed(ctx, r, user)
	if err != nil {
		g.cannotTell(w, err, "cannot ask the API server who may have the metrics")
		return
	}
	if !allowed {
		http.Error(w, user.Username+" has no role that allows to "+verb(r)+" "+r.URL.Path, http.StatusForbidden)
		return
	}
	g.metrics.ServeHTTP(w, r)
}

func (g *guard) cannotTell(w http.ResponseWriter, err error, what string) {
	g.log.Error(err, what)
	http.Error(w, what, http.StatusInternalServerError)
}

// user is whose token comes with the request, nil if it is nobody's.
func (g *guard) user(ctx context.Context, r *http.Request) (*authenticationv1.UserInfo, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); token == "" || !strings.EqualFold(scheme, "Bearer") {
		return nil, nil
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review, err := g.tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		return nil, err
	}
	return &review.Status.User, nil
}

func (g *guard) allowed(ctx context.Context, r *http.Request, user *authenticationv1.UserInfo) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: verb(r)},
	}}
	review, err := g.rights.Create(ctx, review, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed, err
}

func verb(r *http.Request) string { return strings.ToLower(r.Method) }
