package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"time"
)

// Certificate is a file with certificates in PEM that a role presents or trusts.
type Certificate struct {
	// Flag is the flag that names the file, and Path the file.
	Flag, Path string
	// Load loads the file, with its key if it has one, as the role does.
	Load func() error
	// Reloads is set if the role reads the file again when it changes.
	Reloads bool
}

// renewal says what to do about a certificate that expires.
func (c Certificate) renewal() string {
	if c.Reloads {
		return "renew it; the new file is used without a restart"
	}
	return "renew it, and restart what reads the file"
}

// PrivateFile is a file that other users must not read.
type PrivateFile struct {
	// What names the content.
	What, Path string
	// Group is set if the group of the file may read it.
	Group bool
}

func (e *examination) checkCertificates(context.Context) []Finding {
	if len(e.Certificates) == 0 {
		return []Finding{skipped("no certificate is set")}
	}
	var found []Finding
	for _, c := range e.Certificates {
		text, err := os.ReadFile(c.Path)
		if err == nil {
			err = c.Load()
		}
		found = append(found, judgeCertificate(c, text, err, e.Now()))
	}
	return found
}

// certificateNotice is how long before the end of a certificate it is worth a warning.
const certificateNotice = 14 * 24 * time.Hour

// judgeCertificate judges the first certificate of a file.
func judgeCertificate(c Certificate, text []byte, err error, now time.Time) Finding {
	if err != nil {
		return failed("name a certificate and its key that belong together, in PEM, which this user can read", "%s %s: %v", c.Flag, c.Path, err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return failed("", "%s %s contains no certificate in PEM", c.Flag, c.Path)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return failed("", "%s %s: %v", c.Flag, c.Path, err)
	}
	until := cert.NotAfter.UTC().Format(time.DateOnly)
	switch {
	case now.After(cert.NotAfter):
		return failed(c.renewal(), "%s %s expired on %s", c.Flag, c.Path, until)
	case now.Before(cert.NotBefore):
		return failed("correct the clock, or wait", "%s %s is valid only from %s", c.Flag, c.Path, cert.NotBefore.UTC().Format(time.DateTime))
	case cert.NotAfter.Sub(now) < certificateNotice:
		return warning(c.renewal(), "%s %s expires on %s", c.Flag, c.Path, until)
	}
	return ok("%s %s is valid until %s", c.Flag, c.Path, until)
}

func (e *examination) checkPrivateFiles(context.Context) []Finding {
	var found []Finding
	for _, file := range e.PrivateFiles {
		info, err := os.Stat(file.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // what must exist is the business of another check
		}
		mode := fs.FileMode(0)
		if err == nil {
			mode = info.Mode()
		}
		found = append(found, judgePrivateFile(file, mode, err))
	}
	if len(found) == 0 {
		return []Finding{skipped("there is none yet")}
	}
	return found
}

func judgePrivateFile(file PrivateFile, mode fs.FileMode, err error) Finding {
	others, remedy := fs.FileMode(0o077), "chmod 600 "+file.Path
	if file.Group {
		others, remedy = 0o007, "chmod o-rwx "+file.Path
	}
	switch {
	case err != nil:
		return failed("", "the %s cannot be read: %v", file.What, err)
	case mode.Perm()&others != 0:
		return failed(remedy+", and replace it if it may have been read", "other users can read the %s %s (mode %04o)", file.What, file.Path, mode.Perm())
	}
	return ok("only those who may can read the %s %s", file.What, file.Path)
}
