package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

// responsePrefix and parameterPrefix are the prefixes of references to shared responses and parameters.
const (
	responsePrefix  = "#/components/responses/"
	parameterPrefix = "#/components/parameters/"
)

// streams maps the paths that can also answer with a stream of server-sent events to the events of the stream.
var streams = map[string]string{
	"/v1/events":                      "transitions of tasks of all runs, named as Event.event, without an end",
	"/v1/runs/{id}/events":            "transitions of tasks, named as Event.event, and `end` with the state of the run",
	"/v1/runs/{id}/logs":              "`log` with a line, `missing` for a log that is gone, and `end`",
	"/v1/runs/{id}/tasks/{task}/logs": "`log` with a line, `missing` for a log that is gone, and `end`",
}

// Fields by which a call shows its behaviour.
const (
	documentField = "document"        // the request may contain a definition as users write it
	keyField      = "idempotency_key" // repeating the request starts nothing
	existedField  = "existed"         // the response may describe what an earlier request started
)

// restarting is the call that starts a run although its request has no key.
const restarting = "RerunRun"

// startsRun reports whether a call answers with 201 when it has started a run.
func startsRun(call protoreflect.MethodDescriptor) bool {
	return call.Name() == restarting || call.Output().Fields().ByName(existedField) != nil
}

// readsYAML reports whether the body of a route may be a definition in YAML.
func readsYAML(call protoreflect.MethodDescriptor, route v1.Route) bool {
	return route.Body == "*" && call.Input().Fields().ByName(documentField) != nil
}

// finishCall completes the operations of a call, one for each route.
func finishCall(paths object, call protoreflect.MethodDescriptor) error {
	routes := v1.RoutesOf(call)
	for _, route := range routes {
		item, _ := paths[route.Path].(object)
		method := strings.ToLower(route.Method)
		if item[method] != nil {
			continue
		}
		twin := twinOf(item, call, route)
		if twin == nil {
			return fmt.Errorf("%s: the plugin's document lacks %s %s", call.FullName(), route.Method, route.Path)
		}
		item[method] = twin
	}
	for _, route := range routes {
		operation, _ := paths[route.Path].(object)[strings.ToLower(route.Method)].(object)
		finishOperation(operation, call, route)
	}
	return nil
}

// twinOf returns a copy of the operation of another route that differs from the given one only in the method, or nil.
// The plugin keeps one operation of a call under each path.
func twinOf(item object, call protoreflect.MethodDescriptor, route v1.Route) object {
	for _, other := range v1.RoutesOf(call) {
		if other.Path != route.Path || other.Body != route.Body {
			continue
		}
		if operation, ok := item[strings.ToLower(other.Method)].(object); ok {
			twin := copyOf(operation).(object)
			twin["operationId"] = fmt.Sprintf("%v_%s", twin["operationId"], strings.ToLower(route.Method))
			return twin
		}
	}
	return nil
}

