package cli

import (
	"errors"
	"sync"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	v1 "switchyard/proto/switchyard/v1"
)

// lightValidator makes the process's validator of messages. protovalidate makes
// every file that is linked in known to its expressions, those of the Temporal
// server, of Envoy and of Kubernetes among them: 15 MB and most of the time that
// a small command takes. The rules of our messages name nothing but each other.
//
// The registry of files is a global that has no lock. A command calls this before
// it has started anything that reads it.
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

// addFile adds a file to a registry with all that it imports.
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
