package definitions

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	"switchyard/activities/library"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/nearest"
	"switchyard/workflows/policy"
)

// workflowNameText matches valid workflow names.
var workflowNameText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`) })

// CheckName returns an error for an invalid workflow name.
func CheckName(name string) error {
	if !workflowNameText().MatchString(name) {
		return rpcerror.Invalid("%.80q is not a valid workflow name; use at most 63 of [A-Za-z0-9._-], starting with a letter or digit", name)
	}
	return nil
}

// maxStoredChecks bounds the number of stored workflows that one request looks up. A task that names a missing workflow
// beyond it fails when it runs.
const maxStoredChecks = 200

// FindMissing returns a problem for each reference to a workflow that is not stored.
func (c Checker) FindMissing(ctx context.Context, places []definition.StoredReference) (source.Problems, error) {
	var missing source.Problems
	var stored []string
	known := map[string]bool{}
	for _, place := range places {
		is, looked := known[place.Name]
		if !looked && len(known) == maxStoredChecks {
			continue
		}
		if !looked {
			_, err := c.Library.Get(ctx, place.Name)
			if err != nil && !errors.Is(err, library.ErrUnknown) {
				return nil, err
			}
			is = err == nil
			known[place.Name] = is
		}
		if is {
			continue
		}
		if len(missing) == 0 {
			stored = c.storedNames(ctx)
		}
		problem := proto.CloneOf(place.Place)
		problem.Message = "no workflow is stored under the name " + source.Quote(place.Name)
		if problem.Hint = nearest.DidYouMean(place.Name, stored); problem.Hint == "" {
			problem.Hint = "`switchyard workflows put FILE` stores one, `switchyard workflows list` shows those that are"
		}
		missing = append(missing, problem)
	}
	return missing, nil
}

// WarnOfTargets returns a problem for each place that names a target of notifications that is not stored. It returns none if the targets
// cannot be listed: the messages wait until a target has the name.
func (c Checker) WarnOfTargets(ctx context.Context, places []definition.StoredReference) source.Problems {
	if len(places) == 0 {
		return nil
	}
	all, unreadable, err := c.Targets.List(ctx)
	if err != nil || len(unreadable) > 0 {
		return nil
	}
	var stored []string
	for _, target := range all {
		stored = append(stored, target.GetName())
	}
	var problems source.Problems
	for _, place := range places {
		if slices.Contains(stored, place.Name) {
			continue
		}
		problem := proto.CloneOf(place.Place)
		problem.Message = "no notification target is stored under the name " + source.Quote(place.Name) + "; messages to it wait for one"
		if problem.Hint = nearest.DidYouMean(place.Name, stored); problem.Hint == "" {
			problem.Hint = "`switchyard notifications put " + place.Name + " --type TYPE --from-file FILE` stores it"
		}
		problems = append(problems, problem)
	}
	return problems
}

// WarnOfTolerations returns a problem for each word in `tolerates` for which no node is kept. It returns none if the nodes cannot be
// listed.
func (c Checker) WarnOfTolerations(ctx context.Context, places []definition.StoredReference) source.Problems {
	if len(places) == 0 {
		return nil
	}
	taints, err := c.Nodes.KeptFor(ctx)
	if err != nil {
		return nil
	}
	var words []string
	for _, taint := range taints {
		words = append(words, policy.TolerationOf(taint))
	}
	var problems source.Problems
	for _, place := range places {
		if slices.Contains(words, place.Name) {
			continue
		}
		problem := proto.CloneOf(place.Place)
		problem.Message = "no node is kept for " + source.Quote(place.Name) + ", so that tolerating it has no effect"
		switch problem.Hint = nearest.DidYouMean(place.Name, words); {
		case problem.Hint != "":
		case place.Name == policy.GPUTaint:
			problem.Hint = "`switchyard worker --only-for gpu` keeps a node for tasks with a GPU"
		default:
			problem.Hint = "`switchyard worker --reserve-for label=" + place.Name + "` keeps a node for a label"
		}
		problems = append(problems, problem)
	}
	return problems
}

// Freeze returns the stored workflows that the tasks of a definition name, those that these name in turn, and the environments of all.
func (c Checker) Freeze(ctx context.Context, def *v1.Definition) (*historyv1.FrozenWorkflows, error) {
	frozen := &historyv1.FrozenWorkflows{Definitions: map[string]*v1.Definition{}, Environments: &historyv1.ApprovedEnvironments{Digests: map[string]string{}}}
	for todo := []*v1.Definition{def}; len(todo) > 0; todo = todo[1:] {
		checked, err := definition.CompleteChecked(todo[0])
		if err != nil {
			continue // the run that it starts is refused
		}
		if err := c.freezeEnvironments(ctx, checked.Definition, frozen.GetEnvironments().GetDigests()); err != nil {
			return nil, err
		}
		for _, place := range checked.Stored {
			if frozen.GetDefinitions()[place.Name] != nil {
				continue
			}
			stored, err := c.Library.Get(ctx, place.Name)
			if errors.Is(err, library.ErrUnknown) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if len(frozen.Definitions) == maxStoredChecks {
				return nil, rpcerror.Invalid("the run would start more than %d stored workflows, which is more than an approval covers", maxStoredChecks)
			}
			frozen.Definitions[place.Name] = stored.Definition
			todo = append(todo, stored.Definition)
		}
	}
	return frozen, nil
}

// freezeEnvironments adds the digests of the environments that a definition names. One that is missing is left out.
func (c Checker) freezeEnvironments(ctx context.Context, def *v1.Definition, digests map[string]string) error {
	for _, name := range definition.Environments(def) {
		e, err := c.Environments.Find(ctx, name)
		switch {
		case errors.Is(err, executor.ErrNoEnvironment):
		case err != nil:
			return err
		default:
			digests[name] = e.GetDigest()
		}
	}
	return nil
}

// RefuseEndless returns an error if every run of a definition that is to be stored would start another run of it, also through
// other stored workflows.
func (c Checker) RefuseEndless(ctx context.Context, def *v1.Definition) error {
	name := def.GetName()
	calls := definition.CertainRuns(def)
	by := map[string]string{} // the workflow that starts each of calls
	for _, call := range calls {
		by[call] = name
	}
	for k := 0; k < len(calls) && k < maxStoredChecks; k++ {
		if calls[k] == name {
			path := name
			for at := by[name]; at != name; at = by[at] {
				path = at + " starts " + path
			}
			return rpcerror.Invalid("every run of the workflow would start another one: %s starts %s; give one of the tasks a condition", name, path)
		}
		stored, err := c.Library.Get(ctx, calls[k])
		if errors.Is(err, library.ErrUnknown) {
			continue
		}
		if err != nil {
			return err
		}
		for _, call := range definition.CertainRuns(stored.Definition) {
			if by[call] == "" {
				by[call] = calls[k]
				calls = append(calls, call)
			}
		}
	}
	return nil
}

// storedNames returns the names of stored workflows for a hint, or nil if they cannot be listed.
func (c Checker) storedNames(ctx context.Context) (names []string) {
	all, err := c.Library.List(ctx)
	if err != nil {
		return nil
	}
	for _, one := range all {
		names = append(names, one.Definition.GetName())
	}
	return names
}

// LibraryError maps an error of the library about a name to the one that clients see. For an unknown name it suggests a
// similar one.
func (c Checker) LibraryError(ctx context.Context, name string, err error) error {
	switch {
	case errors.Is(err, library.ErrUnknown):
		return rpcerror.Missing("workflow", name, nearest.DidYouMean(name, c.storedNames(ctx)))
	case errors.Is(err, library.ErrExists):
		return connect.NewError(connect.CodeAlreadyExists, errors.New("workflow "+name+" is already stored; request its replacement"))
	case errors.Is(err, library.ErrOwned):
		return connect.NewError(connect.CodeAborted, err)
	case errors.Is(err, library.ErrTooLarge):
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	return err
}
