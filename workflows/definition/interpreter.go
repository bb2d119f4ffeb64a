package definition

import (
	"errors"
	"path"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/interpreter"
)

// shellField is the field that names what runs a command that is a text.
const shellField = "shell"

// interpreted is a spec with a command that may be a text, for which it may name a shell.
type interpreted interface {
	proto.Message
	GetCommand() *structpb.Value
	GetShell() *structpb.Value
}

// shell decodes what runs commands: a word, or a list of a program and its arguments.
func (r *messageReader) shell(n *source.Node, p *source.Path) (*structpb.Value, bool) {
	v, ok := r.freeValue(n, p)
	if ok {
		ok = interpreterRules{r.decoder}.shell(v, p)
	}
	return v, ok
}

// shell checks the value of a shell, and reports whether it is right.
func (r interpreterRules) shell(v *structpb.Value, p *source.Path) bool {
	if v == nil || holdsTemplate(v) {
		return true // the value of an expression is checked when an attempt starts
	}
	_, err := interpreter.New("", v)
	if fault, wrong := errors.AsType[*interpreter.ShellError](err); wrong {
		r.Fail(r.locate(p), p, p.Local()+" "+fault.Fault, fault.Hint)
		return false
	}
	return true
}

// namesInterpreter reports whether a value is what spec.shell takes, rather than a command: a name such as bash, or a list such as
// [bash, -c].
func namesInterpreter(n *source.Node) bool {
	var words []string
	if text, ok := n.ScalarText(); ok {
		words = strings.Fields(text)
	}
	for _, item := range n.Items {
		text, _ := item.ScalarText()
		words = append(words, text)
	}
	if len(words) == 0 || interpreter.ValueFor(path.Base(words[0])) == "" {
		return false
	}
	last := words[len(words)-1]
	return len(words) == 1 || strings.HasPrefix(last, "-") || last == "{0}"
}

// inheritShell gives the shell of the defaults to a spec whose command is a text that does not choose its interpreter. canonical is
// the JSON form of the spec.
func (r *defaultsReader) inheritShell(spec proto.Message, canonical *structpb.Struct, at *source.Path) {
	s, ok := spec.(interpreted)
	if !ok || r.defaultShell == nil {
		return
	}
	p := at.Field(shellField)
	if text := s.GetCommand().GetStringValue(); text == "" || interpreter.HasShebang(text) || s.GetShell() != nil || r.IsSettled(p) {
		return
	}
	r.shellUsed = true
	switch s := s.(type) {
	case *v1.ShellSpec:
		s.Shell = r.defaultShell
	case *v1.ContainerSpec:
		s.Shell = r.defaultShell
	case *v1.K8SJobSpec:
		s.Shell = r.defaultShell
	}
	canonical.Fields[shellField] = r.defaultShell
	r.copyPlace(r.base.Field("defaults").Field("spec").Field(shellField), p)
}

// interpreterRules checks what runs the command of a task.
type interpreterRules struct{ *decoder }

func (r interpreterRules) check(spec interpreted, at *source.Path) {
	p := at.Field(shellField)
	if spec.GetShell() == nil || r.IsSettled(at.Field("command")) {
		return
	}
	switch text := spec.GetCommand().GetStringValue(); {
	case text == "":
		r.Add(r.locateKey(p), p, "spec.shell is for a command that is a string; a list, and the program of an image, run without a shell",
			"write the command as a string, or leave shell out")
	case interpreter.HasShebang(text):
		r.Add(r.locateKey(p), p, "spec.shell and the #! line of the command both say what runs it", "leave one of them out")
	}
	if s, ok := spec.(interface{ GetArgs() []string }); ok && len(s.GetArgs()) > 0 && spec.GetShell().GetStringValue() == "pwsh" {
		args := at.Field("args")
		r.Add(r.locateKey(args), args, "spec.args do not reach a command that pwsh runs", "pass them through env")
	}
}
