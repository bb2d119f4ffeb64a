package web

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/web/login"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

const (
	// maxLongForm bounds the body of a form with a document, in bytes: one of 1 MiB whose characters are escaped.
	maxLongForm = 4 << 20
	// doField names the button of a form that was pressed.
	doField = "do"
)

// form is a page with a form that is no simple action: what it lacks is said beside what was typed, which stays.
type form struct {
	pattern    string
	parameters []string
	// get shows the form; nil if a view of the same pattern does.
	get func(w *Web, rw http.ResponseWriter, r *http.Request, req request)
	// post takes the form, whose fields are read. failed is why it cannot be trusted, or nil: it is to be shown again then.
	post func(w *Web, rw http.ResponseWriter, r *http.Request, req request, failed error)
}

// serveForm returns a handler of a form, for its page or for what is sent.
func (w *Web) serveForm(f form, isPost bool) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		req, err := view{pattern: f.pattern, parameters: f.parameters}.requestOf(r)
		if err != nil {
			w.writeError(rw, r, err)
			return
		}
		if !isPost {
			f.get(w, rw, r, req)
			return
		}
		r.Body = http.MaxBytesReader(rw, r.Body, maxLongForm)
		if err := r.ParseForm(); err != nil {
			w.writeError(rw, r, rpcerror.Invalid("the form cannot be read: %w", err))
			return
		}
		if !login.HasProof(r) {
			err = errOldForm()
		}
		f.post(w, rw, r, req, err)
	})
}

// writeView answers with a view whose form has been filled in. It stays live where its address is that of a view.
func (w *Web) writeView(rw http.ResponseWriter, r *http.Request, status int, data viewData, req request, isLive bool) {
	content, err := w.pages.render(data, req)
	if err != nil {
		w.writeError(rw, r, err)
		return
	}
	page := frame{Title: content.Title, Content: content.HTML}
	if isLive {
		page.View = req.url()
	}
	w.writePage(rw, r, status, page)
}

// redirect leads to a page that shows a notice once.
func redirect(rw http.ResponseWriter, r *http.Request, to, notice string) {
	if notice != "" {
		login.SetNotice(rw, r, notice)
	}
	http.Redirect(rw, r, to, http.StatusSeeOther)
}

// formKey returns the idempotency key of a form that starts a run: the same form, sent again with the same input, starts no
// second one. A page that is loaded again has another proof, and so another key.
func formKey(r *http.Request, about string, input *structpb.Struct) string {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(input)
	if err != nil {
		text, _ = protojson.Marshal(input)
	}
	sum := sha256.Sum256([]byte(r.PostForm.Get(login.FormField) + "\x00" + about + "\x00" + string(text)))
	return "web-" + hex.EncodeToString(sum[:16])
}

// typed returns what was typed in a field, its lines as Go has them.
func typed(r *http.Request, name string) string {
	return strings.ReplaceAll(r.PostForm.Get(name), "\r\n", "\n")
}

// problemsOf returns the problems of a definition or an input that an error has, or the error as the only one.
func problemsOf(err error) source.Problems {
	if err == nil {
		return nil
	}
	if problems, ok := errors.AsType[source.Problems](err); ok {
		return problems
	}
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		for _, detail := range coded.Details() {
			value, err := detail.Value()
			if failure, ok := value.(*v1.ValidationFailure); err == nil && ok {
				return failure.GetProblems()
			}
		}
	}
	return source.Problems{{Message: messageOf(err)}}
}

// statusOf returns the status of a page that shows a form again because of an error.
func statusOf(err error) int {
	switch _, isProblems := errors.AsType[source.Problems](err); {
	case err == nil:
		return http.StatusOK
	case isProblems:
		return http.StatusUnprocessableEntity
	}
	return rpcerror.HTTPStatus(rpcerror.CodeOf(err))
}
