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

// Run is a run that clients log in to.
type Run struct {
	ID, Owner string
	// Open reports whether the run has not ended.
	Open bool
}

// Runs finds runs. Its methods must be safe for concurrent use.
type Runs interface {
	// Resolve returns the ID of the run that a text names for the principal of ctx, who must be allowed to reach it. Errors
	// other than NotFound and InvalidArgument mean that the answer is unavailable now.
	Resolve(ctx context.Context, text string) (id string, err error)
	// Find returns the run with an ID, whoever owns it, or a NotFound error.
	Find(ctx context.Context, id string) (Run, error)
	// Starting returns the IDs of open runs with machines that start with a prefix, whoever owns them, at most `most` of
	// them.
	Starting(ctx context.Context, prefix string, most int) ([]string, error)
	// TaskKeys returns the public keys that the tasks of a run name, as lines of authorized_keys by task name.
	TaskKeys(ctx context.Context, id string) (map[string]string, error)
}

// Keys holds the keys of people. *sshkeys.Registry implements it.
type Keys interface {
	// Of returns the records of a key, one for each name that has added it.
	Of(ctx context.Context, key ssh.PublicKey) ([]*v1.Key, error)
	// Has reports whether a name still has a key.
	Has(ctx context.Context, k *v1.Key) (bool, error)
}

// grant is what a login gives access to.
type grant struct {
	principal *auth.Principal
	run       Run
	// task is a task or an instance, or "" for the only running task.
	task string
	// choices lists the candidate tasks if several accept the key and the client named none; usually empty.
	choices []string
	// key is the key of a person, or nil for a key that the task names.
	key *v1.Key
}

// refusal is the reason why a client is refused, for the audit log only. The client does not see it.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// place is a possible interpretation of a user name.
type place struct{ task, run string }

// placesOf returns the interpretations of a user name, likeliest first. Task names have no dots; run IDs may.
func placesOf(user string) []place {
	whole := place{run: user}
	task, run, ok := strings.Cut(user, ".")
	if !ok || task == "" || run == "" {
		return []place{whole}
	}
	return []place{{task, run}, whole}
}

// decide returns the grant for a user name and a key, or a *refusal. Any other error means that the answer is unavailable
// now.
func (d *Door) decide(ctx context.Context, user string, key ssh.PublicKey) (*grant, error) {
	records, err := d.config.Keys.Of(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, at := range placesOf(user) {
		for _, k := range records {
			if g, err := d.grantByPersonKey(ctx, at, k); g != nil || err != nil {
				return g, err
			}
		}
		if g, err := d.grantByTaskKey(ctx, at, key); g != nil || err != nil {
			return g, err
		}
	}
	if g, err := d.grantByPrefix(ctx, user, key); g != nil || err != nil {
		return g, err
	}
	return nil, &refusal{"this key opens no run with this name"}
}

// grantByPersonKey returns the grant of a person's key, or nil if the key does not open the place.
func (d *Door) grantByPersonKey(ctx context.Context, at place, k *v1.Key) (*grant, error) {
	p := d.principalOf(k)
	if p == nil {
		return nil, nil
	}
	id, err := d.config.Runs.Resolve(auth.With(ctx, p), at.run)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	run, err := d.config.Runs.Find(ctx, id)
	if err != nil || !run.Open || !p.Reaches(run.Owner) {
		return nil, ignoreNotFound(err)
	}
	return &grant{principal: p, run: run, task: at.task, key: k}, nil
}

// principalOf returns the principal that a person's key logs in, or nil if the key is invalid here. If authentication is
// off, every caller is an admin under the name it claims. If authentication is on, a name added while it was off proves
// nothing.
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

// grantByTaskKey returns the grant of a key that tasks name, or nil if no task of the place names it.
func (d *Door) grantByTaskKey(ctx context.Context, at place, key ssh.PublicKey) (*grant, error) {
	if !isRunID(at.run) {
		return nil, nil
	}
	run, err := d.config.Runs.Find(ctx, at.run)
	if err != nil || !run.Open {
		return nil, ignoreNotFound(err)
	}
	lines, err := d.config.Runs.TaskKeys(ctx, run.ID)
	if err != nil {
		return nil, ignoreNotFound(err)
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

// ownerOf returns the principal that a key of a task logs in: the owner of the run. If no principal can be the owner, as for
// the run of a schedule, ownerOf returns an operator; the grant is still limited to the task.
func (d *Door) ownerOf(run Run, fingerprint string) *auth.Principal {
	p := &auth.Principal{Name: run.Owner, Role: v1.Role_ROLE_USER, Kind: auth.KindKey, ID: fingerprint}
	if !p.Reaches(run.Owner) {
		p.Role = v1.Role_ROLE_OPERATOR
	}
	return p
}

// revalidate returns why a grant is no longer valid. It returns nil if the grant is valid or cannot be checked now.
func (d *Door) revalidate(ctx context.Context, g *grant) error {
	if g.key != nil {
		if has, err := d.config.Keys.Has(ctx, g.key); err == nil && !has {
			return errors.New("the key was removed")
		}
	}
	run, err := d.config.Runs.Find(ctx, g.run.ID)
	if err == nil && !run.Open || err != nil && ignoreNotFound(err) == nil {
		return fmt.Errorf("run %s has ended", g.run.ID)
	}
	return nil
}

// ignoreNotFound returns err, or nil if err means that there is no such run.
func ignoreNotFound(err error) error {
	if err == nil {
		return nil
	}
	if code := rpcerror.CodeOf(err); code == connect.CodeNotFound || code == connect.CodeInvalidArgument || code == connect.CodePermissionDenied {
		return nil
	}
	return err
}

// isRunID reports whether a text has the form of a run ID.
func isRunID(text string) bool {
	return text != "" && len(text) <= 128 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._:-", r)
	})
}
