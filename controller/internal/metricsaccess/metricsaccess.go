// SPDX-License-Identifier: Apache-2.0

// Package metricsaccess answers whether a caller may read the metrics: it has the API server
// review the token, and whether a role lets its user get /metrics. controller-runtime's filter
// does the same with the libraries of an API server, which would be a third of our program and
// of its memory (docs/decisions/0013-who-may-read-metrics.md).
package metricsaccess

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mlbatch/mlbatch/controller/internal/accessreview"
)

// answerTimeout is how long the API server may take to answer.
const answerTimeout = 10 * time.Second

// Each scrape costs two reviews. Requests beyond these limits are refused, so that a flood
// costs the API server little.
const reviewsPerSecond, reviewBurst = 10, 20

// A token that got the metrics is known for a while. Known tokens have a limit of their own,
// which strangers cannot use up.
const (
	knownFor    = 10 * time.Minute
	knownAtOnce = 100
)

// Filter refuses requests without a valid bearer token, and users without the right.
func Filter(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter = -1, nil // limited by guard
	tokens, err := authentication.NewForConfigAndClient(own, client)
	if err != nil {
		return nil, err
	}
	rights, err := authorization.NewForConfigAndClient(own, client)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, metrics http.Handler) (http.Handler, error) {
		return &guard{
			tokens: tokens.TokenReviews(), rights: rights.SubjectAccessReviews(), log: log, metrics: metrics,
			known:   cache.NewLRUExpireCache(knownAtOnce),
			ofKnown: flowcontrol.NewTokenBucketRateLimiter(reviewsPerSecond, reviewBurst),
			ofOther: flowcontrol.NewTokenBucketRateLimiter(reviewsPerSecond, reviewBurst),
		}, nil
	}, nil
}

type guard struct {
	tokens  authentication.TokenReviewInterface
	rights  authorization.SubjectAccessReviewInterface
	log     logr.Logger
	metrics http.Handler

	known            *cache.LRUExpireCache // hashes of tokens
	ofKnown, ofOther flowcontrol.RateLimiter
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	token := bearerToken(r)
	if token == "" {
		noToken(w)
		return
	}
	if !g.mayAsk(token) {
		http.Error(w, "too many requests for the metrics: try again later", http.StatusTooManyRequests)
		return
	}
	user, err := g.user(ctx, token)
	if err != nil {
		g.cannotTell(w, err, "cannot have the API server review the token")
		return
	}
	if user == nil {
		noToken(w)
		return
	}
	allowed, err := g.allowed(ctx, r, user)
	if err != nil {
		g.cannotTell(w, err, "cannot have the API server review the right to read the metrics")
		return
	}
	if !allowed {
		http.Error(w, user.Username+" has no role that allows it to "+verb(r)+" "+r.URL.Path, http.StatusForbidden)
		return
	}
	g.known.Add(sha256.Sum256([]byte(token)), nil, knownFor)
	g.metrics.ServeHTTP(w, r)
}

func noToken(w http.ResponseWriter) {
	http.Error(w, "a bearer token of this cluster is required", http.StatusUnauthorized)
}

func (g *guard) cannotTell(w http.ResponseWriter, err error, what string) {
	g.log.Error(err, what)
	http.Error(w, what, http.StatusInternalServerError)
}

// mayAsk tells whether the limit allows another request.
func (g *guard) mayAsk(token string) bool {
	if _, known := g.known.Get(sha256.Sum256([]byte(token))); known {
		return g.ofKnown.TryAccept()
	}
	return g.ofOther.TryAccept()
}

// bearerToken is that of the request, "" if there is none.
func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// user is the owner of the token, nil if the token is not valid.
func (g *guard) user(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review, err := g.tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		return nil, err
	}
	return &review.Status.User, nil
}

func (g *guard) allowed(ctx context.Context, r *http.Request, user *authenticationv1.UserInfo) (bool, error) {
	question := accessreview.Of(*user)
	question.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: verb(r)}
	review, err := g.rights.Create(ctx, question, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed, err
}

func verb(r *http.Request) string { return strings.ToLower(r.Method) }
