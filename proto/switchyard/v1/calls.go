package switchyardv1

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Services returns every service of the API, in the order of the documentation.
func Services() []protoreflect.ServiceDescriptor {
	var all []protoreflect.ServiceDescriptor
	for _, file := range []protoreflect.FileDescriptor{
		File_switchyard_v1_run_service_proto,
		File_switchyard_v1_task_service_proto,
		File_switchyard_v1_workflow_service_proto,
		File_switchyard_v1_vps_service_proto,
		File_switchyard_v1_environment_service_proto,
		File_switchyard_v1_schedule_service_proto,
		File_switchyard_v1_node_service_proto,
		File_switchyard_v1_auth_service_proto,
		File_switchyard_v1_secret_service_proto,
		File_switchyard_v1_notification_service_proto,
		File_switchyard_v1_owner_service_proto,
		File_switchyard_v1_key_service_proto,
		File_switchyard_v1_audit_service_proto,
		File_switchyard_v1_export_service_proto,
		File_switchyard_v1_blob_service_proto,
	} {
		for i := range file.Services().Len() {
			all = append(all, file.Services().Get(i))
		}
	}
	return all
}

// RulesOf returns the rules of an API call, or nil if it has none.
func RulesOf(call protoreflect.MethodDescriptor) *CallRules {
	rules, _ := proto.GetExtension(call.Options(), E_Rules).(*CallRules)
	return rules
}
