// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// window is the time that is asked about. Its start is zero if all is.
type window struct{ start, now time.Time }

// has: the books have time in the window. Without quota, they end when it was given back.
func (w window) has(s v1beta2.AppWrapperStatus) bool {
	return s.Usage != nil && (holdsQuota(s) || !s.Usage.At.Time.Before(w.start))
}

// since are the seconds in the window since an AppWrapper got the quota that it has now.
func (w window) since(s v1beta2.AppWrapperStatus) int64 {
	if !holdsQuota(s) {
		return 0
	}
	got := meta.FindStatusCondition(s.Conditions, string(v1beta2.QuotaReserved)).LastTransitionTime.Time
	return max(0, seconds(w.now.Sub(later(got, w.start))))
}

// earlier is how many of the other seconds may be from before the window, at most. The books are sums, so it is not
// known how many are. None is from before the AppWrapper was created.
func (w window) earlier(aw *v1beta2.AppWrapper, others int64) int64 {
	return max(0, min(others, seconds(w.start.Sub(aw.CreationTimestamp.Time))))
}

func holdsQuota(s v1beta2.AppWrapperStatus) bool {
	return meta.IsStatusConditionTrue(s.Conditions, string(v1beta2.QuotaReserved))
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
