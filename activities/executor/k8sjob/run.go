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

// attempt is an attempt and its Job.
type attempt struct {
	executor.Attempt
	e         *Executor
	spec      *v1.K8SJobSpec
	cluster   *cluster.Cluster
	namespace string
	// name is the name of the Job and of its Secret.
	name   string
	job    *batchv1.Job   // the Job to create; nil once it is created
	secret *corev1.Secret // the Secret to create; nil once it is created
	// container is the name of the program's container.
	container string
	// claim is the value of the annotation that names the holder of the Job.
	claim string
	uid   types.UID // the UID of the Job; only Run writes it, under mu
	// mayExist reports whether the Job may exist.
	mayExist bool

	watch    *jobwatch.Watch
	follower *jobwatch.Follower

	mu      sync.Mutex
	waiting string          // the latest text passed to Waits
	told    map[string]bool // the waiting texts already in the log
	ending  bool            // the attempt can no longer be paused
}

// maxTold bounds the lines about waiting in the log of an attempt: a cluster alternates between the same texts.
const maxTold = 20

// errTakenOver reports that a later dispatch holds the Job.
var errTakenOver = errors.New("a later dispatch holds the Job")

// Run runs an attempt as a Job, or continues the Job of an earlier dispatch. It keeps the contract of Capabilities.Recorded.
func (e *Executor) Run(ctx context.Context, given executor.Attempt, spawned func()) (executor.Result, error) {
	if ctx.Err() != nil {
		return stopped(), nil
	}
	a, err := e.prepare(given)
	if err != nil {
		return executor.Result{}, err
	}
	if a.cluster == nil {
		return executor.Result{ExitCode: -1, Stopped: true, Released: fmt.Sprintf("node %s cannot reach cluster %s", given.Identity.Node, clusterOf(a.spec))}, nil
	}
	var release func()
	a.watch, release = e.watch(a.cluster, a.namespace)
	defer release()
	a.follower = a.watch.Follow(a.name)
	defer a.follower.Close()
	defer e.register(a)()

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
		return a.refusalResult(err)
	}
	a.job, a.secret = nil, nil // release memory: an attempt may wait for a long time
	a.Locate(a.workload(""))
	spawned()
	return a.follow(ctx)
}

// workload returns where the Job runs and what it is called in the cluster. The pod is "" until the cluster has made one.
func (a *attempt) workload(pod string) *v1.Workload {
	return &v1.Workload{Cluster: a.cluster.Name, Namespace: a.namespace, Job: a.name, Pod: pod}
}

func stopped() executor.Result { return executor.Result{ExitCode: -1, Stopped: true} }

func takenOver() executor.Result {
	r := stopped()
	r.Released = "another node has taken over the Job"
	return r
}

// prepare builds the attempt from its spec. The cluster is nil if the node does not have it.
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

// frame returns the nonce that marks the helper's frames in the log. It is the same in each dispatch of the attempt.
func (a *attempt) frame() string {
	sum := sha256.Sum256([]byte("frame of " + a.name))
	return hex.EncodeToString(sum[:8])
}

// reportWaiting reports what the attempt waits for, or "" if it waits for nothing.
func (a *attempt) reportWaiting(text string) {
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

// notify adds a line to the log of the attempt.
func (a *attempt) notify(line string) {
	if a.Notify != nil {
		a.Notify(line)
	}
}
