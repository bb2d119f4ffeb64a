package web

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

// link is a link styled as a button.
type link struct {
	Text, URL string
	// Forbidden is why the caller may not use the link, or "".
	Forbidden string
}

// newLink returns a link to a page for callers who may make a call.
func newLink(text, url string, call protoreflect.FullName, caller *auth.Principal) link {
	return link{text, url, forbiddenReason(text, call, caller)}
}

// button is a submit button of a form that is not a simple action.
type button struct {
	Text, Value string
	Forbidden   string // why the caller may not use it, or ""
	Danger      bool
}

// newButton returns a button for callers who may make a call.
func newButton(text, value string, call protoreflect.FullName, caller *auth.Principal) button {
	return button{Text: text, Value: value, Forbidden: forbiddenReason(text, call, caller)}
}

// forbiddenReason returns why the role of a caller does not allow a call, or "" if it does. The text names the call by
// label.
func forbiddenReason(label string, call protoreflect.FullName, caller *auth.Principal) string {
	least := v1.RulesOf(callNamed(call)).GetRole()
	if caller.Role.Includes(least) {
		return ""
	}
	return fmt.Sprintf("%s needs the role %s; you have the role %s", label, least.Word(), caller.Role.Word())
}
