package switchyardv1

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func TestServicesListsEveryService(t *testing.T) {
	protoregistry.GlobalFiles.RangeFilesByPackage("switchyard.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			if service := file.Services().Get(i); !slices.Contains(Services(), service) {
				t.Errorf("Services lacks %s", service.FullName())
			}
		}
		return true
	})
}
