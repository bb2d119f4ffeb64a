package audit

import (
	"context"
	"net"
	"regexp"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// maxText bounds each text of an entry that a caller chooses, in bytes.
const maxText = 256

// newEntry returns an entry about the caller of ctx.
func newEntry(ctx context.Context, action, address, forwarded string) *v1.AuditEntry {
	p := auth.From(ctx)
	return &v1.AuditEntry{
		By: cut(p.Name), Role: p.Role.Word(), Kind: p.Kind, Token: p.ID, Action: cut(action), From: hostOf(address), ForwardedFor: cut(forwarded),
	}
}

// end adds how a call has ended. Only a refusal says why: other errors may repeat what the call carried.
func end(e *v1.AuditEntry, err error) {
	e.Result = v1.AuditOK
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

// objectKinds has the kind of object that a field of a request or an answer names: by the message, or by the service, or
// with "" for all.
var objectKinds = map[protoreflect.Name]map[protoreflect.Name]string{
	"":                   {"run": "run", "task": "task", "workflow": "workflow", "node": "node", "batch": "batch", "batch_id": "batch"},
	"RunService":         {"id": "run"},
	"RerunRunResponse":   {"id": "copy"},
	"TaskService":        {"id": "run"},
	"VpsService":         {"id": "run"},
	"WorkflowService":    {"name": "workflow", "id": "run"},
	"ScheduleService":    {"name": "schedule", "run_id": "run", "id": "run"},
	"NodeService":        {"name": "node"},
	"SecretService":      {"name": "secret", "secret": "secret"},
	"AuthService":        {"name": "name", "id": "token"},
	"KeyService":         {"fingerprint": "key", "name": "name"},
	"EnvironmentService": {"name": "environment", "image": "image", "vm_image": "image"},
	"BlobService":        {"key": "value", "prefix": "value"},
}

// subjects are the messages within messages that name objects.
var subjects = []protoreflect.FullName{
	(&v1.Token{}).ProtoReflect().Descriptor().FullName(), (&v1.Key{}).ProtoReflect().Descriptor().FullName(), (&v1.Environment{}).ProtoReflect().Descriptor().FullName(),
}

// addObjects adds the objects that a message of a call names. An answer is added after its request, and knows better: people
// may shorten ids.
func addObjects(e *v1.AuditEntry, call protoreflect.MethodDescriptor, message protoreflect.Message) {
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.IsList() || field.IsMap() || !message.Has(field) {
			continue
		}
		switch field.Kind() {
		case protoreflect.MessageKind:
			if m := message.Get(field).Message(); slices.Contains(subjects, m.Descriptor().FullName()) {
				addObjects(e, call, m)
			}
		case protoreflect.StringKind:
			if kind := objectKind(call, field); kind != "" {
				addObject(e, kind, message.Get(field).String())
			}
		}
	}
}

// objectKind returns the kind of object that a text of a call names, or "" if it names none.
func objectKind(call protoreflect.MethodDescriptor, field protoreflect.FieldDescriptor) string {
	for _, of := range []protoreflect.Name{field.ContainingMessage().Name(), call.Parent().Name(), ""} {
		if kind := objectKinds[of][field.Name()]; kind != "" {
			return kind
		}
	}
	return ""
}

func addObject(e *v1.AuditEntry, kind, name string) {
	if e.Objects == nil {
		e.Objects = map[string]string{}
	}
	e.Objects[kind] = cut(name)
	if kind == "value" {
		if run, _, err := storekey.SplitRun(name); err == nil {
			e.Objects["run"] = cut(run)
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

// secretText finds what gives the text of a caller away as a token of this system or as one of an issuer: people paste them
// where an id or a path belongs.
var secretText = regexp.MustCompile(`(sy_[^_/\s]{0,16}_|eyJ[\w-]+\.)[^/\s]+`)

// cut returns the text of a caller as an entry may have it: short, and without tokens.
func cut(text string) string {
	text = secretText.ReplaceAllString(strings.ToValidUTF8(text, ""), "${1}***")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}
