// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/mlbatch/mlbatch/controller/api/v1beta2"
	"github.com/mlbatch/mlbatch/controller/internal/lifecycle"
	"github.com/mlbatch/mlbatch/test/golden"
)

// box is the position and style of a phase.
type box struct {
	x, y, width, height int
	class               string
	says                string
}

var boxes = map[v1beta2.AppWrapperPhase]box{
	v1beta2.AppWrapperSuspended:   {140, 112, 150, 66, "idle", "it waits for quota"},
	v1beta2.AppWrapperResuming:    {400, 112, 160, 66, "busy", "it is created"},
	v1beta2.AppWrapperRunning:     {720, 112, 160, 66, "busy", "it is watched"},
	v1beta2.AppWrapperSucceeded:   {980, 112, 140, 66, "good", "the work is done"},
	v1beta2.AppWrapperSuspending:  {140, 312, 150, 66, "going", "it is removed"},
	v1beta2.AppWrapperResetting:   {500, 312, 260, 66, "going", "it is removed, to be tried again"},
	v1beta2.AppWrapperFailed:      {980, 312, 140, 66, "bad", "nothing can help"},
	v1beta2.AppWrapperTerminating: {500, 510, 260, 66, "going", "it is removed for good"},
}

// arrow is how a way is drawn: its path, and the causes in lines of a maximum width that start,
// end or are centered at a point.
type arrow struct {
	path   string
	x, y   int
	anchor string
	wide   int
}

type route struct{ from, to v1beta2.AppWrapperPhase }

var drawn = map[route]arrow{
	{v1beta2.AppWrapperEmpty, v1beta2.AppWrapperSuspended}:      {"M72 145 H136", 102, 135, "middle", 20},
	{v1beta2.AppWrapperEmpty, v1beta2.AppWrapperResuming}:       {"M66 137 V104 Q66 98 72 98 H454 Q460 98 460 104 V108", 84, 90, "start", 30},
	{v1beta2.AppWrapperEmpty, v1beta2.AppWrapperFailed}:         {"M60 133 V60 Q60 54 66 54 H1160 Q1166 54 1166 60 V349 Q1166 355 1160 355 H1124", 84, 46, "start", 60},
	{v1beta2.AppWrapperSuspended, v1beta2.AppWrapperResuming}:   {"M290 145 H396", 343, 135, "middle", 20},
	{v1beta2.AppWrapperSuspended, v1beta2.AppWrapperFailed}:     {"M265 112 V26 Q265 20 271 20 H1180 Q1186 20 1186 26 V359 Q1186 365 1180 365 H1124", 280, 34, "start", 60},
	{v1beta2.AppWrapperResuming, v1beta2.AppWrapperRunning}:     {"M560 145 H716", 638, 135, "middle", 30},
	{v1beta2.AppWrapperResuming, v1beta2.AppWrapperResetting}:   {"M545 178 V308", 553, 222, "start", 18},
	{v1beta2.AppWrapperResuming, v1beta2.AppWrapperFailed}:      {"M500 112 V90 Q500 84 506 84 H1140 Q1146 84 1146 90 V329 Q1146 335 1140 335 H1124", 514, 76, "start", 80},
	{v1beta2.AppWrapperResuming, v1beta2.AppWrapperSuspending}:  {"M440 178 V329 Q440 335 434 335 H294", 302, 326, "start", 30},
	{v1beta2.AppWrapperRunning, v1beta2.AppWrapperSucceeded}:    {"M880 134 H976", 928, 124, "middle", 20},
	{v1beta2.AppWrapperRunning, v1beta2.AppWrapperResetting}:    {"M740 178 V308", 748, 222, "start", 18},
	{v1beta2.AppWrapperRunning, v1beta2.AppWrapperFailed}:       {"M880 160 H924 Q930 160 930 166 V339 Q930 345 936 345 H976", 938, 207, "start", 18},
	{v1beta2.AppWrapperRunning, v1beta2.AppWrapperSuspending}:   {"M865 178 V414 Q865 420 859 420 H221 Q215 420 215 414 V382", 540, 412, "middle", 30},
	{v1beta2.AppWrapperResetting, v1beta2.AppWrapperResuming}:   {"M520 312 V182", 512, 237, "end", 10},
	{v1beta2.AppWrapperResetting, v1beta2.AppWrapperSuspending}: {"M500 360 H294", 397, 376, "middle", 30},
	{v1beta2.AppWrapperResetting, v1beta2.AppWrapperFailed}:     {"M760 365 H976", 873, 381, "start", 14},
	{v1beta2.AppWrapperSuspending, v1beta2.AppWrapperFailed}:    {"M175 378 V432 Q175 438 181 438 H1044 Q1050 438 1050 432 V382", 950, 430, "middle", 30},
	{v1beta2.AppWrapperSuspending, v1beta2.AppWrapperSuspended}: {"M190 312 V182", 198, 244, "start", 12},
	{anyPhase, v1beta2.AppWrapperTerminating}:                   {"M630 452 V506", 640, 486, "start", 30},
}

const diagramHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 600" font-family="-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="15" role="img" aria-labelledby="title desc">
  <!-- Written by go test ./controller/internal/lifecycle -update -->
  <title id="title">The phases of an AppWrapper</title>
  <desc id="desc">Phases and the moves between them, with their causes. The table below the picture says the same.</desc>
  <style>
    .paper { fill: #ffffff; stroke: #c9d1d9; }
    .frame { fill: none; stroke: #66707b; stroke-dasharray: 2 3; }
    .idle  { fill: #eceff2; stroke: #66707b; }
    .busy  { fill: #dcebff; stroke: #2463b5; }
    .going { fill: #fff3d6; stroke: #b7791f; }
    .good  { fill: #dcf5e3; stroke: #1f7a3d; }
    .bad   { fill: #ffe3e0; stroke: #b3362b; }
    .flow  { fill: none; stroke: #39424d; stroke-width: 1.6; }
    .head  { fill: #39424d; }
    text   { fill: #1c2128; }
    .name  { font-weight: bold; text-anchor: middle; }
    .small { font-size: 12px; fill: #444d56; }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #11161d; stroke: #3a424c; }
      .frame { stroke: #98a3af; }
      .idle  { fill: #2a313a; stroke: #98a3af; }
      .busy  { fill: #173458; stroke: #6ea8ef; }
      .going { fill: #4a3712; stroke: #d9a441; }
      .good  { fill: #143d22; stroke: #5fc384; }
      .bad   { fill: #4f1d19; stroke: #f0857b; }
      .flow  { stroke: #c3ccd6; }
      .head  { fill: #c3ccd6; }
      text   { fill: #e6edf3; }
      .small { fill: #b3bcc6; }
    }
  </style>
  <defs>
    <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
      <path class="head" d="M0 0 L10 5 L0 10 z"/>
    </marker>
  </defs>

  <rect class="paper" x="1" y="1" width="1198" height="598" rx="10"/>
  <rect class="frame" x="24" y="22" width="1156" height="430" rx="8"/>
  <circle class="head" cx="60" cy="145" r="9"/>
  <text class="small" x="60" y="172" text-anchor="middle">created</text>
  <path class="flow" d="M760 543 H896" marker-end="url(#arrow)"/>
  <text class="small" x="826" y="533" text-anchor="middle">everything is gone</text>
  <circle class="flow" cx="912" cy="543" r="11"/><circle class="head" cx="912" cy="543" r="6"/>
  <text class="small" x="912" y="572" text-anchor="middle">let go</text>
`

func TestThePictureShowsTheMoves(t *testing.T) {
	picture := diagramHead
	for _, phase := range phases {
		picture += drawPhase(phase)
	}
	undrawn := map[route]bool{}
	for ends := range drawn {
		undrawn[ends] = true
	}
	for _, w := range ways {
		ends := route{w.from, w.to}
		if !undrawn[ends] {
			t.Errorf("%s → %s has no arrow in drawn", name(w.from), w.to)
		}
		delete(undrawn, ends)
		picture += drawWay(w, drawn[ends])
	}
	for ends := range undrawn {
		t.Errorf("%s → %s is drawn but not in ways", name(ends.from), ends.to)
	}
	golden.Compare(t, filepath.Join("..", "..", "..", "docs", "images", "lifecycle.svg"), []byte(picture+"</svg>\n"))
}

func drawPhase(phase v1beta2.AppWrapperPhase) string {
	b := boxes[phase]
	middle := b.x + b.width/2
	var s strings.Builder
	fmt.Fprintf(&s, "\n  <rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n", b.class, b.x, b.y, b.width, b.height)
	fmt.Fprintf(&s, "  <text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", middle, b.y+28, phase)
	fmt.Fprintf(&s, "  <text class=\"small\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", middle, b.y+49, b.says)
	return s.String()
}

func drawWay(w way, a arrow) string {
	var s strings.Builder
	fmt.Fprintf(&s, "\n  <path class=\"flow\" d=%q marker-end=\"url(#arrow)\"/>\n", a.path)
	for i, line := range label(w.causes, a.wide) {
		fmt.Fprintf(&s, "  <text class=\"small\" x=\"%d\" y=\"%d\" text-anchor=%q>%s</text>\n", a.x, a.y+15*i, a.anchor, line)
	}
	return s.String()
}

// label breaks the causes into lines, as words.
func label(causes []lifecycle.Cause, wide int) []string {
	var named []string
	for _, cause := range causes {
		named = append(named, words(cause))
	}
	if whole := strings.Join(named, ", "); len(whole) <= wide {
		return []string{whole}
	}
	var lines []string
	for i, cause := range named {
		if i < len(named)-1 {
			cause += ","
		}
		lines = append(lines, wrap(cause, wide)...)
	}
	return lines
}

// words is the cause as it is spoken.
func words(cause lifecycle.Cause) string {
	var spoken strings.Builder
	for i, letter := range string(cause) {
		if i > 0 && unicode.IsUpper(letter) {
			spoken.WriteByte(' ')
		}
		spoken.WriteRune(unicode.ToLower(letter))
	}
	return strings.Replace(spoken.String(), "app wrapper", "AppWrapper", 1)
}

func wrap(text string, wide int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= wide:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
