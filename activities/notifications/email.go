package notifications

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"switchyard/drawing/words"
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

// email sends a message to the mailboxes of a target that are not among told. It does not send without encryption.
func (t *try) email(ctx context.Context, to *v1.EmailTarget, notice *historyv1.Notice, message *historyv1.NotificationMessage, told []string) (string, error) {
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
	conn, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return "", fmt.Errorf("%s: %w", to.GetHost(), err)
	}
	defer conn.Close()
	answer, err := handOver(conn, letter, told)
	if err != nil {
		return "", fmt.Errorf("%s: %w", to.GetHost(), err)
	}
	_ = conn.Quit() // the server has accepted the mail
	return to.GetHost() + " " + answer, nil
}

// handOver hands a letter over, once for all recipients that the server accepts. A recipient that the server refuses for now is worth
// another try, which leaves out those that were told.
func handOver(conn *smtp.Client, letter *gomail.Msg, told []string) (answer string, err error) {
	from, err := letter.GetSender(false)
	if err != nil {
		return "", err
	}
	recipients, err := letter.GetRecipients()
	if err != nil {
		return "", err
	}
	if err := conn.Mail(from); err != nil {
		return "", err
	}
	var accepted, refused []string
	isFinal := true
	for _, recipient := range recipients {
		if slices.Contains(told, recipient) {
			continue
		}
		err := conn.Rcpt(recipient)
		reply, isReply := errors.AsType[*textproto.Error](err)
		switch {
		case err == nil:
			accepted = append(accepted, recipient)
		case !isReply:
			return "", err
		default:
			refused = append(refused, fmt.Sprintf("%s: %v", recipient, err))
			isFinal = isFinal && reply.Code/100 == 5
		}
	}
	if len(accepted) > 0 {
		if err := writeLetter(conn, letter); err != nil {
			reply, isReply := errors.AsType[*textproto.Error](err)
			return "", &failure{error: err, permanent: isReply && reply.Code/100 == 5 && len(told) == 0}
		}
		told = slices.Concat(told, accepted)
	}
	answer = "has accepted a mail to " + words.Count(len(told), "recipient")
	if len(refused) > 0 {
		answer += " and refused " + strings.Join(refused, "; ")
	}
	if len(told) == 0 || len(refused) > 0 && !isFinal {
		return "", &failure{error: errors.New(answer), permanent: isFinal, told: told}
	}
	return answer, nil
}

// writeLetter sends a letter to the recipients that the server has accepted.
func writeLetter(conn *smtp.Client, letter *gomail.Msg) error {
	w, err := conn.Data()
	if err != nil {
		return err
	}
	if _, err := letter.WriteTo(w); err != nil {
		return err
	}
	return w.Close()
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
