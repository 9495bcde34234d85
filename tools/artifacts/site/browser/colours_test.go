// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"bytes"
	"image/color"
	"image/png"
	"testing"

	"github.com/chromedp/chromedp"
)

const (
	paper = `getComputedStyle(document.documentElement).backgroundColor`
	light = "rgb(255, 255, 255)"
	dark  = "rgb(18, 23, 30)"
)

func (b *tab) hasColours(when, want string) {
	b.t.Helper()
	if got := eval[string](b, paper); got != want {
		b.t.Errorf("%s, the page is %s, want %s", when, got, want)
	}
}

// The contrast in both colours is tested on every page by TestEveryPageIsFine.
func TestThePageHasTheColoursOfTheSystemUntilOneChooses(t *testing.T) {
	b := open(t, 1280, 900, "light")
	b.visit("docs/guide.html")
	b.hasColours("in a light system", light)
	b.prefer("dark")
	b.hasColours("in a dark system", dark)

	b.do(chromedp.Click(chromedp.CSS("button.theme")))
	b.hasColours("after a click", light)
	b.visit("docs/why.html")
	b.hasColours("on the next page", light)
	if pressed := eval[string](b, `document.querySelector("button.theme").ariaPressed`); pressed != "false" {
		t.Errorf("dark colours are off, and the button says %s", pressed)
	}

	b.do(chromedp.Click(chromedp.CSS("button.theme")))
	b.hasColours("after another click", dark)
	b.prefer("light")
	b.hasColours("back with the system, which is light now", light)
}

// What is drawn follows the button, too, and not only the system.
func TestDrawingsHaveTheColoursOfThePage(t *testing.T) {
	b := open(t, 1280, 900, "light")
	b.visit("index.html")
	before := b.paperOf("main img")
	b.do(chromedp.Click(chromedp.CSS("button.theme")))
	if after := b.paperOf("main img"); before < 0xf0 || after > 0x20 {
		t.Errorf("the paper of the drawing is %#x in light colours and %#x in dark ones", before, after)
	}
}

// paperOf is how bright an image is near its corner: 0 to 255.
func (b *tab) paperOf(image string) uint8 {
	b.t.Helper()
	shot, err := chromedp.Run(b.ctx, chromedp.Screenshot(chromedp.CSS(image)))
	if err != nil {
		b.t.Fatal(err)
	}
	drawn, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		b.t.Fatal(err)
	}
	return color.GrayModel.Convert(drawn.At(12, 12)).(color.Gray).Y
}
