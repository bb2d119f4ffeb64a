package audit

import (
	"context"
	"net"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// Results of calls, AuditEntry.result, and those that filters know besides.
	resultOK      = "ok"
	resultRefused = v1.EventRefused
	resultFailed  = v1.EventFailed
	// maxText bounds each text of an entry that a caller chooses, in bytes.
	maxText = 256
)

// newEntry returns an entry about the caller of ctx.
func newEntry(ctx context.Context, action, address, forwarded string) *v1.AuditEntry {
	p := auth.From(ctx)
	return &v1.AuditEntry{
		By: cut(p.Name), Role: p.Role.Word(), Kind: p.Kind, Token: p.ID, Action: cut(action), From: hostOf(address), ForwardedFor: cut(forwarded),
	}
}

// end adds how a call has ended. Only a refusal says why: other errors may repeat what the call carried.
func end(e *v1.AuditEntry, err error) {
	e.Result = resultOK
	if err == nil {
		return
	}
	code := rpcerror.CodeOf(err)
	e.Result = code.String()
	if isRefusal(code) {
		e.Reason = cut(messageOf(err))
	}
}

func isRefusal(code connect.Code) bool {
	return code == connect.CodeUnauthenticated || code == connect.CodePermissionDenied
}

func messageOf(err error) string {
	if said, ok := rpcerror.ToConnect(err).(*connect.Error); ok {
		return said.Message()
	}
	return err.Error()
}

// objectKinds has the kind of object that a field of a request or an answer names, by the service, or "" for all.
var objectKinds = map[protoreflect.Name]map[protoreflect.Name]string{
	"":                {"run": "run", "task": "task", "workflow": "workflow", "node": "node", "batch": "batch", "batch_id": "batch"},
	"RunService":      {"id": "run"},
	"TaskService":     {"id": "run"},
	"WorkflowService": {"name": "workflow", "id": "run"},
	"ScheduleService": {"name": "schedule", "run_id": "run", "id": "run"},
	"NodeService":     {"name": "node"},
	"SecretService":   {"name": "secret", "secret": "secret"},
	"AuthService":     {"name": "token", "id": "token"},
}

// addObjects adds the objects that a message of a call names. A later message adds what the ones before did not name.
func addObjects(e *v1.AuditEntry, call protoreflect.MethodDescriptor, message protoreflect.Message) {
	for _, service := range []protoreflect.Name{call.Parent().Name(), ""} {
		fields := message.Descriptor().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			kind := objectKinds[service][field.Name()]
			if kind == "" || field.Kind() != protoreflect.StringKind || field.IsList() || field.IsMap() {
				continue
			}
			text := message.Get(field).String()
			if text == "" || e.GetObjects()[kind] != "" {
				continue
			}
			if e.Objects == nil {
				e.Objects = map[string]string{}
			}
			e.Objects[kind] = cut(text)
		}
	}
}

// actionOf names a call.
func actionOf(call protoreflect.MethodDescriptor) string {
	return string(call.Parent().Name()) + "/" + string(call.Name())
}

// hostOf returns the host of an address.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return cut(address)
}

func cut(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return strings.ToValidUTF8(text, "")
}
