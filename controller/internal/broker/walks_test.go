// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mlbatch/mlbatch/controller/api/queue"
	"github.com/mlbatch/mlbatch/controller/internal/taskqueue"
	"github.com/mlbatch/mlbatch/controller/internal/taskstore"
)

var (
	walkCount = flag.Int("queue.walks", 300, "how many random walks of work queues")
	walkSeed  = flag.Uint64("queue.seed", 0, "the first seed (0 is another one each time, or always the same where CI is set)")
)

// TestWalks lets brokers and workers live at random over each store, whose calls fail, come late or
// lose their answers, while processes are killed and clocks jump. What must hold is in judge.
func TestWalks(t *testing.T) {
	first := *walkSeed
	if first == 0 {
		first = 20261121
		if os.Getenv("CI") == "" {
			first = rand.Uint64() >> 1
		}
	}
	kinds := slices.Sorted(maps.Keys(stores))
	seen := map[string]int{}
	for i := range uint64(*walkCount) {
		kind := kinds[int(i)%len(kinds)]
		w := newWalk(t, stores[kind](t, first+i), first+i)
		if err := w.run(); err != nil {
			t.Fatalf("walk -queue.seed=%d -queue.walks=1 over %s: %v\n%s", first+i, kind, err, strings.Join(w.story, "\n"))
		}
		seen[kind]++
		for what, count := range w.seen {
			seen[what] += count
		}
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%8d %s", seen[what], what)
	}
}

// A walk that failed goes the same way again with its seed.
func TestAWalkIsTheSameAgain(t *testing.T) {
	for kind, empty := range stores {
		for seed := range uint64(5) {
			var stories [2]string
			for i := range stories {
				w := newWalk(t, empty(t, seed), seed)
				if err := w.run(); err != nil {
					t.Fatal(err)
				}
				stories[i] = strings.Join(w.story, "\n")
			}
			if diff := cmp.Diff(stories[0], stories[1]); diff != "" {
				t.Fatalf("%s with seed %d\n%s", kind, seed, diff)
			}
		}
	}
}

// stores are empty ones. The folder and the bucket are real but for power and the network.
var stores = map[string]func(t *testing.T, seed uint64) taskstore.Objects{
	"walks over memory": func(*testing.T, uint64) taskstore.Objects { return newMemory() },
	"walks over a folder": func(t *testing.T, _ uint64) taskstore.Objects {
		folder, err := os.MkdirTemp(memoryFolder(t), "walk-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(folder) })
		opened, err := taskstore.OpenFolder(folder)
		if err != nil {
			t.Fatal(err)
		}
		opened.Relaxed = true
		return opened
	},
	"walks over a bucket": func(t *testing.T, _ uint64) taskstore.Objects {
		bucket, err := taskstore.OpenBucket(taskstore.Access{
			Endpoint: "http://s3.invalid", Name: "bucket", Prefix: "p/", Region: "r", AccessKeyID: "k", SecretAccessKey: "s", Transport: newServer(),
		})
		if err != nil {
			t.Fatal(err)
		}
		return bucket
	},
}

// memoryFolder is where files cost no disk.
func memoryFolder(t *testing.T) string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return t.TempDir()
}

// walk is one life of a queue, until it is closed.
type walk struct {
	rand     *rand.Rand
	objects  taskstore.Objects
	now      time.Time
	settings taskqueue.Settings
	inbox    map[string]bool
	// adding are tasks that people have added, and what they were told.
	adding  map[string]*answer
	brokers []*life
	workers []*actor
	// calm is whether nothing fails any more, so that the walk ends.
	calm bool
	// accepted has what was in done/T when it was first seen; bad counts attempts that ended badly.
	accepted map[string]string
	// attempts has what became of tokens.
	attempts map[string]bool
	story    []string
	seen     map[string]int
}

// life is a broker.
type life struct {
	store *taskstore.Store
	state taskqueue.State
	epoch int
	// began is when, asleep until when it neither hears nor writes.
	began, asleep time.Time
	writing       []*writing
}

// writing is an operation of which each write happens by itself.
type writing struct {
	progress progress
	answer   *answer
}

// answer is what a worker waits for.
type answer struct {
	code int
	body any
	lost bool
}

// actor is a worker.
type actor struct {
	name  string
	lease *queue.Lease
	// result is what the program writes; empty if it fails.
	result          string
	stored          bool
	busyUntil, gone time.Time
	renewed         time.Time
	waits           *answer
	asked           string
}

const maxAttempts = 3

