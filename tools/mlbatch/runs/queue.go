// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mlbatch/mlbatch/controller/api/codeflare/v1alpha1"
	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/runplan"
	"github.com/mlbatch/mlbatch/tools/mlbatch/printing"
)

// Forward makes a port of a pod reachable at a local address, until stop is called.
type Forward func(ctx context.Context, namespace, pod string, port int) (address string, stop func(), err error)

// Queue is the work queue of a Run that runs.
type Queue struct {
	run  string
	base string
	// Close ends the connection.
	Close func()
}

// OpenQueue connects to the broker of a Run.
func OpenQueue(ctx context.Context, c client.Reader, forward Forward, key client.ObjectKey) (*Queue, error) {
	run, err := get(ctx, c, key)
	if err != nil {
		return nil, err
	}
	if !runplan.HasQueue(run) {
		return nil, fmt.Errorf("%s %s has no queue: only those of api workqueue have one", v1alpha1.RunKind, run.Name)
	}
	if run.Status.Phase.Terminal() {
		return nil, fmt.Errorf("%s %s is %s: its queue answers only while it runs, and its results are in outbox of DataSet %s",
			v1alpha1.RunKind, run.Name, run.Status.Phase, run.Spec.Queue.DataSet.Name)
	}
	pods, err := podsOf(ctx, c, run)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if pod.Role != runplan.BrokerRole || pod.Stored.Status.Phase != corev1.PodRunning || pod.Stored.DeletionTimestamp != nil {
			continue
		}
		address, stop, err := forward(ctx, run.Namespace, pod.Name, queue.Port)
		if err != nil {
			return nil, fmt.Errorf("cannot connect to the queue in pod %s: %w", pod.Name, printing.OneLineError(err))
		}
		return &Queue{run: run.Name, base: "http://" + address, Close: stop}, nil
	}
	return nil, fmt.Errorf("%s %s is %s: its queue answers when it runs", v1alpha1.RunKind, run.Name, phaseOf(run))
}

// Add makes a task of each file, which has the file's name.
func (q *Queue) Add(ctx context.Context, files []string, out io.Writer) error {
	if err := checkTasks(files); err != nil {
		return err
	}
	for _, file := range files {
		if err := q.addFile(ctx, file); err != nil {
			return err
		}
		fmt.Fprintf(out, "task %s was added to Run %s\n", printing.OneLine(filepath.Base(file)), q.run)
	}
	return nil
}

// checkTasks refuses what cannot become tasks, before one of them does.
func checkTasks(files []string) error {
	named := map[string]string{}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return fmt.Errorf("cannot read the task: %w", err)
		}
		name := filepath.Base(file)
		other, there := named[name]
		switch {
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is no file: name the files of the tasks", file)
		case info.Size() > queue.MaxBytes:
			return fmt.Errorf("%s is larger than %d MiB: a task has at most that", file, queue.MaxBytes>>20)
		case there:
			return fmt.Errorf("%s and %s would both be task %s: rename one", other, file, printing.OneLine(name))
		}
		named[name] = file
	}
	return nil
}

func (q *Queue) addFile(ctx context.Context, file string) error {
	content, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("cannot read the task: %w", err)
	}
	defer content.Close()
	info, err := content.Stat()
	if err != nil {
		return fmt.Errorf("cannot read the task: %w", err)
	}
	var task io.Reader = content
	if info.Size() == 0 {
		task = http.NoBody // Of another body, 0 would mean that nobody knows its length.
	}
	body, err := q.ask(ctx, http.MethodPost, queue.TasksPath+url.PathEscape(filepath.Base(file)), task, info.Size())
	if err != nil {
		return fmt.Errorf("cannot add task %s: %w", printing.OneLine(filepath.Base(file)), err)
	}
	return body.Close()
}

// Drain says that no more tasks will come.
func (q *Queue) Drain(ctx context.Context, out io.Writer) error {
	body, err := q.ask(ctx, http.MethodPost, queue.DrainPath, nil, 0)
	if err != nil {
		return fmt.Errorf("cannot drain the queue of Run %s: %w", q.run, err)
	}
	fmt.Fprintf(out, "the queue of Run %s takes no more tasks: the Run ends when all have ended\n", q.run)
	return body.Close()
}

// Stat asks how far the queue is.
func (q *Queue) Stat(ctx context.Context) (stat queue.Stat, err error) {
	body, err := q.ask(ctx, http.MethodGet, queue.StatPath, nil, 0)
	if err != nil {
		return stat, fmt.Errorf("cannot ask the queue of Run %s: %w", q.run, err)
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&stat); err != nil {
		return stat, fmt.Errorf("the queue of Run %s says something else than its tasks: is this mlbatch of another version? %w", q.run, err)
	}
	return stat, nil
}

// longestRefusal is how much is read of what a broker says.
const longestRefusal = 1024

func (q *Queue) ask(ctx context.Context, method, path string, content io.Reader, size int64) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, q.base+path, content)
	if err != nil {
		return nil, err
	}
	request.ContentLength = size
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the broker does not answer: try again: %w", err)
	}
	if answer.StatusCode < http.StatusMultipleChoices {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	words, _ := io.ReadAll(io.LimitReader(answer.Body, longestRefusal)) // what arrives tells enough
	return nil, fmt.Errorf("%s", cmp.Or(printing.OneLine(strings.TrimSpace(string(words))), answer.Status))
}

// WriteQueue prints the counts of a queue, and the tasks that were given up or are being worked on.
func WriteQueue(out io.Writer, stat queue.Stat) error {
	fmt.Fprintf(out, "%d pending, %d leased, %d done, %d dead", stat.Pending, stat.Leased, stat.Done, stat.Dead)
	switch {
	case stat.Closed:
		fmt.Fprint(out, "; all have ended")
	case stat.Open && !stat.Drained:
		fmt.Fprint(out, "; open for more")
	}
	fmt.Fprintln(out)
	table := [][]string{{"TASK", "STATE", "FAILED TRIES", "EXIT CODE", "WORKER"}}
	for _, task := range stat.Tasks {
		if task.State != queue.Dead && task.State != queue.Leased {
			continue
		}
		code := ""
		if task.Code != 0 {
			code = strconv.Itoa(task.Code)
		}
		table = append(table, []string{task.Name, task.State, strconv.Itoa(task.Attempts), code, task.Worker})
	}
	if len(table) == 1 {
		return nil
	}
	return printing.Table(out, table)
}

// QueueAnswer is what programs get of a queue.
type QueueAnswer struct {
	Pending int `json:"pending"`
	Leased  int `json:"leased"`
	Done    int `json:"done"`
	Dead    int `json:"dead"`
	// Open means that tasks can be added; Drained, that no more are; Closed, that all have ended.
	Open    bool `json:"open"`
	Drained bool `json:"drained"`
	Closed  bool `json:"closed"`
	// Items are the tasks: dead ones first, then leased, pending and done ones. More means that there are others.
	Items []queue.Task `json:"items"`
	More  bool         `json:"more,omitempty"`
}

// ForPrograms is the answer about a queue.
func ForPrograms(s queue.Stat) QueueAnswer {
	return QueueAnswer{s.Pending, s.Leased, s.Done, s.Dead, s.Open, s.Drained, s.Closed, append([]queue.Task{}, s.Tasks...), s.More}
}
