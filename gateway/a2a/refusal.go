package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"switchyard/workflows/structs"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 4 << 20

// refusalKey is the context key of the error that a request is refused with.
type refusalKey struct{}

// withRefusal marks a request so that its binding answers with err in its own encoding.
func withRefusal(r *http.Request, err error) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), refusalKey{}, err))
}

// refusals is the interceptor that refuses the requests marked by withRefusal.
type refusals struct{}

// Before returns the error that withRefusal attached to the request, or nil.
func (refusals) Before(ctx context.Context, _ *a2asrv.CallContext, _ *a2asrv.Request) (context.Context, any, error) {
	err, _ := ctx.Value(refusalKey{}).(error)
	return ctx, nil, err
}

// After leaves the response unchanged.
func (refusals) After(context.Context, *a2asrv.CallContext, *a2asrv.Response) error { return nil }

// readBody reads the body of a request, up to maxBody.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, errorf(a2a.ErrInvalidParams, "the body exceeds the limit of %d MiB; pass large data by URL as an input", maxBody>>20)
	}
	if err != nil {
		return nil, errorf(a2a.ErrParseError, "the body cannot be read: %v", err)
	}
	return body, nil
}

// decodeParams decodes the parameters of a method. It refuses data that would change.
func decodeParams(text []byte, into any) error {
	err := decode(text, into)
	if err == nil {
		if fault := structs.CheckJSON(text); fault != nil {
			err = errorf(a2a.ErrInvalidParams, "%v", fault)
		}
	}
	return err
}

// decode decodes JSON. Its errors name the offending field and the problem.
func decode(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	if err == nil {
		return nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		if len(strings.TrimSpace(string(text))) == 0 {
			return errorf(a2a.ErrParseError, "the body is empty; send a JSON object")
		}
		return errorf(a2a.ErrParseError, "the body is not valid JSON: %v, after %d bytes", syntax, syntax.Offset)
	}
	return errorf(a2a.ErrInvalidParams, "%s", describeMismatch(err))
}

// describeMismatch describes a JSON value whose type does not match the expected one.
func describeMismatch(err error) string {
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if mismatch.Field == "" {
			return fmt.Sprintf("expected a JSON object, not %s", article(mismatch.Value))
		}
		return fmt.Sprintf("`%s` cannot be %s", mismatch.Field, article(mismatch.Value))
	}
	// All other errors come from the decoder of a part.
	return "each message part must have exactly one non-empty field of `text`, `data`, `url` and `raw`: " + err.Error()
}

// article returns the name of a JSON type with its article.
func article(kind string) string {
	kind, _, _ = strings.Cut(kind, " ") // a number comes with its digits
	switch kind {
	case "array", "object":
		return "an " + kind
	case "bool":
		return "a boolean"
	}
	return "a " + kind
}