func newWalk(t *testing.T, objects taskstore.Objects, seed uint64) *walk {
	w := &walk{
		rand: rand.New(rand.NewPCG(seed, 1)), objects: objects, now: time.Unix(1_800_000_000, 0),
		settings: taskqueue.Settings{Lease: 30 * time.Second, MaxAttempts: maxAttempts},
		inbox:    map[string]bool{}, adding: map[string]*answer{}, accepted: map[string]string{}, attempts: map[string]bool{}, seen: map[string]int{},
	}
	w.settings.Open = w.rand.IntN(4) == 0
	for i := range w.rand.IntN(8) {
		name := []string{"a", "b/c", "d e", "ü", "..x", "f%2Fg", "h?i#j", "k\\l"}[i]
		w.inbox[name] = true
		if _, err := objects.Create(t.Context(), "inbox/"+name, strings.NewReader(name), int64(len(name))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		w.workers = append(w.workers, &actor{name: fmt.Sprint("w", i)})
	}
	return w
}

func (w *walk) note(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%7.1fs ", w.now.Sub(time.Unix(1_800_000_000, 0)).Seconds())+fmt.Sprintf(format, args...))
}

// run takes random steps: at first anything happens, in the end only what has to.
func (w *walk) run() error {
	for step := range 6000 {
		w.calm = step > 300
		w.now = w.now.Add(time.Duration(w.rand.IntN(3000)) * time.Millisecond)
		if err := w.step(); err != nil {
			return err
		}
		if err := w.unchanged(step); err != nil {
			return err
		}
		if w.closed() {
			return w.judge()
		}
	}
	return errors.New("the queue does not close")
}

// closed is whether the last broker says so. One before it may have closed while the last one was
// given another task.
func (w *walk) closed() bool {
	if len(w.brokers) == 0 {
		return false
	}
	last := w.brokers[len(w.brokers)-1]
	said := &answer{}
	w.ask(last, taskqueue.Stat{}, said)
	return said.body.(queue.Stat).Closed
}

func (w *walk) own(name string) string { return path.Join(".mlbatch-queue/r-u", name) }

func (w *walk) step() error {
	if len(w.brokers) == 0 || !w.calm && len(w.brokers) == 1 && w.rand.IntN(60) == 0 {
		return w.start()
	}
	at := w.rand.IntN(len(w.brokers))
	b := w.brokers[at]
	if !w.calm {
		switch w.rand.IntN(80) {
		case 0:
			w.note("broker %d is killed", b.epoch)
			w.seen["brokers killed"]++
			w.end(at)
			return nil
		case 1:
			w.seen["brokers that slept"]++
			b.asleep = w.now.Add(time.Duration(w.rand.IntN(300)) * time.Second)
		case 2:
			w.seen["clocks that jumped"]++
			w.now = w.now.Add(time.Duration(w.rand.IntN(7200)-600) * time.Second)
		}
	}
	for _, other := range w.brokers {
		if other.asleep.Before(w.now) {
			w.ask(other, taskqueue.Tick{}, nil)
		}
	}
	if w.calm && len(w.brokers) > 1 { // The older one sees it at last.
		w.end(0)
		return nil
	}
	if b.asleep.After(w.now) {
		return nil
	}
	if len(b.writing) > 0 && w.rand.IntN(3) > 0 {
		w.write(at)
		return nil
	}
	if w.settings.Open && w.rand.IntN(20) == 0 {
		w.people(b)
	}
	return w.work(b, w.workers[w.rand.IntN(len(w.workers))])
}

// start begins a life of a broker, which may fail at any write.
func (w *walk) start() error {
	store, err := taskstore.New(newWeather(w), taskstore.Place{Run: "r", UID: "u", Inbox: "inbox", Outbox: "outbox"})
	if err != nil {
		return err
	}
	if store.Probe(context.Background()) != nil {
		return nil
	}
	record, err := store.Load(context.Background())
	if err != nil {
		return nil //nolint:nilerr // It is started again.
	}
	state, operations := taskqueue.New(w.settings, record, w.now)
	b := &life{store: store, state: state, epoch: record.Epoch, began: w.now}
	w.note("broker %d begins", b.epoch)
	w.seen["brokers"]++
	w.brokers = append(w.brokers, b)
	b.begin(operations, nil)
	return nil
}

func (b *life) begin(operations []taskqueue.Operation, first *answer) {
	for _, operation := range operations {
		b.writing = append(b.writing, &writing{progress{operation: operation}, first})
		first = nil
	}
}

// end is that of a broker. Its answers never come.
func (w *walk) end(at int) {
	for _, o := range w.brokers[at].writing {
		if o.answer != nil {
			o.answer.lost = true
		}
	}
	w.brokers = slices.Delete(w.brokers, at, at+1)
}

func (w *walk) ask(b *life, request taskqueue.Request, to *answer) {
	operations, said, next := taskqueue.Step(b.state, request, w.now)
	b.state = next
	if said.Code == 0 {
		b.begin(operations, to)
		return
	}
	if to != nil {
		to.code, to.body = said.Code, said.Body
	}
	b.begin(operations, nil)
}

// write makes one write of one operation.
func (w *walk) write(at int) {
	b := w.brokers[at]
	i := w.rand.IntN(len(b.writing))
	o := b.writing[i]
	kind := o.progress.operation.Writes[o.progress.next].Kind
	err := o.progress.advance(context.Background(), b.store, b.epoch)
	if errors.Is(err, ErrReplaced) {
		w.note("broker %d sees a later one", b.epoch)
		w.seen["brokers replaced"]++
		w.end(at)
		return
	}
	if err != nil {
		w.seen["writes that failed"]++
		return
	}
	w.note("broker %d has made write %d of %q", b.epoch, kind, o.progress.operation.Writes[0].Task)
	if o.progress.finished() {
		b.writing = slices.Delete(b.writing, i, i+1)
		w.ask(b, o.progress.written(), o.answer)
	}
}

// people add tasks to an open queue, and drain it in the end.
func (w *walk) people(b *life) {
	if w.calm || w.rand.IntN(6) == 0 {
		w.ask(b, taskqueue.Drain{}, nil)
		return
	}
	name := fmt.Sprint("new ", len(w.adding))
	said := &answer{}
	w.ask(b, taskqueue.Add{Task: name}, said)
	if said.code != taskqueue.OK {
		return
	}
	_, err := b.store.Add(context.Background(), name, strings.NewReader(name), int64(len(name)))
	w.adding[name] = &answer{}
	w.ask(b, taskqueue.Added{Task: name, Written: err == nil}, w.adding[name])
	if err != nil {
		w.adding[name].lost = true
	}
}

// work is the next thing that a worker does.
func (w *walk) work(b *life, a *actor) error {
	if !w.calm && w.rand.IntN(60) == 0 {
		w.note("%s is killed", a.name)
		w.seen["workers killed"]++
		*a = actor{name: a.name, gone: w.now.Add(time.Duration(w.rand.IntN(60)) * time.Second)}
	}
	if w.now.Before(a.gone) {
		return nil
	}
	if a.waits != nil {
		if a.waits.code == 0 && !a.waits.lost {
			return nil
		}
		return w.heard(b, a)
	}
	switch {
	case a.lease == nil:
		w.send(b, a, "lease", taskqueue.Lease{Worker: a.name})
	case w.now.Sub(a.renewed) > 10*time.Second:
		w.send(b, a, "renew", taskqueue.Renew(w.report(a)))
	case w.now.Before(a.busyUntil):
	case w.rand.IntN(30) == 0 && !w.calm:
		w.send(b, a, "release", taskqueue.Release(w.report(a)))
	case a.result == "":
		w.send(b, a, "failed", taskqueue.Failure(w.report(a)))
	case !a.stored:
		w.send(b, a, "result", taskqueue.Result(w.report(a)))
	default:
		w.send(b, a, "done", taskqueue.Success(w.report(a)))
	}
	return nil
}

func (w *walk) report(a *actor) queue.Report {
	return queue.Report{Task: a.lease.Task, Token: a.lease.Token, Worker: a.name, Log: &queue.Log{Worker: a.name, Code: 1}}
}

// send asks a broker. The answer of an idempotent request may be lost.
func (w *walk) send(b *life, a *actor, asked string, request taskqueue.Request) {
	a.asked, a.waits = asked, &answer{}
	w.ask(b, request, a.waits)
	if !w.calm && w.rand.IntN(15) == 0 {
		w.seen["answers lost"]++
		a.waits.lost = true
	}
}

// heard is what a worker does about an answer.
func (w *walk) heard(b *life, a *actor) error {
	said := *a.waits
	a.waits = nil
	if said.lost || said.code == taskqueue.Later {
		return nil
	}
	w.note("%s asked %s: %d %v", a.name, a.asked, said.code, said.body)
	switch {
	case a.asked == "lease" && said.code == taskqueue.OK:
		return w.leased(b, a, said.body.(queue.Lease))
	case a.asked == "lease":
		return nil
	case a.asked == "renew" && said.code == taskqueue.OK:
		a.renewed = w.now
	case a.asked == "result" && said.code == taskqueue.OK:
		body := strings.NewReader(a.result)
		a.stored = b.store.PutResult(context.Background(), a.lease.Task, a.lease.Token, body, int64(body.Len())) == nil
	default:
		if a.asked == "failed" && said.code == taskqueue.OK {
			w.seen["attempts that failed"]++
		}
		a.lease = nil
	}
	return nil
}

func (w *walk) leased(b *life, a *actor, lease queue.Lease) error {
	if b.epoch > 1 && w.attempts[lease.Token] {
		return fmt.Errorf("token %s was leased twice", lease.Token)
	}
	w.attempts[lease.Token] = true
	w.seen["leases"]++
	*a = actor{name: a.name, lease: &lease, renewed: w.now, busyUntil: w.now.Add(time.Duration(w.rand.IntN(60)) * time.Second)}
	if w.rand.IntN(4) > 0 {
		a.result = "result of " + lease.Task + " by " + lease.Token
	}
	return nil
}

// unchanged looks whether what was accepted is still what is accepted.
func (w *walk) unchanged(step int) error {
	if step%10 > 0 {
		return nil
	}
	for name := range w.inbox {
		token, err := read(w.objects, w.own("done/"+taskqueue.Key(name)))
		if errors.Is(err, fs.ErrNotExist) {
			token, err = "", nil
		}
		if err != nil {
			return err
		}
		if before := w.accepted[name]; before != "" && before != token {
			return fmt.Errorf("the accepted result of %q was that of %s, and is that of %q", name, before, token)
		}
		w.accepted[name] = token
		if _, err := read(w.objects, "outbox/"+taskqueue.Key(name)); err == nil && token == "" {
			return fmt.Errorf("the outbox has a result of %q, and none is accepted", name)
		}
	}
	return nil
}

// judge looks at a closed queue.
func (w *walk) judge() error {
	for name, said := range w.adding {
		if said.code == taskqueue.OK && !said.lost {
			w.inbox[name] = true
		}
	}
	if len(w.brokers) > 0 { // What the other broker has begun ends with it.
		w.brokers = nil
	}
	if err := w.finish(); err != nil {
		return err
	}
	for name := range w.inbox {
		if err := w.judgeTask(name); err != nil {
			return err
		}
	}
	return nil
}

// finish is a last life: the outbox is completed by the record.
func (w *walk) finish() error {
	w.calm = true
	for len(w.brokers) == 0 {
		if err := w.start(); err != nil {
			return err
		}
	}
	for b := w.brokers[0]; len(b.writing) > 0; {
		w.write(0)
	}
	return nil
}

func (w *walk) judgeTask(name string) error {
	key := taskqueue.Key(name)
	token, err := read(w.objects, w.own("done/"+key))
	if errors.Is(err, fs.ErrNotExist) {
		w.seen["tasks dead"]++
		return w.judgeDead(name)
	}
	if err != nil {
		return err
	}
	w.seen["tasks done"]++
	result, err := read(w.objects, w.own("results/"+key+"/"+token+"/output"))
	if want := "result of " + name + " by " + token; err != nil || result != want {
		return fmt.Errorf("the accepted result of %q is %q: %w", name, result, err)
	}
	if out, err := read(w.objects, "outbox/"+key); err != nil || out != result {
		return fmt.Errorf("the outbox has %q of %q, and %q was accepted: %w", out, name, result, err)
	}
	return nil
}

func (w *walk) judgeDead(name string) error {
	if dead, err := exists(w.objects, w.own("dead/"+taskqueue.Key(name))); !dead || err != nil {
		return fmt.Errorf("the queue is closed, and %q is neither done nor dead: %w", name, err)
	}
	tries := 0
	err := w.objects.List(context.Background(), w.own("tries/"+taskqueue.Key(name)), func(string, int64) { tries++ })
	if err != nil || tries < maxAttempts {
		return fmt.Errorf("%q is dead after %d tries: %w", name, tries, err)
	}
	return nil
}

func read(objects taskstore.Objects, key string) (string, error) {
	body, _, err := objects.Open(context.Background(), key)
	if err != nil {
		return "", err
	}
	defer body.Close()
	all, err := io.ReadAll(body)
	return string(all), err
}

func exists(objects taskstore.Objects, key string) (bool, error) {
	_, err := read(objects, key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
