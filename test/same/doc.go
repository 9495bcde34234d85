// SPDX-License-Identifier: Apache-2.0

// Package same runs objects twice on one simulated cluster, under the real operators: bare, in a namespace of an
// administrator, and wrapped in an AppWrapper, in a namespace of a team. The same has to happen both times, except for
// what transcript/allowed.go lists. So the judge is not what somebody here has thought of, but what the operators do.
package same
