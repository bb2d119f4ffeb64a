package notifications

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"

	gomail "github.com/wneessen/go-mail"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Ports of SMTP servers that accept mail of programs.
const (
	startTLSPort = 587
	tlsPort      = 465
)

// encryptionTLS is the value of EmailTarget.encryption for a connection that is encrypted from the start.
const encryptionTLS = "tls"

// email sends a message to mailboxes. It does not send without encryption.
func (t *try) email(ctx context.Context, to *v1.EmailTarget, notice *historyv1.Notice, message *historyv1.NotificationMessage) (string, error) {
	options := []gomail.Option{
		gomail.WithTimeout(sendTimeout), gomail.WithTLSConfig(&tls.Config{ServerName: to.GetHost(), RootCAs: t.roots, MinVersion: tls.VersionTLS12}),
		gomail.WithDialContextFunc(t.dialMail(to)),
	}
	if to.GetPassword() != "" {
		password, err := t.reveal(ctx, to.GetPassword())
		if err != nil {
			return "", err
		}
		t.revealed = append(t.revealed, plainAuth(to.GetUsername(), password))
		mechanism := gomail.SMTPAuthAutoDiscover
		if to.GetEncryption() == encryptionTLS { // the library does not see that a connection of dialMail is encrypted
			mechanism = gomail.SMTPAuthPlain
		}
		options = append(options, gomail.WithSMTPAuth(mechanism), gomail.WithUsername(to.GetUsername()), gomail.WithPassword(password))
	}
	port := startTLSPort
	if to.GetEncryption() == encryptionTLS {
		port, options = tlsPort, append(options, gomail.WithSSL())
	} else {
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if to.GetPort() != 0 {
		port = int(to.GetPort())
	}
	client, err := gomail.NewClient(to.GetHost(), append(options, gomail.WithPort(port))...)
	if err != nil {
		return "", err
	}
	letter, err := newLetter(to, notice, message)
	if err != nil {
		return "", permanent(err)
	}
	if err := client.DialAndSendWithContext(ctx, letter); err != nil {
		return "", fmt.Errorf("%s: %w", to.GetHost(), err)
	}
	return fmt.Sprintf("%s has accepted a mail to %d recipients", to.GetHost(), len(to.GetTo())), nil
}

// dialMail returns the function that connects to the server of a target.
func (s *Sender) dialMail(to *v1.EmailTarget) gomail.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := s.dial(ctx, network, address)
		if err != nil || to.GetEncryption() != encryptionTLS {
			return conn, err
		}
		return tls.Client(conn, &tls.Config{ServerName: to.GetHost(), RootCAs: s.roots, MinVersion: tls.VersionTLS12}), nil
	}
}

// newLetter returns the mail of a message.
func newLetter(to *v1.EmailTarget, notice *historyv1.Notice, message *historyv1.NotificationMessage) (*gomail.Msg, error) {
	letter := gomail.NewMsg()
	if err := errors.Join(letter.From(to.GetFrom()), letter.To(to.GetTo()...)); err != nil {
		return nil, err
	}
	_, domain := addressParts(to.GetFrom())
	letter.Subject(cut(message.GetTitle(), 200))
	letter.SetMessageIDWithValue(message.GetKey() + "@" + domain)
	letter.SetDateWithValue(notice.GetAt().AsTime())
	letter.SetGenHeader("Auto-Submitted", "auto-generated")
	letter.SetGenHeader(idempotencyHeader, message.GetKey())
	letter.SetBodyString(gomail.TypeTextPlain, message.GetTitle()+"\n\n"+plainText(notice, message))
	return letter, nil
}

// addressParts returns the parts of a mail address, or two empty texts if the address is not valid.
func addressParts(text string) (user, domain string) {
	address, err := mail.ParseAddress(text)
	if err != nil {
		return "", ""
	}
	for i := len(address.Address) - 1; i >= 0; i-- {
		if address.Address[i] == '@' {
			return address.Address[:i], address.Address[i+1:]
		}
	}
	return "", ""
}
