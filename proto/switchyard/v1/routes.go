package switchyardv1

import (
	"net/http"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Route is one REST route of an API call.
type Route struct {
	Method string // such as GET
	Path   string // variables in braces, such as /v1/runs/{id}
	Body   string // name of the request field in the body, "*" for all fields, or "" for no body
}

// RoutesOf returns the routes in the google.api.http annotation of an API call, or nil for a call without REST
// routes.
func RoutesOf(call protoreflect.MethodDescriptor) []Route {
	rule, _ := proto.GetExtension(call.Options(), annotations.E_Http).(*annotations.HttpRule)
	if rule == nil {
		return nil
	}
	var routes []Route
	for _, binding := range append([]*annotations.HttpRule{rule}, rule.GetAdditionalBindings()...) {
		route := Route{Body: binding.GetBody()}
		switch pattern := binding.GetPattern().(type) {
		case *annotations.HttpRule_Get:
			route.Method, route.Path = http.MethodGet, pattern.Get
		case *annotations.HttpRule_Put:
			route.Method, route.Path = http.MethodPut, pattern.Put
		case *annotations.HttpRule_Post:
			route.Method, route.Path = http.MethodPost, pattern.Post
		case *annotations.HttpRule_Delete:
			route.Method, route.Path = http.MethodDelete, pattern.Delete
		case *annotations.HttpRule_Patch:
			route.Method, route.Path = http.MethodPatch, pattern.Patch
		default:
			route.Method, route.Path = binding.GetCustom().GetKind(), binding.GetCustom().GetPath()
		}
		routes = append(routes, route)
	}
	return routes
}
