package cluster

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Values of member.state.
const (
	unknown int32 = iota
	reached
	away
)

// member is one cluster of Clusters. The goroutine of watch owns all fields that are neither channels nor atomic.
type member struct {
	cfg       Config
	options   Options
	logger    *slog.Logger
	transport *renewableTransport
	current   atomic.Pointer[Cluster]
	state     atomic.Int32
	asked     chan struct{} // closed after the first probe
	wake      chan struct{}

	loaded  *loaded
	broken  string      // why the changed kubeconfig could not be read, as logged
	limited bool        // whether the log has reported that Jobs may not be created
	pending chan answer // the answer to a probe that has outlasted its time-out
}

// answer is the result of a probe.
type answer struct {
	mayCreate bool
	err       error
}

func newMember(l *loaded, o Options) (*member, error) {
	l.rest.WarningHandlerWithContext = warningLog{o.Logger, l.cfg.Name}
	transport, err := newRenewableTransport(l.rest)
	if err != nil {
		return nil, err
	}
	// The transport adds the credentials and certificates of the configuration.
	bare := &rest.Config{
		Host: l.rest.Host, Transport: transport, ContentConfig: l.rest.ContentConfig, QPS: l.rest.QPS, Burst: l.rest.Burst,
		UserAgent: l.rest.UserAgent, WarningHandlerWithContext: l.rest.WarningHandlerWithContext, WrapTransport: o.WrapTransport,
	}
	client, err := kubernetes.NewForConfig(bare)
	if err != nil {
		return nil, err
	}
	m := &member{
		cfg: l.cfg, options: o, logger: o.Logger.With("cluster", l.cfg.Name), transport: transport, loaded: l,
		asked: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	m.current.Store(&Cluster{Name: l.cfg.Name, Client: client, Config: l.rest, Namespace: l.namespace})
	return m, nil
}

func (m *member) isReached() bool { return m.state.Load() == reached }

// watch probes the cluster until ctx ends.
func (m *member) watch(ctx context.Context) {
	for {
		m.reload()
		if got, ok := m.ask(ctx); ok {
			m.record(got)
		}
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-time.After(m.options.Interval):
		}
	}
}

// reload reads the kubeconfig again if it has changed. A file that cannot be read, such as one that is being written,
// changes nothing.
func (m *member) reload() {
	if !m.loaded.hasChanged() {
		m.broken = ""
		return
	}
	fresh, err := load(m.cfg)
	if err == nil {
		fresh.rest.WarningHandlerWithContext = m.loaded.rest.WarningHandlerWithContext
		err = m.transport.renew(fresh.rest)
	}
	if err != nil {
		if m.broken != err.Error() {
			m.broken = err.Error()
			m.logger.Warn("changed kubeconfig cannot be read; continuing with the previous one", "flag", m.cfg.String(), "error", err)
		}
		return
	}
	m.loaded, m.broken = fresh, ""
	m.current.Store(&Cluster{Name: m.cfg.Name, Client: m.current.Load().Client, Config: fresh.rest, Namespace: fresh.namespace})
	m.logger.Info("kubeconfig reloaded", "file", m.cfg.File)
}

// ask asks the cluster whether the node may create Jobs, which requires valid credentials. It returns false if the
// context ends. A credential plugin cannot be interrupted; while it runs, no other probe is sent.
func (m *member) ask(parent context.Context) (answer, bool) {
	ctx, cancel := context.WithTimeout(parent, m.options.Timeout)
	defer cancel()
	if m.pending == nil {
		m.pending = make(chan answer, 1)
		go m.send(ctx, m.pending)
	}
	select {
	case got := <-m.pending:
		m.pending = nil
		return got, parent.Err() == nil
	case <-ctx.Done():
	}
	// The client's own error says more than the end of the context, and follows soon.
	select {
	case got := <-m.pending:
		m.pending = nil
		return got, parent.Err() == nil
	case <-time.After(min(m.options.Timeout, time.Second)):
		return answer{err: context.DeadlineExceeded}, parent.Err() == nil
	}
}

// send sends the probe and delivers its answer.
func (m *member) send(ctx context.Context, to chan<- answer) {
	c := m.current.Load()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: c.Namespace, Verb: "create", Group: "batch", Resource: "jobs"},
	}}
	result, err := c.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err == nil:
		to <- answer{mayCreate: result.Status.Allowed}
	case apierrors.IsForbidden(err) && !isAnonymous(err):
		to <- answer{mayCreate: true} // the credentials are valid; only the review is not allowed
	case ctx.Err() != nil:
		to <- answer{err: context.DeadlineExceeded}
	default:
		to <- answer{err: err}
	}
}

// record stores the result of a probe and logs changes.
func (m *member) record(got answer) {
	state := reached
	if got.err != nil {
		state = away
	}
	before := m.state.Swap(state)
	select {
	case <-m.asked:
	default:
		close(m.asked)
	}
	switch {
	case state == away && before != away:
		m.logger.Warn("cluster cannot be reached", "reason", m.reason(got.err))
	case state == reached && before == away:
		m.logger.Info("cluster is reached again")
	}
	if state == reached {
		if !got.mayCreate && !m.limited {
			m.logger.Warn("this node may not create Jobs in the namespace of its context; name another namespace in tasks, or grant its user a role", "namespace", m.current.Load().Namespace)
		}
		m.limited = !got.mayCreate
	}
}
