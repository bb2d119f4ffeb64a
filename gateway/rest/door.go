package rest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/vanguard"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// Config is what a door is made of.
type Config struct {
	// Services are the descriptors of the services.
	Services []protoreflect.ServiceDescriptor
	// Calls serves the services to Connect clients, under the paths of their procedures.
	Calls http.Handler
	// MaxBodyBytes is the largest body that is read.
	MaxBodyBytes int64
}

// Door serves REST. It is safe for concurrent use.
type Door struct {
	routes    *http.ServeMux
	transcode http.Handler
	paths     []string
	maxBody   int64
}

// New returns a door.
func New(c Config) (*Door, error) {
	var services []*vanguard.Service
	d := &Door{routes: http.NewServeMux(), maxBody: c.MaxBodyBytes}
	for _, service := range c.Services {
		services = append(services, vanguard.NewServiceWithSchema(service, c.Calls,
			vanguard.WithTargetProtocols(vanguard.ProtocolConnect), vanguard.WithTargetCodecs(vanguard.CodecProto),
			vanguard.WithNoTargetCompression(), vanguard.WithTypeResolver(protoregistry.GlobalTypes),
		))
		for i := range service.Methods().Len() {
			call := service.Methods().Get(i)
			for _, route := range v1.RoutesOf(call) {
				d.routes.Handle(route.Method+" "+route.Path, &endpoint{door: d, call: call, route: route})
				d.paths = append(d.paths, route.Path)
			}
		}
	}
	transcoder, err := vanguard.NewTranscoder(services, vanguard.WithCodec(newCodec))
	if err != nil {
		return nil, fmt.Errorf("serve REST: %w", err)
	}
	d.transcode = transcoder
	return d, nil
}

// ServeHTTP answers a request whose path no other door serves.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := validatePath(r.URL); err != nil {
		rpcerror.WriteJSON(w, http.StatusBadRequest, err)
		return
	}
	r = withoutAlias(r)
	match := r
	if r.Method == http.MethodHead {
		match = r.Clone(r.Context())
		match.Method = http.MethodGet // the server leaves the body of the answer out
	}
	handler, pattern := d.routes.Handler(match)
	if pattern == "" {
		d.refuse(w, r, handler)
		return
	}
	handler.ServeHTTP(w, match)
}

// endpoint is one route of a call.
type endpoint struct {
	door  *Door
	call  protoreflect.MethodDescriptor
	route v1.Route
}

// ServeHTTP answers a request for the call.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, status, err := e.readBody(w, r)
	if err != nil {
		rpcerror.WriteJSON(w, status, err)
		return
	}
	if err := e.validateQuery(r.URL.Query()); err != nil {
		rpcerror.WriteJSON(w, 0, err)
		return
	}
	r = r.Clone(r.Context())
	r.Header.Del("Content-Type")
	r.Header.Del("Content-Encoding")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer := &answer{ResponseWriter: w}
	e.door.transcode.ServeHTTP(answer, r)
	answer.finish()
}
