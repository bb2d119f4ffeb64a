package notifications

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"net/mail"
	"strings"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	v1 "switchyard/proto/switchyard/v1"
)

// mailbox is an SMTP server that keeps the mails that it accepts from a user.
type mailbox struct {
	mails []string
	from  []string
	to    []string
	// refused holds the answers to recipients that the server does not accept.
	refused map[string]*smtp.SMTPError
}

func (m *mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &mailSession{box: m}, nil }

type mailSession struct {
	box      *mailbox
	isKnown  bool
	from, to string
}

func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if s.isKnown = username == "yard" && password == "hunter2"; !s.isKnown {
			return errors.New("\x1b[31mwrong password: AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00"+username+"\x00"+password)))
		}
		return nil
	}), nil
}

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if !s.isKnown {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if refusal := s.box.refused[to]; refusal != nil {
		return refusal
	}
	s.to += to + " "
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.box.mails, s.box.from, s.box.to = append(s.box.mails, string(text)), append(s.box.from, s.from), append(s.box.to, s.to)
	return err
}

func (s *mailSession) Reset()        {}
func (s *mailSession) Logout() error { return nil }

// startMail starts an SMTP server with a certificate for example.com and 127.0.0.1, and returns its address and its authority.
// A server without TLS offers no STARTTLS.
func startMail(t *testing.T, box *mailbox, hasTLS, fromStart bool) (port int, roots *x509.CertPool) {
	t.Helper()
	certificates := httptest.NewTLSServer(nil)
	defer certificates.Close()
	roots = x509.NewCertPool()
	roots.AddCert(certificates.Certificate())
	server := smtp.NewServer(box)
	server.Domain, server.AllowInsecureAuth, server.ErrorLog = "mail.example.com", true, nil
	server.ErrorLog = discard{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = listener.Addr().(*net.TCPAddr).Port
	config := &tls.Config{Certificates: certificates.TLS.Certificates}
	if hasTLS {
		server.TLSConfig = config
	}
	if fromStart {
		listener = tls.NewListener(listener, config)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // ends with an error when the test closes it
	}()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return port, roots
}

type discard struct{}

func (discard) Printf(string, ...any) {}
func (discard) Println(...any)        {}

func TestMailIsSentOverTLSOnly(t *testing.T) {
	for name, c := range map[string]struct {
		hasTLS, fromStart bool
		encryption        string
		password          string
		want              string // of the error
	}{
		"starttls":       {true, false, "", "hunter2", ""},
		"tls":            {true, true, "tls", "hunter2", ""},
		"no encryption":  {false, false, "", "hunter2", "does not support STARTTLS"},
		"wrong password": {true, false, "starttls", "hunter3", "wrong password"},
	} {
		t.Run(name, func(t *testing.T) {
			box := &mailbox{}
			port, roots := startMail(t, box, c.hasTLS, c.fromStart)
			target := &v1.NotificationTarget{Config: &v1.NotificationTarget_Email{Email: &v1.EmailTarget{
				Host: "127.0.0.1", Port: int32(port), Encryption: c.encryption, Username: "yard", Password: "store:mail",
				From: "Yard <yard@example.com>", To: []string{"ann@example.com", "Bob <bob@example.org>"},
			}}}
			s := newSender(t, target, map[string]string{"mail": c.password}, "127.0.0.1")
			s.roots = roots
			_, err := s.Send(t.Context(), failedRun, message())
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.password) || c.password == "hunter3" && !strings.Contains(err.Error(), "AUTH PLAIN ***") || strings.Contains(err.Error(), "\x1b") || len(box.mails) > 0 || IsPermanent(err) {
					t.Errorf("error %v, %d mails", err, len(box.mails))
				}
				return
			}
			if err != nil || len(box.mails) != 1 || box.from[0] != "yard@example.com" || box.to[0] != "ann@example.com bob@example.org " {
				t.Fatalf("%v: %v %v", err, box.from, box.to)
			}
			letter, err := mail.ReadMessage(strings.NewReader(box.mails[0]))
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(letter.Body)
			if letter.Header.Get("Message-Id") != "<msg_0123@example.com>" || letter.Header.Get("Subject") != message().GetTitle() || letter.Header.Get("Auto-Submitted") != "auto-generated" ||
				!strings.Contains(string(body), "    make: *** [all] Error 2") || !strings.Contains(string(body), failedRun.GetUrl()) || !strings.Contains(string(body), "call the <on-call> & sleep") {
				t.Errorf("%v\n%s", letter.Header, body)
			}
		})
	}
}

