package sshdoor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"golang.org/x/crypto/ssh"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/sshkey"
)

// Run is a run that is logged in to.
type Run struct {
	ID, Owner string
	// Open reports whether the run has not ended.
	Open bool
}

// Runs finds runs. Its methods may be called from several goroutines at once.
type Runs interface {
	// Resolve returns the id of the run that a text names for the principal of ctx, who reaches it; other errors than NotFound
	// and InvalidArgument say that this cannot be known now.
	Resolve(ctx context.Context, text string) (id string, err error)
	// Find returns the run of an id, whoever owns it, or an error with the code NotFound.
	Find(ctx context.Context, id string) (Run, error)
	// Starting returns the ids of open runs with machines that begin with a text, whoever owns them, at most a number of them.
	Starting(ctx context.Context, prefix string, most int) ([]string, error)
	// TaskKeys returns the public keys that tasks of a run name, as lines of authorized_keys, by the name of the task.
	TaskKeys(ctx context.Context, id string) (map[string]string, error)
}

// Keys are those of people. *sshkeys.Registry has them.
type Keys interface {
	// Of returns the records of a key, one for each name that has it.
	Of(ctx context.Context, key ssh.PublicKey) ([]*v1.Key, error)
	// Has reports whether a name still has a key.
	Has(ctx context.Context, k *v1.Key) (bool, error)
}

// grant is what a client has logged in to.
type grant struct {
	principal *auth.Principal
	run       Run
	// task is a task or an instance, or "" for the only one that runs.
	task string
	// choices are the tasks that take the key of the client, who has named none of them; usually none.
	choices []string
	// key is that of a person, or nil for one that the task names.
	key *v1.Key
}

// refusal is why a client is not let in, for the audit. The client learns nothing of it.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// place is what a user name may name.
type place struct{ task, run string }

// placesOf returns what a user name may name, the likeliest first. Names of tasks have no dots; ids of runs may.
func placesOf(user string) []place {
	whole := place{run: user}
	task, run, ok := strings.Cut(user, ".")
	if !ok || task == "" || run == "" {
		return []place{whole}
	}
	return []place{{task, run}, whole}
}

// decide returns what a user name and a key open, or a *refusal. Another error says that this cannot be known now.
func (d *Door) decide(ctx context.Context, user string, key ssh.PublicKey) (*grant, error) {
	records, err := d.config.Keys.Of(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, at := range placesOf(user) {
		for _, k := range records {
			if g, err := d.ofPerson(ctx, at, k); g != nil || err != nil {
				return g, err
			}
		}
		if g, err := d.ofTask(ctx, at, key); g != nil || err != nil {
			return g, err
		}
	}
	if g, err := d.ofPrefix(ctx, user, key); g != nil || err != nil {
		return g, err
	}
	return nil, &refusal{"no run of this name is open to this key"}
}

// ofPerson returns what a key of a person opens, or nil.
func (d *Door) ofPerson(ctx context.Context, at place, k *v1.Key) (*grant, error) {
	p := d.principalOf(k)
	if p == nil {
		return nil, nil
	}
	id, err := d.config.Runs.Resolve(auth.With(ctx, p), at.run)
	if err != nil {
		return nil, unlessUnknown(err)
	}
	run, err := d.config.Runs.Find(ctx, id)
	if err != nil || !run.Open || !p.Reaches(run.Owner) {
		return nil, unlessUnknown(err)
	}
	return &grant{principal: p, run: run, task: at.task, key: k}, nil
}

// principalOf returns who a key of a person logs in, or nil if it counts for nothing. Where authentication is off, every caller
// is an admin by the name that it claims; where it is on, such a name proves nothing.
func (d *Door) principalOf(k *v1.Key) *auth.Principal {
	if !d.config.Locked {
		return &auth.Principal{Name: k.GetName(), Role: v1.Role_ROLE_ADMIN, Kind: auth.KindNone, ID: k.GetFingerprint()}
	}
	role := v1.ParseRole(k.GetRole())
	if !role.Includes(v1.Role_ROLE_USER) || k.GetName() == "" || strings.HasSuffix(k.GetName(), auth.Unverified) {
		return nil
	}
	return &auth.Principal{Name: k.GetName(), Role: role, Kind: auth.KindKey, ID: k.GetFingerprint()}
}

// ofTask returns what a key that a task names opens, or nil.
func (d *Door) ofTask(ctx context.Context, at place, key ssh.PublicKey) (*grant, error) {
	if !isRunID(at.run) {
		return nil, nil
	}
	run, err := d.config.Runs.Find(ctx, at.run)
	if err != nil || !run.Open {
		return nil, unlessUnknown(err)
	}
	lines, err := d.config.Runs.TaskKeys(ctx, run.ID)
	if err != nil {
		return nil, unlessUnknown(err)
	}
	var tasks []string
	for task, text := range lines {
		name, _, isInstance := names.ParseInstanceName(at.task)
		if at.task != "" && at.task != task && !(isInstance && name == task) {
			continue
		}
		if keys, fault := sshkey.Parse(text); fault == nil && slices.ContainsFunc(keys, func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), key.Marshal()) }) {
			tasks = append(tasks, task)
		}
	}
	slices.Sort(tasks)
	g := &grant{principal: d.ownerOf(run, ssh.FingerprintSHA256(key)), run: run, task: at.task}
	switch {
	case len(tasks) == 0:
		return nil, nil
	case at.task != "":
	case len(tasks) == 1:
		g.task = tasks[0]
	default:
		g.choices = tasks
	}
	return g, nil
}

// ownerOf returns the owner of a run, whom a key of one of its tasks proves. A run whose owner no principal can be, such as that
// of a schedule, is reached as an operator: the door opens nothing to this principal but the task.
func (d *Door) ownerOf(run Run, fingerprint string) *auth.Principal {
	p := &auth.Principal{Name: run.Owner, Role: v1.Role_ROLE_USER, Kind: auth.KindKey, ID: fingerprint}
	if !p.Reaches(run.Owner) {
		p.Role = v1.Role_ROLE_OPERATOR
	}
	return p
}

// check returns why a grant no longer counts, or nil if it does, or if this cannot be known now.
func (d *Door) check(ctx context.Context, g *grant) error {
	if g.key != nil {
		if has, err := d.config.Keys.Has(ctx, g.key); err == nil && !has {
			return errors.New("the key was removed")
		}
	}
	run, err := d.config.Runs.Find(ctx, g.run.ID)
	if err == nil && !run.Open || err != nil && unlessUnknown(err) == nil {
		return fmt.Errorf("run %s has ended", g.run.ID)
	}
	return nil
}

// unlessUnknown returns an error, or nil for one that says that there is no such run.
func unlessUnknown(err error) error {
	if err == nil {
		return nil
	}
	if code := rpcerror.CodeOf(err); code == connect.CodeNotFound || code == connect.CodeInvalidArgument || code == connect.CodePermissionDenied {
		return nil
	}
	return err
}

// isRunID reports whether a text may be the id of a run.
func isRunID(text string) bool {
	return text != "" && len(text) <= 128 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._:-", r)
	})
}
