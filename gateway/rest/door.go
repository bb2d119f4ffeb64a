package rest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// minCompressed is the size from which a response is compressed for clients that accept it.
const minCompressed = 4 << 10

// Config holds the dependencies and settings of a Door.
type Config struct {
	// Services are the descriptors of the services.
	Services []protoreflect.ServiceDescriptor
	// Calls serves the services to Connect clients, under the paths of their procedures.
	Calls http.Handler
	// Others serves its own paths ahead of the door. For other methods on these paths, the door returns an
	// error.
	Others *http.ServeMux
	// MaxBodyBytes bounds the size of a body.
	MaxBodyBytes int64
}

// Door serves REST. It is safe for concurrent use.
type Door struct {
	routes    *http.ServeMux
	others    *http.ServeMux
	transcode http.Handler
	compress  http.Handler        // wraps the rest of the door
	templates map[string][]string // paths of the routes, by method
	maxBody   int64
}

// New returns a door.
func New(c Config) (*Door, error) {
	transcode, err := newTranscoder(c.Services, c.Calls)
	if err != nil {
		return nil, err
	}
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(minCompressed))
	if err != nil {
		return nil, fmt.Errorf("serve REST: %w", err)
	}
	d := &Door{routes: http.NewServeMux(), others: c.Others, transcode: transcode, templates: map[string][]string{}, maxBody: c.MaxBodyBytes}
	d.compress = compress(http.HandlerFunc(d.serve))
	for _, service := range c.Services {
		for i := range service.Methods().Len() {
			call := service.Methods().Get(i)
			for _, route := range v1.RoutesOf(call) {
				d.routes.Handle(route.Method+" "+route.Path, newEndpoint(d, call, route))
				if route.Method+" "+route.Path == strings.Replace(storeAlias, " ", " "+prefix, 1) {
					alias := newEndpoint(d, call, route)
					alias.replaces = true
					d.routes.Handle(storeAlias, alias)
				}
				d.templates[route.Method] = append(d.templates[route.Method], route.Path)
			}
		}
	}
	return d, nil
}

// ServeHTTP serves a request whose path belongs to no other handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.compress.ServeHTTP(w, r) }

func (d *Door) serve(w http.ResponseWriter, r *http.Request) {
	if err := validatePath(r.URL); err != nil {
		rpcerror.WriteJSON(w, http.StatusBadRequest, err)
		return
	}
	r = withoutAlias(r)
	match := r
	if r.Method == http.MethodHead {
		match = r.Clone(r.Context())
		match.Method = http.MethodGet // the server omits the body of the response
	}
	handler, pattern := d.routes.Handler(match)
	if pattern == "" {
		d.refuse(w, r)
		return
	}
	handler.ServeHTTP(w, match)
}
