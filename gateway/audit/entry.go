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

// maxText bounds each caller-chosen text of an entry, in bytes.
const maxText = 256

// newEntry returns an entry about the caller of ctx.
func newEntry(ctx context.Context, action, address, forwarded string) *v1.AuditEntry {
	p := auth.From(ctx)
	return &v1.AuditEntry{
		By: sanitize(p.Name), Role: p.Role.Word(), Kind: p.Kind, Token: p.ID, Action: sanitize(action), From: hostOf(address), ForwardedFor: sanitize(forwarded),
	}
}

// setResult sets the result of a call. Only refusals include the reason, because other errors may repeat the contents of the
// call.
func setResult(e *v1.AuditEntry, err error) {
	e.Result = v1.AuditOK
	if err == nil {
		return
	}
	code := rpcerror.CodeOf(err)
	e.Result = code.String()
	if isRefusal(code) {
		e.Reason = sanitize(messageOf(err))
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

// objectKinds maps the name of a field in a request or response to the kind of object that it names. The outer key is a
// message or a service, or "" for all.
var objectKinds = map[protoreflect.Name]map[protoreflect.Name]string{
	"":                    {"run": "run", "task": "task", "workflow": "workflow", "node": "node", "batch": "batch", "batch_id": "batch"},
	"RunService":          {"id": "run"},
	"RerunRunResponse":    {"id": "copy"},
	"TaskService":         {"id": "run"},
	"VpsService":          {"id": "run"},
	"WorkflowService":     {"name": "workflow", "id": "run"},
	"ScheduleService":     {"name": "schedule", "run_id": "run", "id": "run"},
	"NodeService":         {"name": "node"},
	"SecretService":       {"name": "secret", "secret": "secret"},
	"NotificationService": {"name": "target"},
	"OwnerService":        {"name": "owner"},
	"AuthService":         {"name": "name", "id": "token"},
	"KeyService":          {"fingerprint": "key", "name": "name"},
	"EnvironmentService":  {"name": "environment", "image": "image", "vm_image": "image"},
	"ExportService":       {"recipient": "recipient"},
	"ExportedItem":        {"kind": "kind", "name": "name"},
	"BlobService":         {"key": "value", "prefix": "value"},
}

// subjects are the nested messages that name objects.
var subjects = []protoreflect.FullName{
	(&v1.ExportedItem{}).ProtoReflect().Descriptor().FullName(), (&v1.Token{}).ProtoReflect().Descriptor().FullName(), (&v1.Key{}).ProtoReflect().Descriptor().FullName(), (&v1.Environment{}).ProtoReflect().Descriptor().FullName(),
}

// addObjects adds the objects that a message of a call names. The response is added after its request and takes precedence,
// because a request may have a shortened id.
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

// objectKind returns the kind of object that a field of a call names, or "" if it names none.
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
	e.Objects[kind] = sanitize(name)
	if kind == "value" {
		if run, _, err := storekey.SplitRun(name); err == nil {
			e.Objects["run"] = sanitize(run)
		}
	}
}

// actionOf returns the name of a call in the audit.
func actionOf(call protoreflect.MethodDescriptor) string {
	return string(call.Parent().Name()) + "/" + string(call.Name())
}

// hostOf returns the host part of an address.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return sanitize(address)
}

// secretText matches tokens of this system and of OIDC issuers in a caller's text. Users sometimes paste them in place of an
// id or a path.
var secretText = regexp.MustCompile(`(sy_[^_/\s]{0,16}_|eyJ[\w-]+\.)[^/\s]+`)

// sanitize returns a caller's text in the form that an entry may have: truncated, and with tokens masked.
func sanitize(text string) string {
	text = secretText.ReplaceAllString(strings.ToValidUTF8(text, ""), "${1}***")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}
