package guest

import (
	"context"
	"io"
	"net"
)

// ServeFiles serves the files of the machine by the sftp-server of its sshd.
func (g *Guest) ServeFiles(ctx context.Context, user string, conn io.ReadWriter) error {
	return refuse("not yet")
}

// ReadTar writes what lies at a path to an archive.
func (g *Guest) ReadTar(ctx context.Context, user, path string, to io.Writer) error {
	return refuse("not yet")
}

// WriteTar unpacks an archive.
func (g *Guest) WriteTar(ctx context.Context, user, path string, rename bool, from io.Reader) error {
	return refuse("not yet")
}

var _ net.Conn = (*stream)(nil)
