package web

import (
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/gateway/web/ansi"
	v1 "switchyard/proto/switchyard/v1"
)

// maxObject bounds the displayed JSON of an object, in bytes.
const maxObject = 64 << 10

// resultView is the result of the newest ended attempt.
type resultView struct {
	*v1.TaskResult
	Objects []objectView
	Streams []streamView
	CPU     string
	Memory  string
	// Cost is the cost of an agent, or "".
	Cost string
}

// Has reports whether there is any result to show.
func (r resultView) Has() bool {
	return r.HasExit() || r.GetAgent() != nil || r.CPU != "" || len(r.Objects)+len(r.Streams)+len(r.GetArtifacts()) > 0
}

// HasExit reports whether a process has exited with a code.
func (r resultView) HasExit() bool { return r.TaskResult != nil && r.GetExitCode() >= 0 }

// objectView is an object in the result of a task.
type objectView struct {
	Heading  string
	JSON     template.HTML
	IsCut    bool
	Download string // address
}

// streamView is the end of an output stream of a task.
type streamView struct {
	Heading string
	HTML    template.HTML
	IsCut   bool
}

// newResultView returns the view of a result.
func newResultView(req request, r *v1.TaskResult) resultView {
	view := resultView{TaskResult: r}
	if r == nil {
		return view
	}
	if r.GetCpuSeconds() > 0 || r.GetPeakMemoryMb() > 0 {
		view.CPU, view.Memory = fmt.Sprintf("%.1f s", r.GetCpuSeconds()), fmt.Sprintf("%.0f MiB at most", r.GetPeakMemoryMb())
	}
	if cost := r.GetAgent().GetCostUsd(); cost > 0 {
		view.Cost = fmt.Sprintf("$%.4f", cost)
	}
	for _, object := range []struct {
		heading, name string
		fields        *structpb.Struct
	}{{"Output", downloadOutput, r.GetOutput()}, {"Update of the context of the run", downloadContext, r.GetContextUpdate()}} {
		if len(object.fields.GetFields()) == 0 {
			continue
		}
		text, isCut := cutText(indentedJSON(object.fields), maxObject)
		view.Objects = append(view.Objects, objectView{object.heading, outputHTML(text), isCut, downloadURL(req, object.name)})
	}
	for _, s := range []struct {
		heading, text string
		isCut         bool
	}{{"End of standard output", r.GetStdout(), r.GetStdoutTruncated()}, {"End of standard error", r.GetStderr(), r.GetStderrTruncated()}} {
		if s.text != "" {
			view.Streams = append(view.Streams, streamView{s.heading, outputHTML(s.text), s.isCut})
		}
	}
	return view
}

// indentedJSON formats an object as indented JSON.
func indentedJSON(fields *structpb.Struct) string {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // outputHTML escapes HTML
	e.SetIndent("", "  ")
	if err := e.Encode(fields.AsMap()); err != nil {
		return err.Error() // for example a NaN
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// cutText cuts a text to at most so many bytes, at a rune boundary. It reports whether anything was cut.
func cutText(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], true
}

// outputHTML converts terminal output to HTML.
func outputHTML(text string) template.HTML {
	var stream ansi.Stream
	var html strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if i > 0 {
			html.WriteByte('\n')
		}
		html.WriteString(string(stream.Parse(line).HTML()))
	}
	return template.HTML(html.String())
}
