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
	// confirmedField is set by the form that confirms an action; nextField names the page that follows.
	confirmedField, nextField = "confirmed", "next"
	reasonField               = "reason"
	yes                       = "yes"
)

// subjectFields are the form fields that name the subject of an action.
var subjectFields = []string{"run", "task", "name", "workflow", "schedule"}

// actionKind describes what a button does. The call determines the required role.
type actionKind struct {
	verb, label string
	call        protoreflect.FullName // such as switchyard.v1.RunService.KillTask
	// asks is the confirmation question for an irreversible action, with %s for the subject; empty means none.
	asks   string
	reason bool // whether the action takes a reason
	// do makes the call with the form fields. It returns a message about the result and the page to open next, or "" to
	// stay.
	do func(ctx context.Context, s services, form url.Values) (done, next string, err error)
}

// Action is a button of a page.
type Action struct {
	Verb, Label string
	// About is the subject named in the question.
	About string
	// Ask is the confirmation question, or "".
	Ask    string
	Reason bool
	// Forbidden is why the caller may not perform the action, or "".
	Forbidden string
	Fields    []Field
}

// Field is a hidden field of a form.
type Field struct{ Name, Value string }

// newAction returns the button of an action for a caller. Pairs are the names and values of its hidden fields.
func newAction(verb, about string, caller *auth.Principal, pairs ...string) Action {
	kind, ok := actionKinds[verb]
	if !ok {
		panic("there is no action " + verb) // views use verbs of the table only
	}
	a := Action{Verb: verb, Label: kind.label, About: about, Reason: kind.reason}
	if kind.asks != "" {
		a.Ask = fmt.Sprintf(kind.asks, about)
	}
	a.Forbidden = forbiddenReason(kind.label, kind.call, caller)
	for pair := range slices.Chunk(pairs, 2) {
		a.Fields = append(a.Fields, Field{pair[0], pair[1]})
	}
	return a
}

// callNamed returns the descriptor of a service call, or nil if there is none.
func callNamed(name protoreflect.FullName) protoreflect.MethodDescriptor {
	for _, service := range v1.Services() {
		if service.FullName() == name.Parent() {
			return service.Methods().ByName(name.Name())
		}
	}
	return nil
}

// confirmPage is the confirmation question for browsers without script.
type confirmPage struct {
	Action
	Next string
}

// actionDone is the JSON response to the script.
type actionDone struct {
	Message string `json:"message"`
	Next    string `json:"next,omitempty"`
}

// serveAction performs the action of a button, after a confirmation page if the action needs one.
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
		w.writeConfirmation(rw, r, kind)
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

// writeConfirmation writes the confirmation page of an action.
func (w *Web) writeConfirmation(rw http.ResponseWriter, r *http.Request, kind actionKind) {
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
		w.Log.Error("cannot render the confirmation of an action", "error", err)
	}
	w.writePage(rw, r, http.StatusOK, frame{Title: kind.label, Content: string(html)})
}
