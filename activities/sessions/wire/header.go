package wire

import (
	"fmt"
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// Kinds of streams; see v1.SessionHeader.
const (
	KindExec     = "exec"
	KindConnect  = "connect"
	KindListen   = "listen"
	KindSFTP     = "sftp"
	KindReadTar  = "read_tar"
	KindWriteTar = "write_tar"
)

var kinds = []string{KindExec, KindConnect, KindListen, KindSFTP, KindReadTar, KindWriteTar}

// IsKind reports whether kind is a kind of stream.
func IsKind(kind string) bool { return slices.Contains(kinds, kind) }

// HeaderError describes what is wrong with a header.
type HeaderError string

// Error returns the text.
func (e HeaderError) Error() string { return string(e) }

// CheckHeader returns a HeaderError if a header is malformed, regardless of the attempt that it
// names.
func CheckHeader(h *v1.SessionHeader) error {
	switch kind := h.GetKind(); kind {
	case KindExec:
		switch e := h.GetExec(); {
		case e == nil:
			return HeaderError("a session of the kind exec needs a command in the field exec, or an empty one for a shell")
		case len(e.GetCommand()) > 0 && e.GetLine() != "":
			return HeaderError("a session has a command or a line for the shell, not both")
		}
	case KindConnect:
		return checkPort(h.GetPort(), 1)
	case KindListen:
		return checkPort(h.GetPort(), 0)
	case KindReadTar, KindWriteTar:
		if h.GetPath() == "" || strings.ContainsRune(h.GetPath(), 0) {
			return HeaderError("a session of the kind " + kind + " needs a path, which holds no NUL")
		}
	case KindSFTP:
	default:
		return HeaderError(fmt.Sprintf("%.80q is not a kind of session; the kinds are %s", kind, strings.Join(kinds, ", ")))
	}
	return nil
}

func checkPort(port, least uint32) error {
	if port < least || port > 65535 {
		return HeaderError(fmt.Sprintf("%d is not a port; ports are from %d to 65535", port, least))
	}
	return nil
}
