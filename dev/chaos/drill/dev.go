package drill

import (
	"net"
	"path/filepath"
	"strings"
)

const devName = "dev"

// startDev starts `dev --db` without nodes: server, control and gateway in one process.
func (y *Cluster) startDev() error {
	server, err := freeAddress()
	if err != nil {
		return err
	}
	gateway, err := freeAddress()
	if err != nil {
		return err
	}
	y.temporal, y.gateways = server, []string{"http://" + gateway}
	return y.restartDev()
}

// restartDev starts the process again on its previous ports and database.
func (y *Cluster) restartDev() error {
	p, err := y.startProcess(devName, y.env(), y.Binary, "dev", "--nodes", "0", "--db", filepath.Join(y.Dir, "dev.db"),
		"--port", portOf(y.temporal), "--gateway-port", portOf(strings.TrimPrefix(y.gateways[0], "http://")), "--ui-port", "0")
	if err != nil {
		return err
	}
	_, err = p.Field(y.ctx, "Gateway")
	return err
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address) // the address comes from a listener
	return port
}
