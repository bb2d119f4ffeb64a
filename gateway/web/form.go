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
	// maxLongForm bounds the body of a form with a document, in bytes: a document of 1 MiB after escaping.
	maxLongForm = 4 << 20
	// doField names the form field with the pressed button.
	doField = "do"
)

// form is a page with a form that is not a simple action. On error, the page shows the typed values again with the error.
type form struct {
	pattern    string
	parameters []string
	// get shows the form. It is nil if a view has the same pattern.
	get func(w *Web, rw http.ResponseWriter, r *http.Request, req request)
	// post handles the submitted form, whose fields are parsed. If failed is not nil, the form must not be trusted and is
	// shown again.
	post func(w *Web, rw http.ResponseWriter, r *http.Request, req request, failed error)
}

// serveForm returns a handler of a form, either for its page or for its submission.
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

// writeView answers with a view whose form is filled in. With isLive, the page keeps updating itself, which requires that
// its address belongs to a view.
func (w *Web) writeView(rw http.ResponseWriter, r *http.Request, status int, data viewData, req request, isLive bool) {
	content, err := w.pages.render(data, req)
	if err != nil {
		w.writeError(rw, r, err)
		return
	}
	page := frame{Title: content.Title, Content: content.HTML}
	if isLive {
		page.View, page.Shape = req.url(), content.Shape
	}
	w.writePage(rw, r, status, page)
}

// redirect redirects to a page that shows a notice once.
func redirect(rw http.ResponseWriter, r *http.Request, to, notice string) {
	if notice != "" {
		login.SetNotice(rw, r, notice)
	}
	http.Redirect(rw, r, to, http.StatusSeeOther)
}

// formKey returns the idempotency key of a form that starts a run: submitting the same form again with the same input starts
// no second run. A reloaded page has another proof and therefore another key.
func formKey(r *http.Request, about string, input *structpb.Struct) string {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(input)
	if err != nil {
		text, _ = protojson.Marshal(input)
	}
	sum := sha256.Sum256([]byte(r.PostForm.Get(login.FormField) + "\x00" + about + "\x00" + string(text)))
	return "web-" + hex.EncodeToString(sum[:16])
}

// formText returns the text of a form field with Unix line ends.
func formText(r *http.Request, name string) string {
	return strings.ReplaceAll(r.PostForm.Get(name), "\r\n", "\n")
}

// problemsOf returns the validation problems in an error, or the error itself as the only problem.
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
