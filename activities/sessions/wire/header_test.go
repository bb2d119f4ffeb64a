package wire

import (
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
)

func TestHeadersAreChecked(t *testing.T) {
	exec := &v1.SessionExec{}
	for says, header := range map[string]*v1.SessionHeader{
		"is not a kind":               {Kind: ""},
		`"vnc" is not a kind`:         {Kind: "vnc"},
		"needs a command":             {Kind: "exec"},
		"not both":                    {Kind: "exec", Exec: &v1.SessionExec{Command: []string{"a"}, Line: "b"}},
		"0 is not a port":             {Kind: "connect"},
		"65536 is not a port":         {Kind: "connect", Port: 65536},
		"65537 is not a port":         {Kind: "listen", Port: 65537},
		"kind read_tar needs a path":  {Kind: "read_tar"},
		"kind write_tar needs a path": {Kind: "write_tar", Path: "a\x00"},
	} {
		if err := CheckHeader(header); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	for _, header := range []*v1.SessionHeader{
		{Kind: "exec", Exec: exec}, {Kind: "listen"}, {Kind: "connect", Port: 65535}, {Kind: "sftp"}, {Kind: "read_tar", Path: "."}, {Kind: "write_tar", Path: "x"},
	} {
		if err := CheckHeader(header); err != nil {
			t.Errorf("%v: %v", header, err)
		}
	}
}
