// SPDX-License-Identifier: Apache-2.0

package website

import (
	"fmt"
	"html"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// boxes renders tables in boxes that scroll, so that the page does not, and headings with links to themselves.
var boxes = renderer.WithNodeRenderers(util.Prioritized(boxRenderer{}, 1)) // before the usual ones

type boxRenderer struct{}

// RegisterFuncs is called by goldmark.
func (boxRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(tables.KindTable, renderTable)
	r.Register(ast.KindHeading, renderHeading)
}

func renderTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "</table></div>\n"
	if entering {
		tag = `<div class="box"><table>` + "\n"
	}
	_, err := w.WriteString(tag)
	return ast.WalkContinue, err
}

func renderHeading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	level := n.(*ast.Heading).Level
	attribute, _ := n.AttributeString("id") // a heading within a list has none
	bytes, _ := attribute.([]byte)
	id := html.EscapeString(string(bytes))
	var err error
	switch {
	case entering:
		_, err = fmt.Fprintf(w, `<h%d id="%s">`, level, id)
	case level == 1 || id == "":
		_, err = fmt.Fprintf(w, "</h%d>\n", level)
	default:
		_, err = fmt.Fprintf(w, ` <a class="self" href="#%s" aria-label="Link to this section">#</a></h%d>`+"\n", id, level)
	}
	return ast.WalkContinue, err
}
