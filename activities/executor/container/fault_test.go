package container

import (
	"errors"
	"testing"

	"switchyard/activities/executor"
)

func TestFaultsOfTheEngineAreClassified(t *testing.T) {
	for text, want := range map[string]*executor.StartError{
		`OCI runtime create failed: exec: "x": executable file not found in $PATH`: {ExitCode: codeNotFound},
		`OCI runtime create failed: exec format error`:                             {ExitCode: codeCannotRun},
		`exec /bin/echo: Argument list too long: unknown`:                          {ExitCode: codeCannotRun, BadSpec: true},
		`no space left on device`:                                                  nil,
		`something else`:                                                           nil,
	} {
		got := executor.AsStartError(classifyFault("start container x", errors.New(text)))
		if (got == nil) != (want == nil) || got != nil && (got.ExitCode != want.ExitCode || got.BadSpec != want.BadSpec) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
