package switchyardv1

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// SharedDirCapability is "true" on nodes with a shared folder.
	SharedDirCapability = "shared-dir"
	// SharedDirVariable is the variable of tasks that names the shared folder of their node. It is not set without one.
	SharedDirVariable = "SWITCHYARD_SHARED_DIR"
)

// NeedsSharedDir reports whether a task needs a node with a shared folder: a text of its spec or its env names the variable
// other than with a fallback, such as ${SWITCHYARD_SHARED_DIR:-/tmp}. Without the folder, "rm -rf $SWITCHYARD_SHARED_DIR/"
// would empty the root of the node.
func NeedsSharedDir(taskType string, spec *structpb.Struct, env map[string]string) bool {
	t, _ := FindTaskType(taskType)
	if !NeedsNode(taskType) || t.Remote || taskType == TypeClaudeRelay {
		return false // it does not run on the node
	}
	//workflowcheck:ignore (one is enough, whichever comes first)
	for _, value := range env {
		if NamesVariable(value, SharedDirVariable) {
			return true
		}
	}
	return anyText(structpb.NewStructValue(spec), func(text string) bool { return NamesVariable(text, SharedDirVariable) })
}

// NamesVariable reports whether a text names a variable other than as ${NAME-fallback}, with -, + or =, also after a colon.
func NamesVariable(text, name string) bool {
	for {
		before, after, found := strings.Cut(text, name)
		if !found {
			return false
		}
		text = after
		operator := strings.TrimPrefix(after, ":")
		hasFallback := strings.HasSuffix(before, "${") && operator != "" && strings.ContainsRune("-+=", rune(operator[0]))
		isLonger := before != "" && isWord(before[len(before)-1]) || after != "" && isWord(after[0])
		if !hasFallback && !isLonger {
			return true
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// anyText reports whether a text of a value satisfies is.
func anyText(v *structpb.Value, is func(string) bool) bool {
	switch v := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return is(v.StringValue)
	case *structpb.Value_ListValue:
		return slices.ContainsFunc(v.ListValue.GetValues(), func(item *structpb.Value) bool { return anyText(item, is) })
	case *structpb.Value_StructValue:
		//workflowcheck:ignore (one is enough, whichever comes first)
		for _, field := range v.StructValue.GetFields() {
			if anyText(field, is) {
				return true
			}
		}
	}
	return false
}
