// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/prometheus"
	"github.com/mlbatch/mlbatch/tools/mlbatch/answers/usage"
	"github.com/mlbatch/mlbatch/tools/mlbatch/clusterstate"
)

func usageCommand() *cobra.Command {
	var where runNamespace
	var q usage.Query
	var server prometheus.Server
	var o output
	cmd := &cobra.Command{
		Use:     "usage",
		Example: "  mlbatch usage --since 7d --by user\n  mlbatch usage --by cause -o csv",
		Short:   "Say how many GPU-hours were reserved, for whom, and what they were used for",
		Long: "Add up the books of the AppWrappers that exist: the hours for which quota was reserved, times the devices that\n" +
			"their pods request, and what they were used for (docs/fault-tolerance.md describes the classes). Without devices,\n" +
			"cores count. The sum is compared with Kueue's Workloads. Who may not list AppWrappers of all namespaces gets those\n" +
			"of one. With --prometheus, add up the counters of the controller instead, so that AppWrappers that are deleted\n" +
			"count, too.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if known := usage.Dimensions(); !slices.Contains(known, q.By) {
				last := len(known) - 1
				return fmt.Errorf("unknown --by %q: use %s or %s", q.By, strings.Join(known[:last], ", "), known[last])
			}
			if server != (prometheus.Server{}) {
				return printCounters(cmd, server, q, o, where.name)
			}
			c, own, err := where.connectReader(cmd)
			if err != nil {
				return err
			}
			return printUsage(cmd, c, q, o, where.name, own)
		},
	}
	flags := cmd.Flags()
	where.bind(flags, "count this namespace only (default: all, or the one in the context)")
	flags.Var((*span)(&q.Since), "since", "leave out AppWrappers that have had no quota for so long, such as 12h or 7d (default: count all)")
	flags.StringVar(&q.By, "by", "team", "what the rows are about: "+strings.Join(usage.Dimensions(), ", "))
	flags.StringVar(&q.Resource, "resource", "", "count this resource, such as memory (default: devices, or else cores)")
	o.bindTable(flags, "csv")
	bindPrometheus(flags, &server)
	return cmd
}

func bindPrometheus(flags *pflag.FlagSet, server *prometheus.Server) {
	flags.StringVar(&server.URL, "prometheus", "", "add up what this Prometheus has since --since, by team or cause, such as https://prometheus.example.com")
	flags.StringVar(&server.TokenFile, "prometheus-token-file", "", "file with a bearer token for --prometheus")
	flags.StringVar(&server.CAFile, "prometheus-ca-file", "", "file with the certificates that sign that of --prometheus (default: those of the system)")
}

func printCounters(cmd *cobra.Command, server prometheus.Server, q usage.Query, o output, namespace string) error {
	query, err := usage.Counters(q, namespace)
	if err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Second)
	samples, warnings, err := server.Ask(cmd.Context(), query, now)
	if err != nil {
		return err
	}
	found, err := increases(samples)
	if err != nil {
		return err
	}
	report := usage.Add(found, q, now)
	var notes []string
	for _, warning := range warnings {
		notes = append(notes, "Prometheus warns, so hours may be missing: "+warning)
	}
	report.Notes = slices.Concat(notes, report.Notes)
	return printReport(cmd, report, o, namespace)
}

func increases(samples model.Vector) ([]usage.Increase, error) {
	var all []usage.Increase
	for _, s := range samples {
		seconds := float64(s.Value)
		if s.Histogram != nil || math.IsNaN(seconds) || math.IsInf(seconds, 0) {
			return nil, fmt.Errorf("cannot read the answer of Prometheus about %v: it is no number", s)
		}
		all = append(all, usage.Increase{
			Team: string(s.Metric["namespace"]), Resource: string(s.Metric["resource"]), Class: string(s.Metric["class"]), Seconds: seconds,
		})
	}
	return all, nil
}

func printUsage(cmd *cobra.Command, c client.Reader, q usage.Query, o output, namespace, own string) error {
	objects, err := clusterstate.Usage(cmd.Context(), c, namespace, own)
	if err != nil {
		return err
	}
	return printReport(cmd, usage.Count(objects, q, time.Now().UTC().Truncate(time.Second)), o, objects.Namespace)
}

func printReport(cmd *cobra.Command, report usage.Report, o output, namespace string) (err error) {
	out, notes := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if o.format == "csv" {
		err = report.WriteCSV(out)
	} else {
		err = o.print(out, "Usage", report, func() error { return report.WriteTable(out) })
	}
	if len(report.Rows) == 0 {
		fmt.Fprintln(notes, "there is nothing to count in", cmp.Or(namespace, "any namespace"))
	}
	printNotes(notes, report.Notes)
	return err
}

// span is a duration that may have days.
type span time.Duration

func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

func (s *span) Type() string { return "duration" }

func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if days, whole := strings.CutSuffix(text, "d"); whole {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d <= 0 {
		return errors.New("write a time that is longer than 0, such as 12h or 7d")
	}
	*s = span(d)
	return nil
}
