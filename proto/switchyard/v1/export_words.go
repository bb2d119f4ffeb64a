package switchyardv1

import "google.golang.org/protobuf/reflect/protoreflect"

// What an import does with an item, the values of PlanImportResponse.action.
const (
	ImportCreate = "create"
	ImportChange = "change"
	ImportKeep   = "keep"
)

// Kinds of exported items, the values of ExportedItem.kind.
const (
	ExportEnvironment = "environment"
	ExportKey         = "key"
	ExportSecret      = "secret"
	ExportToken       = "token"
	ExportWorkflow    = "workflow"
)

// ExportKinds returns the kinds of exported items, each with the field that holds its content, in the order of ExportedItem.
func ExportKinds() protoreflect.FieldDescriptors {
	return (&ExportedItem{}).ProtoReflect().Descriptor().Oneofs().ByName("content").Fields()
}