// copyOf returns a deep copy of a JSON value.
func copyOf(value any) any {
	switch value := value.(type) {
	case object:
		copied := object{}
		for key, below := range value {
			copied[key] = copyOf(below)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, below := range value {
			copied[i] = copyOf(below)
		}
		return copied
	}
	return value
}

func finishOperation(operation object, call protoreflect.MethodDescriptor, route v1.Route) {
	responses, _ := operation["responses"].(object)
	answer, _ := responses["200"].(object)
	answer["description"] = "The answer."
	statuses := map[int]string{http.StatusBadRequest: "BadRequest", http.StatusTooManyRequests: "TooManyRequests", http.StatusServiceUnavailable: "Unavailable"}
	if strings.Contains(route.Path, "{") {
		statuses[http.StatusNotFound] = "NotFound"
	}
	if v1.RulesOf(call).GetEffect() == v1.Effect_EFFECT_WRITE {
		statuses[http.StatusConflict] = "Conflict"
	}
	if body, ok := operation["requestBody"].(object); ok {
		statuses[http.StatusRequestEntityTooLarge] = "TooLarge"
		statuses[http.StatusUnsupportedMediaType] = "UnsupportedMediaType"
		finishBody(body)
		if readsYAML(call, route) {
			addYAML(operation, body, call, route)
		}
	}
	if startsRun(call) {
		finishStart(responses, answer, call)
	}
	for status, name := range statuses {
		responses[fmt.Sprint(status)] = object{"$ref": responsePrefix + name}
	}
	responses["default"] = object{"$ref": responsePrefix + "Error"}
	if events, ok := streams[route.Path]; ok && route.Method == http.MethodGet {
		finishStream(operation, answer, events)
		responses["204"] = object{"description": "The stream named by `Last-Event-ID` has ended, and there is nothing after it."}
	}
	if call.Input().Fields().ByName(keyField) != nil {
		addParameter(operation, "IdempotencyKey")
	}
}

// finishStart adds the response of a call that has started a run. A call that can find an existing run keeps 200.
func finishStart(responses, answer object, call protoreflect.MethodDescriptor) {
	responses["201"] = object{
		"description": "The run has started.",
		"content":     answer["content"],
		"headers":     object{"Location": object{"description": "Path of the run.", "schema": object{"type": "string"}}},
	}
	if call.Output().Fields().ByName(existedField) == nil {
		delete(responses, "200")
		return
	}
	answer["description"] = "The run was there before: an earlier request with the same idempotency key has started it."
}

// finishBody marks a body as required or optional.
func finishBody(body object) {
	content, _ := body["content"].(object)
	json, _ := content["application/json"].(object)
	schema, _ := json["schema"].(object)
	_, needed := schema["required"]
	_, chooses := schema["oneOf"]
	_, refers := schema["$ref"]
	body["required"] = needed || chooses || refers
}

// addYAML adds a YAML definition as a body, and the other fields of the request as parameters.
func addYAML(operation, body object, call protoreflect.MethodDescriptor, route v1.Route) {
	content, _ := body["content"].(object)
	content["application/yaml"] = object{"schema": object{
		"type":             "string",
		"contentMediaType": "application/yaml",
		"description":      "The definition itself, as people write it. The other fields of the request are parameters then.",
	}}
	parameters, _ := operation["parameters"].([]any)
	for i := range call.Input().Fields().Len() {
		field := call.Input().Fields().Get(i)
		kinds := map[protoreflect.Kind]string{protoreflect.StringKind: "string", protoreflect.BoolKind: "boolean"}
		kind := kinds[field.Kind()]
		if kind == "" || field.ContainingOneof() != nil || field.IsList() || strings.Contains(route.Path, "{"+string(field.Name())+"}") {
			continue
		}
		parameters = append(parameters, object{
			"name": field.JSONName(), "in": "query", "schema": object{"type": kind},
			"description": "The field `" + field.JSONName() + "` of the request, where the body is a definition.",
		})
	}
	if len(parameters) > 0 {
		operation["parameters"] = parameters
	}
}

// finishStream adds server-sent events to the response of an operation.
func finishStream(operation, answer object, events string) {
	content, _ := answer["content"].(object)
	content["text/event-stream"] = object{"schema": object{
		"type":        "string",
		"description": "Server-sent events: " + events + ". Each has an `event`, an `id` for `Last-Event-ID`, and `data` in JSON.",
	}}
	answer["description"] = "A page in JSON, or, for `follow=true` or `Accept: text/event-stream`, a stream of server-sent events."
	addParameter(operation, "Follow")
	addParameter(operation, "LastEventID")
	addParameter(operation, "LastEventIDParameter")
}

func addParameter(operation object, name string) {
	parameters, _ := operation["parameters"].([]any)
	operation["parameters"] = append(parameters, object{"$ref": parameterPrefix + name})
}

// checkStreams returns an error for a path in streams that no annotation has.
func checkStreams(paths object) error {
	for path := range streams {
		if _, ok := paths[path]; !ok {
			return fmt.Errorf("streams names %s, which no annotation in proto has", path)
		}
	}
	return nil
}

// errorSchema returns the schema for the body of every error.
func errorSchema() object {
	return object{
		"type":        "object",
		"description": "The body of every error, whatever part of the gateway it comes from.",
		"properties": object{
			"code": object{
				"type":        "string",
				"description": "The kind of the error, as Connect and gRPC name it.",
				"enum":        errorCodes(),
			},
			"message": object{"type": "string", "description": "What is wrong, and what to do about it, for people."},
			"details": object{
				"type":        "array",
				"description": "What programs can act on: `switchyard.v1.ValidationFailure` has every problem of a definition, `google.rpc.ResourceInfo` what is missing.",
				"items": object{
					"type":                 "object",
					"properties":           object{"@type": object{"type": "string", "description": "URL of the type of the detail."}},
					"required":             []any{"@type"},
					"additionalProperties": true,
				},
			},
		},
		"required": []any{"code", "message"},
	}
}

func errorCodes() []any {
	return []any{
		"canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied",
		"resource_exhausted", "failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable",
		"data_loss", "unauthenticated",
	}
}

// errorResponses returns the responses that operations share.
func errorResponses() object {
	responses := object{}
	for name, text := range map[string]string{
		"BadRequest":           "A field, a parameter or the definition is wrong; the message names the place and the remedy.",
		"NotFound":             "What the path names does not exist.",
		"Conflict":             "The state forbids it, or another request was first.",
		"TooLarge":             "The body is larger than the gateway reads.",
		"UnsupportedMediaType": "The body is neither JSON nor, where this is allowed, YAML.",
		"TooManyRequests":      "A bound of the gateway is reached; try again later.",
		"Unavailable":          "The gateway cannot reach what it needs, or shuts down; try again.",
		"Error":                "Any other error.",
	} {
		response := object{
			"description": text,
			"content":     object{"application/json": object{"schema": object{"$ref": schemaPrefix + "Error"}}},
		}
		if slices.Contains([]string{"TooManyRequests", "Unavailable"}, name) {
			response["headers"] = object{"Retry-After": object{
				"description": "Seconds to wait, if the gateway knows how many.",
				"schema":      object{"type": "string"},
			}}
		}
		responses[name] = response
	}
	return responses
}

// sharedParameters returns the parameters that no message has.
func sharedParameters() object {
	return object{
		"Follow": object{
			"name": "follow", "in": "query", "schema": object{"type": "boolean"},
			"description": "Answer a stream of server-sent events, which continues until the run has ended or the client leaves.",
		},
		"LastEventID": object{
			"name": "Last-Event-ID", "in": "header", "schema": object{"type": "string"},
			"description": "Continue a stream after the event with this id. Browsers send it when they connect again.",
		},
		"LastEventIDParameter": object{
			"name": "lastEventId", "in": "query", "schema": object{"type": "string"},
			"description": "The same as the header `Last-Event-ID`, of a stream, for programs that cannot set it.",
		},
		"IdempotencyKey": object{
			"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string", "maxLength": 255},
			"description": "The same as `idempotencyKey` of the body: the same key and the same request give what the first request has started.",
		},
	}
}
