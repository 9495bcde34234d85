// SPDX-License-Identifier: Apache-2.0

package podlogs

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Open opens the log of a container, as the Kubernetes API does.
type Open func(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error)

// All copies one log after the other or, if they are followed, all at once. Each line begins with the number of
// its worker, or else with the name of its pod.
func All(ctx context.Context, open Open, pods []Pod, follow bool, out io.Writer) error {
	return Labelled(ctx, open, pods, follow, out, func(p Pod) string { return cmp.Or(p.Number(), p.Name) })
}

// Labelled is All with other labels.
func Labelled(ctx context.Context, open Open, pods []Pod, follow bool, out io.Writer, label func(Pod) string) error {
	lines := printing.NewLines(out)
	failures := make([]error, len(pods))
	var all sync.WaitGroup
	for i, pod := range pods {
		do := func() {
			failures[i] = pod.copyLog(ctx, open, follow, func(log io.Reader) error { return copyLines(lines, label(pod), log) })
		}
		if !follow {
			do()
			continue
		}
		all.Go(do)
	}
	all.Wait()
	return printing.JoinErrors(failures)
}

// defaultContainer is the annotation with which a pod says which container matters.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// Container is the pod's default container, or else its first, which is the program's.
func Container(pod corev1.Pod) string {
	return cmp.Or(pod.Annotations[defaultContainer], pod.Spec.Containers[0].Name)
}

// Log copies the log of the pod's default container, or else of its first, which is the program's.
func (p Pod) Log(ctx context.Context, open Open, follow bool, out io.Writer) error {
	return p.copyLog(ctx, open, follow, func(log io.Reader) error { _, err := io.Copy(out, log); return err })
}

func (p Pod) copyLog(ctx context.Context, open Open, follow bool, write func(io.Reader) error) error {
	log, err := p.open(ctx, open, follow, false)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := write(log); err != nil {
		return brokeOff(p, err)
	}
	return nil
}

func (p Pod) open(ctx context.Context, open Open, follow, timestamps bool) (io.ReadCloser, error) {
	log, err := open(ctx, p.Stored.Namespace, p.Name, &corev1.PodLogOptions{Container: Container(p.Stored), Follow: follow, Timestamps: timestamps})
	if err != nil {
		return nil, fmt.Errorf("cannot read the log of pod %s, which is %s: %w", p.Name, p.State, printing.OneLineError(err))
	}
	return log, nil
}

func brokeOff(p Pod, err error) error {
	return fmt.Errorf("the log of pod %s broke off: %w", p.Name, printing.OneLineError(err))
}

func copyLines(to *printing.Lines, label string, log io.Reader) error {
	for reader := bufio.NewReader(log); ; {
		line, err := reader.ReadString('\n')
		if line != "" {
			to.Printf("[%s] %s", label, strings.TrimSuffix(line, "\n"))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
