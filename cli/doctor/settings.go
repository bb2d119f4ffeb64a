package doctor

import (
	"log/slog"
	"time"

	"switchyard/activities/gatewayclient"
	"switchyard/cli/client"
	"switchyard/workers"
)

// The roles of processes, and the one of checks that concern the whole machine.
const (
	RoleGateway = "gateway"
	RoleWorker  = "worker"
	RoleClient  = "client"
	RoleMachine = "machine"
)

// Roles lists the roles that can be checked.
var Roles = []string{RoleGateway, RoleWorker, RoleClient}

// Settings describes how a role is set up on this machine.
type Settings struct {
	Role string
	// Ports lists the addresses on which the role listens.
	Ports []Port
	// Store is the folder or URL of the store, or "" if it is unknown or the gateway's business.
	Store string
	// Node is the name of the node of a worker.
	Node string
	// Spool is the folder where a worker keeps values while the store is unreachable, or "" if it is unknown.
	Spool string
	// Gateways has each gateway, unless the role is that of a gateway. GatewayError explains why they are missing.
	Gateways     []Gateway
	GatewayError error
	// Folders lists where the role keeps files.
	Folders []Folder
	// Certificates and PrivateFiles list the files in PEM and the files that other users must not read.
	Certificates []Certificate
	PrivateFiles []PrivateFile
	// StartError is the error with which a start refuses its flags and settings, or nil.
	StartError error
}

// Gateway is a gateway that a role uses.
type Gateway struct {
	Client *client.Client
	// Store is the connection to the gateway as a store.
	Store *gatewayclient.Conn
}

// Port is an address on which a role listens.
type Port struct {
	// Flag is the flag that sets the address.
	Flag, Address string
	// Optional is set if the role also starts while the address is taken.
	Optional bool
}

// Folder is a folder of a role. It may not exist yet.
type Folder struct {
	// What names the purpose of the folder.
	What, Path string
}

// Surroundings is what the checks of all roles share.
type Surroundings struct {
	// Temporal is the connection to Temporal. Without one, TemporalError is the reason.
	Temporal      *workers.Connection
	TemporalError error
	// Version is the version of this program.
	Version string
	Logger  *slog.Logger
	Now     func() time.Time
}
