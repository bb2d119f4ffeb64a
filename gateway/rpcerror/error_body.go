package rpcerror

import (
	"encoding/json"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
)

// Errors of REST, of event streams, of the page's script and of the checks before any call (see WriteError in
// gateway/edge/error_writer.go) have one JSON body. Connect, gRPC and the protocols of agents have bodies of their own.
//
//   - The code decides the status (see statuses), unless the caller knows a more exact one, such as 405 or 413.
//   - The details are those of the Connect error, each with its "@type". Programs act on them, people read the message.
//   - Statuses 429 and 503 have a Retry-After.
//   - Errors of transcoded calls are converted from the body that the transcoder gives them (see BodyOf).
//   - errorSchema in dev/openapi/operations.go describes the body to clients, and docs/rest.md to people.

// Body is the JSON body of an error.
type Body struct {
	// Code is the Connect name of the code, such as "not_found".
	Code string `json:"code"`
	// Message is the text for people.
	Message string `json:"message"`
	// Details holds proto messages as JSON, each with its "@type".
	Details []json.RawMessage `json:"details"`
}

// WriteJSON writes an error as the response of a request. Status 0 selects the HTTP status of the error's code.
func WriteJSON(w http.ResponseWriter, status int, err error) {
	code := CodeOf(err)
	body := Body{Code: code.String(), Message: err.Error(), Details: []json.RawMessage{}}
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		body.Message = coded.Message()
		for _, detail := range coded.Details() {
			if text, err := detailJSON(detail); err == nil {
				body.Details = append(body.Details, text)
			}
		}
	}
	if status == 0 {
		status = HTTPStatus(code)
	}
	body.Write(w, status)
}

// BodyOf returns the body of an error whose answer has a status and, as its own body, a google.rpc.Status in JSON or a text.
func BodyOf(status int, answer []byte) Body {
	var said struct {
		Code    uint32
		Message string
		Details []json.RawMessage
	}
	body := Body{Details: []json.RawMessage{}}
	if json.Unmarshal(answer, &said) == nil && said.Code != 0 {
		body.Code, body.Message = connect.Code(said.Code).String(), Readable(said.Message)
		body.Details = append(body.Details, said.Details...)
	} else {
		body.Code, body.Message = codeOfStatus(status).String(), Readable(string(answer))
	}
	return body
}

// retryAfter is the number of seconds that a client should wait before it retries a request that found the gateway busy or
// unavailable.
const retryAfter = "1"

// Write writes the body as the response of a request.
func (b Body) Write(w http.ResponseWriter, status int) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Del("Content-Length")
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		header.Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	// Fails only if the client has left.
	_ = json.NewEncoder(w).Encode(b)
}

func detailJSON(detail *connect.ErrorDetail) (json.RawMessage, error) {
	message, err := detail.Value()
	if err != nil {
		return nil, err
	}
	wrapped, err := anypb.New(message)
	if err != nil {
		return nil, err
	}
	return protojson.Marshal(wrapped)
}

// statuses maps codes to HTTP statuses, as google/rpc/code.proto defines them.
var statuses = map[connect.Code]int{
	connect.CodeCanceled:           499,
	connect.CodeInvalidArgument:    http.StatusBadRequest,
	connect.CodeDeadlineExceeded:   http.StatusGatewayTimeout,
	connect.CodeNotFound:           http.StatusNotFound,
	connect.CodeAlreadyExists:      http.StatusConflict,
	connect.CodePermissionDenied:   http.StatusForbidden,
	connect.CodeResourceExhausted:  http.StatusTooManyRequests,
	connect.CodeFailedPrecondition: http.StatusConflict,
	connect.CodeAborted:            http.StatusConflict,
	connect.CodeOutOfRange:         http.StatusBadRequest,
	connect.CodeUnimplemented:      http.StatusNotImplemented,
	connect.CodeUnavailable:        http.StatusServiceUnavailable,
	connect.CodeUnauthenticated:    http.StatusUnauthorized,
}

// HTTPStatus returns the HTTP status of a code.
func HTTPStatus(code connect.Code) int {
	if status, known := statuses[code]; known {
		return status
	}
	return http.StatusInternalServerError
}

// codeOfStatus returns the error code for a response that has only an HTTP status.
func codeOfStatus(status int) connect.Code {
	switch status {
	case http.StatusNotFound:
		return connect.CodeNotFound
	case http.StatusServiceUnavailable:
		return connect.CodeUnavailable
	}
	if status < http.StatusInternalServerError {
		return connect.CodeInvalidArgument
	}
	return connect.CodeInternal
}
