package sse

import (
	"encoding/json"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
)

// errorBody is the body of an answer with an error.
type errorBody struct {
	Code    string            `json:"code"`
	Message string            `json:"message"`
	Details []json.RawMessage `json:"details"`
}

// statusOf are the statuses of HTTP of the codes of errors.
var statusOf = map[connect.Code]int{
	connect.CodeInvalidArgument: http.StatusBadRequest, connect.CodeFailedPrecondition: http.StatusBadRequest, connect.CodeOutOfRange: http.StatusBadRequest,
	connect.CodeUnauthenticated: http.StatusUnauthorized, connect.CodePermissionDenied: http.StatusForbidden, connect.CodeNotFound: http.StatusNotFound,
	connect.CodeAborted: http.StatusConflict, connect.CodeAlreadyExists: http.StatusConflict, connect.CodeResourceExhausted: http.StatusTooManyRequests,
	connect.CodeUnimplemented: http.StatusNotImplemented, connect.CodeUnavailable: http.StatusServiceUnavailable, connect.CodeDeadlineExceeded: http.StatusGatewayTimeout,
	connect.CodeCanceled: 499,
}

// WriteError answers a request with an error.
func WriteError(w http.ResponseWriter, _ *http.Request, err error) {
	body := errorBody{Code: connect.CodeOf(err).String(), Message: err.Error(), Details: []json.RawMessage{}}
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		body.Message = coded.Message()
		for _, detail := range coded.Details() {
			value, err := detail.Value()
			if err != nil {
				continue
			}
			packed, err := protojson.Marshal(value)
			if err != nil {
				continue
			}
			body.Details = append(body.Details, packed)
		}
	}
	status, ok := statusOf[connect.CodeOf(err)]
	if !ok {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error means that the caller has gone.
	_ = json.NewEncoder(w).Encode(body)
}
