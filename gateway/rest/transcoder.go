package rest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/vanguard"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// newTranscoder returns a handler that converts REST requests to Connect calls with proto messages, and passes them to
// calls.
func newTranscoder(schemas []protoreflect.ServiceDescriptor, calls http.Handler) (http.Handler, error) {
	var services []*vanguard.Service
	for _, schema := range schemas {
		services = append(services, vanguard.NewServiceWithSchema(schema, onlyReadable(calls),
			vanguard.WithTargetProtocols(vanguard.ProtocolConnect), vanguard.WithTargetCodecs(vanguard.CodecProto),
			vanguard.WithNoTargetCompression(), vanguard.WithTypeResolver(protoregistry.GlobalTypes),
		))
	}
	transcoder, err := vanguard.NewTranscoder(services, vanguard.WithCodec(codecs()))
	if err != nil {
		return nil, fmt.Errorf("serve REST: %w", err)
	}
	return transcoder, nil
}

// callHeaders are request headers with a meaning for vanguard or Connect, but none in REST.
var callHeaders = []string{
	"Accept-Encoding", "Connect-Accept-Encoding", "Connect-Content-Encoding", "Connect-Protocol-Version", "Connect-Timeout-Ms",
	"Content-Encoding", "Content-Type", "Grpc-Timeout", "X-Server-Timeout",
}

// onlyReadable returns a handler that calls next only for requests that could be read. If a request cannot be read,
// vanguard writes the error and ends the body early, and an empty body would be a valid request of many calls.
func onlyReadable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		message, err := io.ReadAll(r.Body)
		if wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
			if answer, ok := wrapper.Unwrap().(*answer); err != nil || ok && answer.status != 0 {
				return
			}
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(message)), int64(len(message))
		next.ServeHTTP(w, r)
	})
}
