package site

import (
	"html"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// fenceRenderer writes a block of code, with the name of the file that it shows above it.
type fenceRenderer struct{}

// RegisterFuncs registers the function that writes fenced blocks.
func (fenceRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		f := newFence(n.(*ast.FencedCodeBlock), source)
		code := `<pre tabindex="0"><code>` + html.EscapeString(f.Text) + "</code></pre>\n"
		if name := f.File(); name != "" {
			code = "<figure><figcaption>" + html.EscapeString(name) + "</figcaption>" + code + "</figure>\n"
		}
		_, err := w.WriteString(code)
		return ast.WalkSkipChildren, err
	})
}
