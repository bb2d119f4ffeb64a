//go:build !unix

package shell

import (
	"errors"
	"io/fs"
	"os"

	"switchyard/activities/executor"
)

func resultOf(state *os.ProcessState) executor.Result {
	return executor.Result{ExitCode: state.ExitCode(), CPUTime: state.UserTime() + state.SystemTime()}
}

func isKilled(*os.ProcessState) bool { return false }

func ownPeak() int64 { return 0 }

func isTaskFault(err error) bool { return errors.Is(err, fs.ErrPermission) }
