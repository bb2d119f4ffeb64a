package k8sjob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"switchyard/activities/executor"
	"switchyard/activities/executor/k8sjob/cluster"
	"switchyard/activities/executor/k8sjob/jobwatch"
	"switchyard/activities/executor/k8sjob/manifest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/podspec"
)

// attempt is an attempt with its Job.
type attempt struct {
	executor.Attempt
	e         *Executor
	spec      *v1.K8SJobSpec
	cluster   *cluster.Cluster
	namespace string
	// name is that of the Job and of its Secret.
	name   string
	job    *batchv1.Job   // as it is to be made; nil: it has been
	secret *corev1.Secret // likewise
	// container is the one of the program.
	container string
	// claim is the value of the annotation that says whose the Job is.
	claim string
	uid   types.UID // of the Job
	// mayExist reports whether there may be a Job.
	mayExist bool

	watch    *jobwatch.Watch
	follower *jobwatch.Follower

	mu      sync.Mutex
	waiting string          // what Waits was told
	told    map[string]bool // what the log was told of it
	ending  bool            // it is not to be paused any more
}

// maxTold bounds the lines about waiting in the log of an attempt: a cluster says the same in turns.
const maxTold = 20

// errTakenOver says that a later dispatch has the Job.
var errTakenOver = errors.New("a later dispatch has the Job")

// Run runs an attempt as a Job, or continues with the one that an earlier dispatch has made. It keeps the contract of
// executor.Remote.
func (e *Executor) Run(ctx context.Context, given executor.Attempt, spawned func()) (executor.Result, error) {
	if ctx.Err() != nil {
		return stopped(), nil
	}
	a, err := e.prepare(given)
	if err != nil {
		return executor.Result{}, err
	}
	if a.cluster == nil {
		return executor.Result{ExitCode: -1, Stopped: true, Released: fmt.Sprintf("node %s does not reach cluster %s", given.Identity.Node, clusterOf(a.spec))}, nil
	}
	defer e.enter(a)()
	var release func()
	a.watch, release = e.watch(a.cluster, a.namespace)
	defer release()
	a.follower = a.watch.Follow(a.name)
	defer a.follower.Close()

	switch err := a.begin(ctx); {
	case errors.Is(err, errTakenOver):
		return takenOver(), nil
	case errors.Is(err, errGone):
		return a.failed(v1.ReasonDeleted, a.goneText(ctx)), nil
	case err != nil && ctx.Err() != nil:
		if a.mayExist && !errors.Is(context.Cause(ctx), executor.ErrLetGo) {
			return a.stop(ctx, stopped()), nil
		}
		return stopped(), nil
	case executor.AsStartError(err) != nil:
		return executor.Result{}, err
	case err != nil:
		return a.refused(err)
	}
	a.job, a.secret = nil, nil // an attempt may wait for long
	spawned()
	return a.follow(ctx)
}

func stopped() executor.Result { return executor.Result{ExitCode: -1, Stopped: true} }

func takenOver() executor.Result {
	r := stopped()
	r.Released = "another node has taken the Job over"
	return r
}

// prepare reads what an attempt is to run. The cluster is nil if the node does not have it.
func (e *Executor) prepare(given executor.Attempt) (*attempt, error) {
	spec, err := parseSpec(given.Spec)
	if err != nil {
		return nil, err
	}
	template, found := podspec.Template(spec)
	if err := problems(found); err != nil {
		return nil, err
	}
	holder := given.Identity.Node + "/" + e.holder
	a := &attempt{told: map[string]bool{}, Attempt: given, e: e, spec: spec, name: manifest.Name(given.Identity), claim: manifest.FormatClaim(given.Identity.Claim, holder)}
	if a.cluster, a.namespace = e.target(spec); a.cluster == nil {
		return a, nil
	}
	var input []byte
	if path := given.Env["SWITCHYARD_INPUT"]; path != "" {
		if input, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("read the input: %w", err)
		}
	}
	a.job, a.secret, err = manifest.Build(given, template, spec, manifest.Options{HelperImage: e.o.HelperImage, Frame: a.frame(), Input: input, Namespace: a.namespace, Holder: holder})
	if err != nil {
		return nil, err
	}
	a.container = podspec.Main(&a.job.Spec.Template).Name
	return a, nil
}

// frame returns what marks the frames of the helper in the log: the same in each dispatch of the attempt.
func (a *attempt) frame() string {
	sum := sha256.Sum256([]byte("frame of " + a.name))
	return hex.EncodeToString(sum[:8])
}

// waits says what the attempt waits for; "": for nothing.
func (a *attempt) waits(text string) {
	a.mu.Lock()
	was := a.waiting
	a.waiting = text
	isNew := text != "" && !a.told[text] && len(a.told) < maxTold
	if isNew {
		a.told[text] = true
	}
	a.mu.Unlock()
	if text == was {
		return
	}
	if a.Waits != nil {
		a.Waits(text)
	}
	if isNew {
		a.notify(text)
	}
}

// notify adds a line to the log.
func (a *attempt) notify(line string) {
	if a.Notify != nil {
		a.Notify(line)
	}
}
