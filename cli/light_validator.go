package cli

import (
	"errors"
	"sync"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	v1 "switchyard/proto/switchyard/v1"
)

// lightValidator sets up the message validator of the process. By default protovalidate registers every linked file
// with its expressions, among them those of the Temporal server, Envoy and Kubernetes: 15 MB, and most of the time of a
// small command. The rules of Switchyard's messages refer only to each other.
//
// The file registry is a global without a lock. A command calls lightValidator before it starts anything that reads the
// registry.
var lightValidator = sync.OnceValue(func() error {
	all := protoregistry.GlobalFiles
	ours := new(protoregistry.Files)
	var errs []error
	for _, service := range v1.Services() {
		errs = append(errs, addFile(ours, service.ParentFile()))
	}
	protoregistry.GlobalFiles = ours
	defer func() { protoregistry.GlobalFiles = all }()
	return errors.Join(append(errs, protovalidate.Validate(&v1.GetRunRequest{Id: "any"}))...)
})

// addFile adds a file and all its imports to a registry.
func addFile(files *protoregistry.Files, file protoreflect.FileDescriptor) error {
	if _, err := files.FindFileByPath(file.Path()); err == nil {
		return nil
	}
	for i := range file.Imports().Len() {
		if err := addFile(files, file.Imports().Get(i).FileDescriptor); err != nil {
			return err
		}
	}
	return files.RegisterFile(file)
}
