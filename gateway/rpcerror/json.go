package rpcerror

import (
	"encoding/json"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
)

// Body is the body of an error that is not an answer to a Connect or gRPC call.
type Body struct {
	// Code is the word of Connect, such as "not_found".
	Code string `json:"code"`
	// Message is for people.
	Message string `json:"message"`
	// Details are messages of proto as JSON, each with its "@type".
	Details []json.RawMessage `json:"details"`
}

// WriteJSON answers a request with an error. Status 0 is the one that the code of the error stands for.
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

// retryAfter is how many seconds a client may wait before it sends a request again that found the gateway busy or away.
const retryAfter = "1"

// Write answers a request with the body.
func (b Body) Write(w http.ResponseWriter, status int) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Del("Content-Length")
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		header.Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	// An error means that the client has gone.
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

// statuses are the HTTP statuses of codes, as google/rpc/code.proto has them.
var statuses = map[connect.Code]int{
	connect.CodeCanceled:           499,
	connect.CodeInvalidArgument:    http.StatusBadRequest,
	connect.CodeDeadlineExceeded:   http.StatusGatewayTimeout,
	connect.CodeNotFound:           http.StatusNotFound,
	connect.CodeAlreadyExists:      http.StatusConflict,
	connect.CodePermissionDenied:   http.StatusForbidden,
	connect.CodeResourceExhausted:  http.StatusTooManyRequests,
	connect.CodeFailedPrecondition: http.StatusBadRequest,
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
