package k8sjob

import (
	"errors"
	"fmt"
	"os"

	"switchyard/activities/executor/k8sjob/podhelper"
	"switchyard/activities/executor/k8sjob/podstate"
)

// keepFiles stores the files that the program left where the node reads them: the output from the termination message
// or, with a helper, all files from the log.
func (f *following) keepFiles(message string) error {
	if f.log.filter == nil {
		if len(message) >= podstate.MaxTerminationMessage {
			return fmt.Errorf("the output exceeds the %d bytes of a Kubernetes termination message; start the nodes with --kube-helper-image, or write the output to a bucket", podstate.MaxTerminationMessage)
		}
		return f.keepFile("SWITCHYARD_OUTPUT", []byte(message))
	}
	if !f.log.isComplete() {
		return errors.New("the log of the pod could not be read to its end, so the program's files are lost")
	}
	files, err := f.log.filter.Files()
	if err != nil {
		return err
	}
	return errors.Join(f.keepFile("SWITCHYARD_OUTPUT", files[podhelper.Output]), f.keepFile("SWITCHYARD_CONTEXT_UPDATE", files[podhelper.ContextUpdate]))
}

// keepFile writes a file of the attempt to the path in a variable. It is a no-op if the file or the variable is empty.
func (f *following) keepFile(variable string, data []byte) error {
	path := f.Env[variable]
	if path == "" || len(data) == 0 {
		return nil
	}
	return os.WriteFile(path, data, 0o600)
}
