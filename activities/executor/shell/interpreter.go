package shell

import (
	"fmt"

	"switchyard/activities/executor"
	"switchyard/workflows/interpreter"
)

// interpreted completes a program that is a text. It looks for the interpreter in advance, since the exit code of a program that
// env does not find, for example, would look like that of the command.
func (e *Executor) interpreted(p program, c command, a executor.Attempt) (program, error) {
	text, err := interpreter.New(c.line, c.shell)
	if err != nil {
		return program{}, badSpec(fmt.Errorf("shell spec: %w", err))
	}
	file, err := a.Dirs.WriteScript(text)
	if err != nil {
		return program{}, err
	}
	p.argv, p.path = text.Argv(file, nil), e.shell
	if text.Choice() == "" {
		if e.shell == "" {
			return program{}, &executor.StartError{ExitCode: codeNotFound, BadSpec: true, Err: fmt.Errorf(
				"%s has no sh, which runs a command that is a string; write the command as a list, or give the node a shell", nodeOf(p))}
		}
		return p, nil
	}
	for i, name := range text.Names() {
		found := p
		found.argv = []string{name}
		if found.path, err = lookPath(name, p.dir, p.environ); err == nil {
			err = runnable(found)
		}
		if start := executor.AsStartError(err); start != nil {
			return program{}, &executor.StartError{ExitCode: start.ExitCode, BadSpec: true, Err: fmt.Errorf(
				"%s names %s, which does not run on %s (%w); install it there, or name another interpreter", text.Choice(), shorten(name), nodeOf(p), start.Err)}
		}
		if err != nil {
			return program{}, err
		}
		if i == 0 {
			p.path = found.path
		}
	}
	return p, nil
}
