package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/web/login"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// confirmedField is set by the form that asks whether an action is meant, nextField names the page after it.
	confirmedField, nextField = "confirmed", "next"
	reasonField               = "reason"
	yes                       = "yes"
)

// subjectFields are the fields of forms that name what an action is about.
var subjectFields = []string{"run", "task", "name", "workflow", "schedule"}

// actionKind is something that a button does. Its call decides which role it needs.
type actionKind struct {
	verb, label string
	call        protoreflect.FullName // such as switchyard.v1.RunService.KillTask
	// asks is a question that comes before what cannot be taken back, in which %s is what it is about.
	asks   string
	reason bool // whether it takes a reason
	// do makes the call with the fields of the form, and returns what is so now and, if it leads elsewhere, the next page.
	do func(ctx context.Context, s services, form url.Values) (done, next string, err error)
}

// Action is a button of a page.
type Action struct {
	Verb, Label string
	// About is what the question names.
	About string
	// Ask is the question before it, or "".
	Ask    string
	Reason bool
	// Forbidden says why the caller cannot do it, or is "".
	Forbidden string
	Fields    []Field
}

// Field is a hidden field of a form.
type Field struct{ Name, Value string }

// newAction returns a button for a caller. Pairs are the names and values of its fields.
func newAction(verb, about string, caller *auth.Principal, pairs ...string) Action {
	kind, ok := actionKinds[verb]
	if !ok {
		panic("there is no action " + verb) // views name those of the table
	}
	a := Action{Verb: verb, Label: kind.label, About: about, Reason: kind.reason}
	if kind.asks != "" {
		a.Ask = fmt.Sprintf(kind.asks, about)
	}
	a.Forbidden = forbids(kind.label, kind.call, caller)
	for pair := range slices.Chunk(pairs, 2) {
		a.Fields = append(a.Fields, Field{pair[0], pair[1]})
	}
	return a
}

// callNamed returns a call of the services, or nil.
func callNamed(name protoreflect.FullName) protoreflect.MethodDescriptor {
	for _, service := range v1.Services() {
		if service.FullName() == name.Parent() {
			return service.Methods().ByName(name.Name())
		}
	}
	return nil
}

// confirmPage is the question before an action, for browsers without script.
type confirmPage struct {
	Action
	Next string
}

// actionDone is the answer to the script about an action.
type actionDone struct {
	Message string `json:"message"`
	Next    string `json:"next,omitempty"`
}

// serveAction does what a button asks for.
func (w *Web) serveAction(rw http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(rw, r.Body, maxForm)
	kind, ok := actionKinds[r.PathValue("verb")]
	switch {
	case !ok:
		w.writeError(rw, r, rpcerror.NotFound("there is no action %q", r.PathValue("verb")))
		return
	case !login.HasProof(r):
		w.writeError(rw, r, errOldForm())
		return
	case kind.asks != "" && r.PostForm.Get(confirmedField) != yes:
		w.askFirst(rw, r, kind)
		return
	}
	done, next, err := kind.do(r.Context(), w.services, r.PostForm)
	switch {
	case err != nil:
		w.writeError(rw, r, err)
	case wantsJSON(r):
		writeJSON(rw, actionDone{done, next})
	default:
		if next == "" {
			next = localPath(r.PostForm.Get(nextField))
		}
		login.SetNotice(rw, r, done)
		http.Redirect(rw, r, next, http.StatusSeeOther)
	}
}

// askFirst answers with a page that asks whether an action is meant.
func (w *Web) askFirst(rw http.ResponseWriter, r *http.Request, kind actionKind) {
	var subjects []string
	for _, field := range subjectFields {
		if subject := r.PostForm.Get(field); subject != "" {
			subjects = append(subjects, subject)
		}
	}
	about := strings.Join(subjects, " ")
	a := newAction(kind.verb, about, auth.From(r.Context()))
	for name, values := range r.PostForm {
		if name != login.FormField && name != nextField && name != confirmedField && name != reasonField {
			a.Fields = append(a.Fields, Field{name, values[0]})
		}
	}
	slices.SortFunc(a.Fields, func(x, y Field) int { return strings.Compare(x.Name, y.Name) })
	page := &Page{Data: confirmPage{a, localPath(r.PostForm.Get(nextField))}, templates: w.pages.templates, FormMark: w.formMark}
	html, err := page.execute("confirm", page)
	if err != nil {
		w.Log.Error("the question before an action was not rendered", "error", err)
	}
	w.writePage(rw, r, http.StatusOK, frame{Title: kind.label, Content: string(html)})
}
