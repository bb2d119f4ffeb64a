package switchyardv1

import (
	"net/http"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Route is one way to reach a call by REST.
type Route struct {
	Method string // such as GET
	Path   string // with variables in braces: /v1/runs/{id}
	Body   string // field of the request that the body is, "*" for all fields, or "" for none
}

// RoutesOf returns the routes of a call, as its google.api.http annotation has them; none if people do not call it.
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
