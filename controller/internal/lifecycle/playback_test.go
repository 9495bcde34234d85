// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
)

// A playback serves histories as an API server does: list and watch. What it lets happen, clients see as far as they
// ask for it in time.
type playback struct {
	mu      sync.Mutex
	changed *sync.Cond
	random  *rand.Rand
	// rough means that events are lost, come twice, and come once more when the AppWrapper has ended.
	rough bool

	lives   []*played
	version int
	log     []happened // version n is at n-1
	caught  int        // the version that the client has
}

// played is how far a history is.
type played struct {
	*history
	uid, name string
	at        int // the point, -1 before its creation
}

// happened is what a version changed.
type happened struct {
	life *played
	at   int
}

func newPlayback(rough bool, histories []*history) *playback {
	p := &playback{rough: rough, caught: -1, random: rand.New(rand.NewPCG(1, 2))}
	p.changed = sync.NewCond(&p.mu)
	for i, h := range histories {
		p.lives = append(p.lives, &played{history: h, uid: fmt.Sprintf("uid-%d", i), name: fmt.Sprintf("work-%d", i), at: -1})
	}
	return p
}

// goOn lets something happen to some AppWrappers, and reports whether anything was left to happen.
func (p *playback) goOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	more, most := false, 3
	if p.rough {
		most = 5
	}
	for _, i := range p.random.Perm(len(p.lives)) {
		life := p.lives[i]
		if life.at+1 == len(life.points) {
			continue
		}
		more = true
		for range p.random.IntN(most) {
			p.happens(life)
		}
	}
	p.changed.Broadcast()
	return more
}

func (p *playback) happens(life *played) {
	if life.at+1 == len(life.points) {
		return
	}
	life.at++
	p.version++
	p.log = append(p.log, happened{life, life.at})
}

// await waits until the client has seen everything, or the context ends.
func (p *playback) await(ctx context.Context) error {
	defer context.AfterFunc(ctx, p.changed.Broadcast)()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.caught != p.version {
		if ctx.Err() != nil {
			return fmt.Errorf("the client has seen version %d of %d: %w", p.caught, p.version, ctx.Err())
		}
		p.changed.Wait()
	}
	return nil
}

// forget is for a client that has ended.
func (p *playback) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.caught = -1
}

func (p *playback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/apis/workload.codeflare.dev/v1beta2/namespaces/team/appwrappers" || r.Header.Get("Authorization") != "Bearer secret" {
		http.Error(w, "not for you", http.StatusForbidden)
		return
	}
	if r.URL.Query().Get("watch") == "" {
		p.list(w)
		return
	}
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.watch(r.Context(), w, from)
}

func (p *playback) list(w http.ResponseWriter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	latest := map[*played]int{}
	for i, h := range p.log {
		latest[h.life] = i + 1
	}
	items := []any{}
	for _, life := range p.lives {
		if life.at >= 0 && !life.points[life.at].gone {
			items = append(items, life.object(life.at, latest[life]))
		}
	}
	write(w, map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(p.version)}, "items": items})
}

// watch answers with what has happened since, and ends: the next watch says that the client has seen it.
func (p *playback) watch(ctx context.Context, w http.ResponseWriter, from int) {
	defer context.AfterFunc(ctx, p.changed.Broadcast)()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.caught = from
	p.changed.Broadcast()
	for from == p.version && ctx.Err() == nil {
		p.changed.Wait()
	}
	if p.rough && p.random.IntN(3) == 0 {
		write(w, map[string]any{"type": "ERROR", "object": map[string]any{"kind": "Status", "code": http.StatusGone}})
		return
	}
	for version := from + 1; version <= p.version; version++ {
		p.send(w, version)
	}
}

func (p *playback) send(w http.ResponseWriter, version int) {
	h := p.log[version-1]
	event := h.event(version)
	write(w, event)
	if !p.rough || h.life.points[h.at].gone {
		return
	}
	if p.random.IntN(4) == 0 {
		write(w, event)
	}
	if phase := h.life.points[h.at].stored.Status.Phase; phase == v1beta2.AppWrapperSucceeded || phase == v1beta2.AppWrapperFailed {
		late := version - 1 // the one before the end, which comes once more
		for late > 0 && (p.log[late-1].life != h.life || p.log[late-1].at == h.at) {
			late--
		}
		write(w, p.log[max(late, 1)-1].event(max(late, 1)))
		write(w, event)
	}
}

func (h happened) event(version int) map[string]any {
	kind := "MODIFIED"
	switch {
	case h.life.points[h.at].gone:
		kind = "DELETED"
	case h.at == 0:
		kind = "ADDED"
	}
	return map[string]any{"type": kind, "object": h.life.object(h.at, version)}
}

func (l *played) object(at, version int) *v1beta2.AppWrapper {
	aw := l.points[at].stored.DeepCopy()
	aw.Name, aw.Namespace, aw.UID, aw.ResourceVersion = l.name, "team", types.UID(l.uid), strconv.Itoa(version)
	return aw
}

// at is the point at which an AppWrapper was, as of a version.
func (p *playback) pointOf(uid string, version int) (life *played, at int) {
	for i, h := range p.log {
		if h.life.uid == uid && i < version {
			life, at = h.life, h.at
		}
	}
	return life, at
}

func write(w http.ResponseWriter, what any) {
	_ = json.NewEncoder(w).Encode(what)
}
