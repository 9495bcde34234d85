// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package simulated_test

import (
	"slices"
	"testing"

	"github.com/mlbatch/mlbatch/test/auditlog"
	"github.com/mlbatch/mlbatch/tools/localcluster/platform"
)

type asked = auditlog.Request

// audit reads the audit log, or ends the test.
type audit struct {
	*testing.T
	log *auditlog.Log
}

func (p person) audit(t *testing.T) *audit { return &audit{T: t, log: auditlog.Of(p.dir())} }

// news returns the requests that were logged since the last call.
func (a *audit) news() []asked {
	a.Helper()
	news, err := a.log.News()
	if err != nil {
		a.Fatal(err)
	}
	return news
}

// ours returns the requests of our controller of AppWrappers.
func (a *audit) ours() []asked {
	a.Helper()
	return a.of("appwrapper-controller-manager")
}

// of returns the requests of a service account of the platform.
func (a *audit) of(account string) []asked {
	a.Helper()
	return slices.DeleteFunc(a.news(), func(r asked) bool { return r.Account(platform.Namespace) != account })
}

// allowed reports whether a request is acceptable while nothing happens: watches expire and are
// reopened, and clients that scrape metrics are authorized.
func allowed(e asked) bool {
	switch e.ObjectRef.Resource {
	case "tokenreviews", "subjectaccessreviews":
		return true
	}
	return e.Verb == "watch"
}
