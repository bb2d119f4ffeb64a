package definition

import (
	"cmp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
)

// extensionPrefix is the prefix of top-level keys that are reserved for the author, for example for anchors.
const extensionPrefix = "x-"

// isExtension reports whether a key of a message is reserved for the author.
func isExtension(key string, m protoreflect.MessageDescriptor) bool {
	return strings.HasPrefix(key, extensionPrefix) && m.FullName() == "switchyard.v1.Definition"
}

// shortHint returns a hint for a message that was written as a single value, or "".
func shortHint(message protoreflect.Name, n *source.Node) string {
	text, _ := n.ScalarText()
	switch {
	case message == "Approvers":
		return "write { names: [" + cmp.Or(text, strings.Join(itemTexts(n), ", ")) + "] }, or { roles: [operator] }"
	case message == "SourceDefinition":
		return "write a folder, such as source: ., or { git: https://example.com/app.git }"
	case message == "Artifacts":
		return "write { out: [{ name: files, path: " + source.Quote(append(itemTexts(n), text)[0]) + " }] }"
	case text == "":
	case message == "ArtifactOut":
		return "write { name: files, path: " + source.Quote(text) + " }"
	case message == "ArtifactIn":
		return "write { from: " + text + " }"
	case message == "Notification":
		return "write { to: " + text + ", on: [failed] }"
	case message == "RunConcurrency" && n.Kind == source.Number:
		return "write { maxRuns: " + text + " }"
	case message == "RetryPolicy" && n.Kind == source.Number:
		return "write { maxRetries: " + text + " }"
	case message == "RetryPolicy" && n.Kind == source.Boolean:
		return "write { retryable: " + text + " }"
	case message == "Semaphore" && n.Kind == source.Str:
		return "write { name: " + text + ", limit: 2 }, or mutex: " + text
	case message == "Stop" && n.Kind == source.Str:
		return "write { signal: " + text + " }"
	case message == "Cache" && n.Kind == source.Str:
		return "write { key: ... }, with a CEL expression"
	case message == "ScheduleDefinition" && n.Kind == source.Str:
		return "write { cron: " + source.Quote(text) + " }"
	case message == "InputDefinition":
		return "write { default: " + text + " }, or {} for an input without a default"
	case message == "Resources" && n.Kind == source.Number:
		return "write { cores: " + text + " }"
	case message == "Constraints" && n.Kind == source.Str:
		return "write { nodeLabels: [" + text + "] }, or { targetNode: " + text + " }"
	}
	return ""
}

// itemTexts returns the texts of the scalars in a list.
func itemTexts(n *source.Node) (all []string) {
	for _, item := range n.Items {
		if text, ok := item.ScalarText(); ok {
			all = append(all, text)
		}
	}
	return all
}

// entryHint returns a hint for a list of messages, which is nil for other lists, that was written as its only entry, or "".
func entryHint(message protoreflect.MessageDescriptor, n *source.Node) string {
	switch {
	case message == nil:
	case n.Kind == source.Mapping:
		return "begin the entry with a dash"
	default:
		if entry, ok := strings.CutPrefix(shortHint(message.Name(), n), "write "); ok {
			return "write - " + entry
		}
	}
	return ""
}

// singleHint returns a hint for a single value that was written as a list, or "".
func singleHint(field protoreflect.FieldDescriptor, n *source.Node) string {
	texts := itemTexts(n)
	switch {
	case len(texts) == 1 && !field.ContainingMessage().IsMapEntry():
		return "write " + field.JSONName() + ": " + texts[0]
	case len(texts) > 1 && field.FullName() == "switchyard.v1.Notification.to":
		return "write an entry for each target"
	}
	return ""
}

// writtenType returns the type in the document of the task at p, its own or the default one, or "".
func (r *messageReader) writtenType(p *source.Path) string {
	for _, at := range []*source.Path{p.Key("type"), r.base.Field("defaults").Key("type")} {
		if n := r.nodeAt(at); n != nil && n.Kind == source.Str {
			return n.Text
		}
	}
	return ""
}

// specHint returns a hint for a spec that is not a mapping, given the type of its task, or "".
func specHint(taskType string, n *source.Node) string {
	text, scalar := n.ScalarText()
	shown := source.Quote(text)
	if n.Kind == source.Sequence {
		shown = "[PROGRAM, ARGUMENT]"
	}
	t, known := v1.FindTaskType(taskType)
	// Only a command may be a list.
	if known && (scalar || n.Kind == source.Sequence && taskType == v1.TypeShell) {
		return "write { " + t.MainField + ": " + shown + " }"
	}
	return ""
}
