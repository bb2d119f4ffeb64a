package sshdoor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
)

// maxTries bounds how many keys a client may try on a connection. SSH agents offer their keys one by one.
const maxTries = 8

// keyAlgorithms lists the accepted signature algorithms, including the hash functions of RSA.
var keyAlgorithms = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
	ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512,
}

// errDenied is the error of every refused key. The client learns no other reason.
var errDenied = errors.New("the key is not accepted")

// login is a connection during its login.
type login struct {
	door *Door
	conn net.Conn
	// tried lists the keys that were decided upon, at most maxTries, including the accepted one.
	tried []client
	grant *grant
}

// handshake returns the connection once its client has logged in.
func (l *login) handshake() (*ssh.ServerConn, <-chan ssh.NewChannel, <-chan *ssh.Request, error) {
	ctx, cancel := context.WithTimeout(l.door.ctx, l.door.config.LoginTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.conn.Close() })
	defer stop()
	access := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-Switchyard", MaxAuthTries: maxTries, PublicKeyAuthAlgorithms: keyAlgorithms,
		PublicKeyCallback: acceptAnyKey,
		VerifiedPublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey, p *ssh.Permissions, _ string) (*ssh.Permissions, error) {
			return p, l.authorize(ctx, meta, key)
		},
	}
	access.AddHostKey(l.door.config.HostKey)
	opened, channels, requests, err := ssh.NewServerConn(l.conn, access)
	if err == nil && !stop() {
		err = errors.Join(context.Cause(ctx), opened.Close())
	}
	if err != nil {
		return nil, nil, nil, err
	}
	return opened, channels, requests, nil
}

// acceptAnyKey accepts each key that a client offers, so that the client has to prove that it owns the key. It refuses
// certificates, whose restrictions the server does not check.
func acceptAnyKey(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	if _, ok := key.(*ssh.Certificate); ok {
		return nil, errDenied
	}
	return &ssh.Permissions{}, nil
}

// settle counts the refused keys of a login, or forgets their failures if another key of the client was accepted.
func (l *login) settle() {
	for _, c := range l.tried {
		if l.grant != nil {
			l.door.backoff.forget(c)
		} else {
			l.door.backoff.add(c, l.door.config.Now())
		}
	}
}

// authorize decides about a client that has proved to own a key. All refusals take the same time, whatever their reason.
func (l *login) authorize(ctx context.Context, meta ssh.ConnMetadata, key ssh.PublicKey) error {
	spent := time.NewTimer(l.door.config.RefusalTime)
	defer spent.Stop()
	who := clientOf(meta.RemoteAddr(), key)
	if wait := l.door.backoff.remaining(who, l.door.config.Now()); wait > 0 {
		pause(ctx, spent)
		return &ssh.BannerError{Err: errDenied, Message: fmt.Sprintf("Too many refused logins with the key %s; try again in %s.\r\n", who.fingerprint, max(wait.Round(time.Second), time.Second))}
	}
	g, err := l.door.decide(ctx, meta.User(), key)
	if err == nil {
		l.tried = append(l.tried, who)
		l.grant = g
		if l.door.config.OnLogin != nil {
			l.door.config.OnLogin(ctx, g.principal, meta.RemoteAddr(), g.run.ID, g.task)
		}
		return nil
	}
	if _, ok := errors.AsType[*refusal](err); ok {
		l.tried = append(l.tried, who)
	} else {
		l.door.config.Logger.Warn("cannot check an SSH key", "from", meta.RemoteAddr().String(), "error", err)
	}
	if l.door.config.OnRefused != nil {
		l.door.config.OnRefused(meta.RemoteAddr(), meta.User(), key, err)
	}
	pause(ctx, spent)
	return errDenied
}

// pause waits for a timer or the end of a context.
func pause(ctx context.Context, timer *time.Timer) {
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
