package notifications

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	"switchyard/activities/hostlist"
	"switchyard/activities/secrets/vault"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// sendTimeout limits one delivery.
	sendTimeout = 30 * time.Second
	// sendsAtOnce is how many deliveries to one target are in progress at once. It spares the receiver of a fleet whose runs all fail at
	// the same moment.
	sendsAtOnce = 16
	// closeTimeout is how long Close waits for deliveries in progress.
	closeTimeout = 10 * time.Second
)

// Sender sends messages to targets. It is safe for concurrent use.
type Sender struct {
	targets *Targets
	vault   *vault.Vault
	allow   hostlist.List
	client  *http.Client
	now     func() time.Time
	roots   *x509.CertPool // of mail servers; nil means those of the system
	queues  queues
}

// NewSender returns a sender. allow lists hosts that it may connect to although their addresses are not on the public internet.
func NewSender(targets *Targets, v *vault.Vault, allow hostlist.List, now func() time.Time) *Sender {
	s := &Sender{targets: targets, vault: v, allow: allow, now: now}
	s.client = &http.Client{
		Transport: &http.Transport{
			DialContext: s.dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConnsPerHost: sendsAtOnce, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s
}

// Close waits until all places at targets are free again, for up to 10 s, and closes idle connections. No place may be taken meanwhile.
func (s *Sender) Close() {
	free := make(chan struct{})
	go func() {
		s.queues.taken.Wait()
		close(free)
	}()
	select {
	case <-free:
	case <-time.After(closeTimeout):
	}
	s.client.CloseIdleConnections()
}

// Enter takes a place at a target, for a message that comes for the first time or again. leave frees the place. If it is nil, too many
// other messages are on their way to the target, and the message is to come again after wait.
func (s *Sender) Enter(target string, isFirst bool) (leave func(), wait time.Duration) {
	return s.queues.enter(target, isFirst, s.now)
}

// Send tries once to deliver a message to its target. It returns what the receiver answered, in one line. The error names the
// target and contains no secret. told has the recipients of the target that an earlier try has told, as [Told] returns them.
func (s *Sender) Send(ctx context.Context, notice *historyv1.Notice, message *historyv1.NotificationMessage, told ...string) (answer string, err error) {
	target, err := s.targets.Get(ctx, message.GetTarget())
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	t := try{Sender: s}
	switch config := target.GetConfig().(type) {
	case *v1.NotificationTarget_Webhook:
		answer, err = t.webhook(ctx, config.Webhook, notice, message)
	case *v1.NotificationTarget_Slack:
		answer, err = t.slack(ctx, config.Slack, notice, message)
	case *v1.NotificationTarget_Teams:
		answer, err = t.teams(ctx, config.Teams, notice, message)
	case *v1.NotificationTarget_Email:
		answer, err = t.email(ctx, config.Email, notice, message, told)
	case *v1.NotificationTarget_Ntfy:
		answer, err = t.ntfy(ctx, config.Ntfy, notice, message)
	default:
		err = permanent(fmt.Errorf("its type is not known to this program"))
	}
	if err != nil {
		return "", fmt.Errorf("send to notification target %s: %w", target.GetName(), t.maskedError(err))
	}
	return t.masked(answer), nil
}
