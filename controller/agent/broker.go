// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/internal/broker"
	"github.com/mlbatch/mlbatch/controller/internal/fetch"
	"github.com/mlbatch/mlbatch/controller/internal/taskqueue"
	"github.com/mlbatch/mlbatch/controller/internal/taskstore"
)

// brokering is how the broker was called.
type brokering struct {
	listen, folder string
	place          taskstore.Place
	bucket         taskstore.Access
	settings       broker.Settings
}

// brokerCommand hands out the tasks of a work queue.
func brokerCommand() *cobra.Command {
	var b brokering
	command := &cobra.Command{
		Use:   "broker",
		Short: "Hand out the tasks of a work queue, and accept one result for each",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return b.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&b.listen, "listen", fmt.Sprintf(":%d", queue.Port), "where to listen")
	flags.StringVar(&b.place.Run, "run", "", "name of the Run")
	flags.StringVar(&b.place.UID, "uid", "", "first digits of its UID")
	flags.StringVar(&b.place.Inbox, "inbox", "inbox", "folder of the tasks")
	flags.StringVar(&b.place.Outbox, "outbox", "outbox", "folder for results")
	flags.DurationVar(&b.settings.Lease, "lease", 30*time.Second, "how long a worker may be silent")
	flags.IntVar(&b.settings.MaxAttempts, "max-attempts", 3, "how many attempts of a task may end badly")
	flags.DurationVar(&b.settings.Timeout, "task-timeout", 0, "how long a task may take (0 is any time)")
	flags.IntVar(&b.settings.MaxFailed, "max-failed", 0, "how many tasks may fail for good")
	flags.BoolVar(&b.settings.Open, "open", false, "take more tasks until the queue is drained")
	flags.StringVar(&b.folder, "folder", "", "folder of the store")
	flags.StringVar(&b.bucket.Name, "bucket", "", "bucket of the store")
	flags.StringVar(&b.bucket.Prefix, "prefix", "", "folder of the bucket")
	flags.StringVar(&b.bucket.Endpoint, "endpoint", "", "URL of an S3 server")
	flags.StringVar(&b.bucket.Region, "region", "", "region of the bucket")
	command.MarkFlagsOneRequired("folder", "bucket")
	command.MarkFlagsMutuallyExclusive("folder", "bucket")
	return command
}

// run says in the termination message how the queue has ended.
func (b brokering) run(ctx context.Context) error {
	store, err := b.store()
	if err != nil {
		return ended(err)
	}
	life, err := broker.New(ctx, store, b.settings, os.Stderr)
	if err != nil {
		return ended(err)
	}
	listener, err := net.Listen("tcp", b.listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	end, err := life.Serve(ctx, listener)
	if err != nil {
		return ended(err)
	}
	last, err := json.Marshal(end)
	if err != nil {
		return err
	}
	if end.Message != "" {
		return exit{errors.New(string(last)), queue.ExitHopeless}
	}
	fmt.Println(string(last))
	sayLast(string(last))
	return nil
}

func (b brokering) store() (*taskstore.Store, error) {
	objects, err := b.objects()
	if err != nil {
		return nil, err
	}
	store, err := taskstore.New(objects, b.place)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", taskqueue.ErrHopeless, err)
	}
	return store, nil
}

func (b brokering) objects() (taskstore.Objects, error) {
	if b.folder != "" {
		return taskstore.OpenFolder(b.folder)
	}
	b.bucket.AccessKeyID = strings.TrimSpace(os.Getenv(accessKeyVariable))
	b.bucket.SecretAccessKey = strings.TrimSpace(os.Getenv(secretValueVariable))
	transport, err := fetch.Transport(strings.HasPrefix(b.bucket.Endpoint, "https:"), os.Getenv(authorityVariable))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", taskqueue.ErrHopeless, err)
	}
	b.bucket.Transport = transport
	return taskstore.OpenBucket(b.bucket)
}

// exit is an error with an exit code.
type exit struct {
	error
	code int
}

// ended says with which exit code a broker ends.
func ended(err error) error {
	switch {
	case errors.Is(err, taskqueue.ErrHopeless):
		return exit{err, queue.ExitHopeless}
	case errors.Is(err, broker.ErrReplaced):
		return exit{err, queue.ExitReplaced}
	}
	return err
}