func TestMailToUnknownServersIsRefused(t *testing.T) {
	box := &mailbox{}
	port, _ := startMail(t, box, true, false)
	target := &v1.NotificationTarget{Config: &v1.NotificationTarget_Email{Email: &v1.EmailTarget{Host: "127.0.0.1", Port: int32(port), From: "yard@example.com", To: []string{"ann@example.com"}}}}
	if _, err := newSender(t, target, nil, "127.0.0.1").Send(t.Context(), failedRun, message()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: %v", err)
	}
	if _, err := newSender(t, target, nil).Send(t.Context(), failedRun, message()); err == nil || !strings.Contains(err.Error(), "--notify-allow 127.0.0.1") {
		t.Errorf("a private address: %v", err)
	}
	if len(box.mails) > 0 {
		t.Errorf("it got %v", box.mails)
	}
	for _, bad := range []*v1.EmailTarget{{From: "yard", To: []string{"a@b"}}, {From: "a@b", To: []string{"x\r\nBcc: y@z"}}, {From: "a@b", To: []string{"a@b"}, Username: "yard"}} {
		if err := Check(&v1.NotificationTarget{Config: &v1.NotificationTarget_Email{Email: bad}}); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

func TestMailIsSentToTheRecipientsThatAreAccepted(t *testing.T) {
	const ann, bob = "ann@example.com", "bob@example.org"
	unknown, later := &smtp.SMTPError{Code: 550, Message: "no such user"}, &smtp.SMTPError{Code: 451, Message: "greylisted"}
	for name, c := range map[string]struct {
		refused     map[string]*smtp.SMTPError
		want        string // the answer or the error
		fails       bool
		isPermanent bool
		again       string // the recipients of the next try, once the server accepts all
	}{
		"an unknown one":         {map[string]*smtp.SMTPError{bob: unknown}, "has accepted a mail to 1 recipient and refused <bob@example.org>: 550 ", false, false, ""},
		"one for now":            {map[string]*smtp.SMTPError{bob: later}, "has accepted a mail to 1 recipient and refused <bob@example.org>: 451 ", true, false, bob + " "},
		"all":                    {map[string]*smtp.SMTPError{ann: unknown, bob: unknown}, "refused <ann@example.com>: 550 ", true, true, ""},
		"all, some for now only": {map[string]*smtp.SMTPError{ann: unknown, bob: later}, "; <bob@example.org>: 451 ", true, false, ann + " " + bob + " "},
	} {
		box := &mailbox{refused: c.refused}
		port, roots := startMail(t, box, true, false)
		s := newSender(t, &v1.NotificationTarget{Config: &v1.NotificationTarget_Email{Email: &v1.EmailTarget{
			Host: "127.0.0.1", Port: int32(port), Username: "yard", Password: "store:mail", From: "yard@example.com", To: []string{ann, bob},
		}}}, map[string]string{"mail": "hunter2"}, "127.0.0.1")
		s.roots = roots
		answer, err := s.Send(t.Context(), failedRun, message())
		if err != nil {
			answer = err.Error()
		}
		if (err != nil) != c.fails || IsPermanent(err) != c.isPermanent || !strings.Contains(answer, c.want) {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
		if c.again == "" {
			continue
		}
		box.refused, box.to = nil, nil
		answer, err = s.Send(t.Context(), failedRun, message(), Told(err)...)
		if err != nil || strings.Join(box.to, "") != c.again || !strings.Contains(answer, "2 recipients") {
			t.Errorf("%s: then %v: %q, %v", name, err, answer, box.to)
		}
	}
}
