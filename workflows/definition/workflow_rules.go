package definition

import (
	"regexp"
	"strings"
	"sync"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/secretref"
)

// workflowRules checks the small fields of a whole workflow.
type workflowRules struct{ *decoder }

// a2a warns about a workflow that is offered to other agents although they will not find or choose it.
func (r workflowRules) a2a(def *v1.Definition, p *source.Path) {
	switch {
	case !def.GetA2A():
	case r.depth > 0:
		r.Warn(r.locateKey(p), p, "a2a has no effect in the definition of a task of type run", "`switchyard workflows put` offers a stored definition")
	case strings.TrimSpace(def.GetDescription()) == "":
		r.Warn(r.locateKey(p), p, "a2a offers the workflow to other agents, but it has no description", "other agents choose a skill by its description")
	}
}

// concurrency checks the limit on open runs of the workflow.
func (r workflowRules) concurrency(c *v1.RunConcurrency, p *source.Path) {
	if c.GetStrategy() != "" && c.GetMaxRuns() == 0 && !r.IsSettled(p.Field("maxRuns")) {
		r.Add(r.locateKey(p.Field("strategy")), p.Field("strategy"), "concurrency.strategy has no effect without maxRuns", "maxRuns: 1 lets one run at a time")
	}
}

// The forms of the URL of a git repository: with a scheme, or user@host:path as ssh takes it.
var (
	gitURL = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(https?|ssh|git|file)://[^\s]+$`) })
	gitSCP = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9_.-]+:[^\s]+$`)
	})
	// gitPassword matches a URL with a user and a password.
	gitPassword = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]+://[^/@]*:[^/@]*@`) })
	gitRef      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./+@#-]*$`) })
)

// source checks where the files come from with which tasks start.
func (r workflowRules) source(s *v1.SourceDefinition, p *source.Path) {
	if s == nil {
		return
	}
	if r.depth > 0 {
		r.Add(r.locateKey(p), p, "source has no effect on a child run", "let a task of the child run fetch its files")
		return
	}
	git := p.Field("git")
	switch {
	case r.IsSettled(p):
	case s.GetGit() != "" && s.GetDir() != "":
		r.Add(r.locateKey(git), git, "source.git and source.dir exclude each other", "remove one of them; `--source DIR` sends a folder in the place of a repository")
	case s.GetGit() == "" && s.GetDir() == "":
		r.Add(r.locateKey(p), p, "source names neither a folder nor a repository", "write source: . or source: { git: https://example.com/app.git }")
	case s.GetGit() == "" && (gitURL().MatchString(s.GetDir()) || gitSCP().MatchString(s.GetDir())):
		r.Add(r.locate(p), p, "source is a folder, and "+source.Quote(s.GetDir())+" is a URL", "write source: { git: "+s.GetDir()+" }")
	case s.GetGit() == "" && (s.GetRef() != "" || s.GetPath() != "" || s.GetSecret() != ""):
		r.Add(r.locateKey(p), p, "ref, path and secret of a source have no effect without git", "a folder is sent as it is")
	case s.GetGit() != "":
		r.repository(s, p)
	}
}

// repository checks the fields of a source from git. The value of a secret that is no reference may be the secret itself, and is not shown.
func (r workflowRules) repository(s *v1.SourceDefinition, p *source.Path) {
	git, ref, folder, secret := p.Field("git"), p.Field("ref"), p.Field("path"), p.Field("secret")
	switch {
	case gitPassword().MatchString(s.GetGit()):
		r.AddHidden(r.locate(git), git, "source.git has a password in its URL, which everybody could read", "store it by `switchyard secrets set NAME`, and write secret: store:NAME")
	case !gitURL().MatchString(s.GetGit()) && !gitSCP().MatchString(s.GetGit()):
		r.Add(r.locate(git), git, "source.git "+source.Quote(s.GetGit())+" is not the URL of a repository", "such as https://example.com/app.git, git@example.com:app.git, or file:///srv/app.git on the node")
	}
	if s.GetRef() != "" && !gitRef().MatchString(s.GetRef()) {
		r.Add(r.locate(ref), ref, "source.ref "+source.Quote(s.GetRef())+" is not the name of a branch or tag, nor a commit id", "it cannot come from an expression")
	}
	if leadsOut(s.GetPath()) {
		r.Add(r.locate(folder), folder, "source.path "+source.Quote(s.GetPath())+" leads out of the repository", "it is a folder below its root")
	}
	if _, fault := secretref.Parse(s.GetSecret()); s.GetSecret() != "" && fault != nil {
		r.AddHidden(r.locate(secret), secret, "source.secret "+fault.Reason, fault.Hint)
	}
}

// escapeInKeys must not occur in the name of a workflow, because a store in a folder takes it for an escape sequence.
const escapeInKeys = "__0x"

// name reports a workflow name that contains escapeInKeys, which the pattern of the model cannot exclude.
func (r workflowRules) name(name string, p *source.Path) {
	if strings.Contains(name, escapeInKeys) {
		r.Add(r.locate(p), p, "workflow name "+source.Quote(name)+" is not allowed: it contains "+escapeInKeys, "did you mean "+strings.ReplaceAll(name, escapeInKeys, "_0x")+"?")
	}
}
