package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"switchyard/cli/tlsfiles"
)

// tlsFlags adds the flags for the files of a gateway that serves https.
func tlsFlags(f *pflag.FlagSet, files *tlsfiles.Server) {
	f.StringVar(&files.Cert, "tls-cert", "", "certificate of the gateway, in PEM, to serve https; it is reloaded when the file changes")
	f.StringVar(&files.Key, "tls-key", "", "key of --tls-cert, in PEM")
	f.StringVar(&files.ClientCA, "tls-client-ca", "", "CA certificates, in PEM; every client must present a certificate issued by one of them")
}

// warnOfPublicKey prints a warning if other users can read the key of a gateway.
func warnOfPublicKey(sys *system, files tlsfiles.Server) {
	if files.IsKeyPublic() {
		fmt.Fprintf(sys.screen, "warning: other users can read the key %s; make it private with chmod 600\n", files.Key)
	}
}
