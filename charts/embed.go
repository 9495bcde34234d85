// SPDX-License-Identifier: Apache-2.0

// Package charts has the chart of the teams, so that mlbatch can ask it about a file without a cluster.
package charts

import "embed"

// Teams has the folder teams.
//
//go:embed all:teams
var Teams embed.FS
